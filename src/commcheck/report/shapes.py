"""Whether what was read from a foreign run has the types that it should have.

Looking at every value of a large run would take longer than rendering it. So it is looked at only
once something went wrong: then it tells a damaged run from a fault of commcheck.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from commcheck.errors import CommcheckError, RunFolderError
from commcheck.report.record import Record


@contextmanager
def doubted(records: Iterable[Record]) -> Iterator[None]:
    """Within: what fails for want of the right types is the run's fault: ``RunFolderError``."""
    try:
        yield
    except CommcheckError:
        raise
    except Exception as error:
        for record in records:
            if wrong := misfit(record, Record):
                raise RunFolderError(
                    f"{record.info.run_id}: this is no whole run: {wrong}"
                ) from error
        raise


def misfit(value: object, kind: Any, where: str = "run") -> str:
    """The first value that is not of its declared type, in words; "" where all are."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return ""
    if origin in (Union, types.UnionType):
        told = [misfit(value, each, where) for each in args]
        return told[0] if all(told) else ""
    if origin is Literal:
        return "" if value in args else _told(where, value, str(args))
    if origin is tuple and isinstance(value, tuple):
        each_kind = [args[0]] * len(value) if args[1:] == (...,) else list(args)
        return _first(
            misfit(each, one, f"{where}[{number}]")
            for number, (each, one) in enumerate(zip(value, each_kind, strict=False))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return _first(
            misfit(key, args[0], f"{where} key") or misfit(each, args[1], f"{where}.{key}")
            for key, each in value.items()
        )
    plain = origin or kind
    if not isinstance(plain, type):
        return ""
    if plain is float and isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    if not isinstance(value, plain) or (plain is int and isinstance(value, bool)):
        return _told(where, value, getattr(plain, "__name__", str(plain)))
    if dataclasses.is_dataclass(plain) and not issubclass(plain, Enum):
        hints = _hints(plain)
        return _first(
            misfit(getattr(value, each.name), hints[each.name], f"{where}.{each.name}")
            for each in dataclasses.fields(plain)
        )
    return ""


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _first(told: Iterable[str]) -> str:
    return next(filter(None, told), "")


def _told(where: str, value: object, wanted: str) -> str:
    return f"{where} is {value!r:.80}, want {wanted}"
