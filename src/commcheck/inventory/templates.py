"""The one template commcheck resolves: a plain ``{{ variable }}``, alone or within a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from commcheck.inventory.declared import Opaque, quoted
from commcheck.lazy import regex

_REFERENCE: Final = regex(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_MARKS: Final = ("{{", "{%", "{#")

Lookup = Callable[[str], object]
"""From a variable's name to its unresolved value; raises ``KeyError`` where there is none."""


def is_template(value: object) -> bool:
    """Whether a value, or anything in it, is a Jinja template."""
    if isinstance(value, str):
        return not isinstance(value, Opaque) and any(mark in value for mark in _MARKS)
    if isinstance(value, dict):
        return any(map(is_template, value.values()))
    return isinstance(value, list) and any(map(is_template, value))


def resolve(value: object, lookup: Lookup, through: tuple[str, ...] = ()) -> object:
    """The value with its references filled in; an ``Opaque`` that says why where it cannot be.

    ``through``: the variables on the way here, by which a circle is noticed.
    """
    if isinstance(value, list):
        return _first_unread([resolve(each, lookup, through) for each in value])
    if isinstance(value, dict):
        return _first_unread({key: resolve(each, lookup, through) for key, each in value.items()})
    if not isinstance(value, str) or not is_template(value):
        return value
    if any(mark in _REFERENCE.sub("", value) for mark in _MARKS):
        return Opaque(
            f"it is the template {quoted(value)}; commcheck resolves only a plain "
            "'{{ variable }}', so write the value out",
            "template",
        )
    if whole := _REFERENCE.fullmatch(value.strip()):
        return _variable(whole[1], lookup, through)
    found = {name: _variable(name, lookup, through) for name in _REFERENCE.findall(value)}
    for each in found.values():
        if isinstance(each, Opaque):
            return each
    return _REFERENCE.sub(lambda match: str(found[match[1]]), value)


def _variable(name: str, lookup: Lookup, through: tuple[str, ...]) -> object:
    if name in through:
        return Opaque(
            f"its template leads in a circle: {' -> '.join((*through, name))}", "template"
        )
    if len(through) > 20:
        return Opaque("its template leads through more than 20 variables", "template")
    try:
        value = lookup(name)
    except KeyError:
        return Opaque(f"it refers to {quoted(name)}, which the inventory does not set", "template")
    return resolve(value, lookup, (*through, name))


def _first_unread(value: object) -> object:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((each for each in inner if isinstance(each, Opaque)), value)
