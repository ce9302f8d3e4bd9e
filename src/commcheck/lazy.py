"""Dataclasses and expressions whose code is made when it is first used, not while modules load.

Every start loads all checks: 600 dataclasses and 500 regular expressions, of which a run uses some.
To compile them all took most of a start, longer than to judge five hundred hosts.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:  # a type checker sees what they stand for
    from dataclasses import dataclass as dataclass

    regex = re.compile
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """As ``dataclasses.dataclass``; lazy where it has slots and derives from no other."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        derives = any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:])
        if derives or not options.get("slots") or not options.keys() <= _LAZY_OPTIONS:
            return dataclasses.dataclass(cls, **options)
        return _lazy(cls, **options)

    def regex(expression: str | bytes, flags: int = 0) -> Any:
        """As ``re.compile``; a fault in the expression shows when it is first used."""
        return _Regex(expression, flags)


_LAZY_OPTIONS: Final = {"frozen", "slots", "kw_only", "repr", "eq"}


class _Regex:
    """Takes over the methods of the compiled expression when it is first asked for one."""

    def __init__(self, expression: Any, flags: int) -> None:
        self._told = expression, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copy and pickle look for
            raise AttributeError(name)
        compiled = re.compile(*self._told)
        names = (each for each in dir(compiled) if not each.startswith("__"))
        self.__dict__.update({each: getattr(compiled, each) for each in names})
        return getattr(compiled, name)


def _lazy(
    cls: type,
    *,
    slots: bool,
    frozen: bool = False,
    kw_only: bool = False,
    repr: bool = True,
    eq: bool = True,
) -> type:
    """The class with its fields and slots; what must be compiled waits for its first call."""
    bare = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    made: Any = bare(cls)
    wanted = {"__init__": True, "__repr__": repr, "__eq__": eq, "__hash__": eq and frozen}
    names = [name for name, is_wanted in wanted.items() if is_wanted and name not in vars(cls)]
    for name in names:
        setattr(made, name, _first_call(made, name, frozen=frozen, kw_only=kw_only))
    if eq and not frozen and "__hash__" not in vars(cls):
        made.__hash__ = None  # what may change is no key
    if frozen:
        made.__setattr__ = made.__delattr__ = _refuse
        made.__getstate__, made.__setstate__ = _state, _set_state
    made.__dataclass_params__.frozen = frozen  # those that derive from it ask
    return made  # type: ignore[no-any-return]


_ONE: Final = {
    "__init__": {"init": True, "slots": True},  # with slots it also sets what has a default alone
    "__repr__": {"repr": True},
    "__eq__": {"eq": True},
    "__hash__": {"unsafe_hash": True},
}
"""By method, what alone makes it: most classes are made and never shown or compared."""


def _compiled(made: Any, name: str, **options: bool) -> Callable[..., Any]:
    """A method, taken from the same fields made a dataclass in the usual way."""
    fields = made.__dataclass_fields__
    body = {
        "__module__": made.__module__,  # where the compiled code looks names up
        "__doc__": made.__doc__,
        "__annotations__": {name: field.type for name, field in fields.items()},
        **fields,
    }
    if hasattr(made, "__post_init__"):
        body["__post_init__"] = made.__post_init__
    wanted = {"init": False, "repr": False, "eq": False, **_ONE[name], **options}
    whole: type = dataclasses.dataclass(**wanted)(type(made.__name__, (), body))
    method: Callable[..., Any] = vars(whole)[name]
    return method


def _first_call(made: type, name: str, *, frozen: bool, kw_only: bool) -> Callable[..., Any]:
    options = {"frozen": frozen, "kw_only": kw_only} if name == "__init__" else {}

    def method(*arguments: Any, **named: Any) -> Any:
        setattr(made, name, _compiled(made, name, **options))
        return getattr(made, name)(*arguments, **named)

    return method


def _refuse(self: object, name: str, _value: object = None) -> NoReturn:
    raise FrozenInstanceError(f"{type(self).__name__} is frozen: {name!r} cannot be changed")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
