"""The templates commcheck resolves: a closed list of forms, read by their text and never run.

``{{ variable }}``, ``{{ lookup('env', 'NAME') }}``, and either of them with ``| default(...)``;
alone or within a text. Every other template is left unread, and says so where it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from commcheck.inventory.declared import Opaque, quoted
from commcheck.lazy import dataclass, regex
from commcheck.report.cleaning import holds_secret

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_TEXT: Final = r"'[^'\\]*'|\"[^\"\\]*\""
_LITERAL: Final = rf"(?:{_TEXT}|[0-9]{{1,9}})"
_ENV: Final = (
    r"lookup\(\s*(?:'(?:ansible\.builtin\.)?env'|\"(?:ansible\.builtin\.)?env\")\s*,"
    rf"\s*(?:'{_NAME}'|\"{_NAME}\")\s*(?:,\s*default\s*=\s*{_LITERAL}\s*)?\)"
)
_TERM: Final = rf"(?:{_ENV}|{_LITERAL}|{_NAME})"
_DEFAULT: Final = rf"\|\s*(?:default|d)\(\s*({_TERM})\s*(,\s*[Tt]rue\s*)?\)\s*"

_EXPRESSION: Final = regex(rf"\s*({_TERM})\s*((?:{_DEFAULT})*)")
_DEFAULTS: Final = regex(_DEFAULT)
_ENV_PARTS: Final = regex(
    rf"lookup\([^,]*,\s*['\"]({_NAME})['\"]\s*(?:,[^=]*=\s*({_LITERAL})\s*)?\)"
)
_BRACES: Final = regex(r"\{\{((?:[^{}'\"]|'[^'\\]*'|\"[^\"\\]*\")*)\}\}")
_MARKS: Final = ("{{", "{%", "{#")
_MOST: Final = 20
"""Variables that lead to one another."""

Lookup = Callable[[str], object]
"""From a variable's name to its unresolved value; raises ``KeyError`` where there is none."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a template may name: variables, and those of the environment of commcheck."""

    lookup: Lookup
    environment: Mapping[str, str]


class _Missing(Opaque):
    """What is not set: a default may stand in for it."""

    __slots__ = ()


def is_template(value: object) -> bool:
    """Whether a value, or anything in it, is a Jinja template."""
    if isinstance(value, str):
        return not isinstance(value, Opaque) and any(mark in value for mark in _MARKS)
    if isinstance(value, dict):
        return any(map(is_template, value.values()))
    return isinstance(value, list) and any(map(is_template, value))


def resolve(value: object, scope: Scope, through: tuple[str, ...] = ()) -> object:
    """The value with its templates filled in; an ``Opaque`` that says why where it cannot be.

    ``through``: the variables on the way here, by which a circle is noticed. None: a template
    that is ``default(omit)``, which sets nothing.
    """
    if isinstance(value, list):
        return _first_unread([resolve(each, scope, through) for each in value])
    if isinstance(value, dict):
        return _first_unread({key: resolve(each, scope, through) for key, each in value.items()})
    if not isinstance(value, str) or not is_template(value):
        return value
    if whole := _BRACES.fullmatch(value.strip()):
        return _expression(whole[1], scope, through)
    if any(mark in _BRACES.sub("", value) for mark in _MARKS):
        return _unknown()
    found = {inner: _expression(inner, scope, through) for inner in _BRACES.findall(value)}
    for inner, each in found.items():
        if isinstance(each, Opaque):
            return each
        if each is None:
            return Opaque(f"nothing is to stand for {quoted(inner.strip())} in it", "template")
    # What was filled in is text, whatever it looks like: it is not read once more.
    return _BRACES.sub(lambda match: str(found[match[1]]), value)


def _unknown() -> Opaque:
    return Opaque(
        # The template is not repeated: this may be said of a password's.
        "it is more than a plain '{{ variable }}', lookup('env', 'NAME') and default(), which is "
        "all that commcheck resolves, so write the value out",
        "template",
    )


def _expression(inner: str, scope: Scope, through: tuple[str, ...]) -> object:
    match = _EXPRESSION.fullmatch(inner)
    if match is None:
        return _unknown()
    found = _term(match[1], scope, through)
    for term, also_where_empty in _DEFAULTS.findall(match[2]):
        is_unread = isinstance(found, Opaque)
        if isinstance(found, _Missing) or (also_where_empty and not is_unread and not found):
            found = _term(term, scope, through)
    return found


def _term(term: str, scope: Scope, through: tuple[str, ...]) -> object:
    if term[0] in "'\"":
        return term[1:-1]
    if term.isdecimal():
        return int(term)
    if match := _ENV_PARTS.fullmatch(term):
        return _of_environment(match[1], match[2], scope, through)
    word = term.lower()
    if word in ("true", "false"):
        return word == "true"
    return None if term == "omit" else _variable(term, scope, through)


def _of_environment(
    name: str, default: str | None, scope: Scope, through: tuple[str, ...]
) -> object:
    if holds_secret({name: "x"}):
        return Opaque(
            f"the environment variable {name} is a secret by its name, and what a template says is "
            "shown in reports",
            "template",
        )
    if value := scope.environment.get(name):
        return value
    if default is not None:
        return _term(default, scope, through)
    # Ansible would go on with nothing, and with a path or a name that is only half of one.
    return _Missing(f"the environment variable {name} is not set here", "template")


def _variable(name: str, scope: Scope, through: tuple[str, ...]) -> object:
    if name in through:
        return Opaque(
            f"its template leads in a circle: {' -> '.join((*through, name))}", "template"
        )
    if len(through) > _MOST:
        return Opaque(f"its template leads through more than {_MOST} variables", "template")
    try:
        value = scope.lookup(name)
    except KeyError:
        return _Missing(
            f"it refers to {quoted(name)}, which the inventory does not set", "template"
        )
    return resolve(value, scope, (*through, name))


def _first_unread(value: object) -> object:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((each for each in inner if isinstance(each, Opaque)), value)
