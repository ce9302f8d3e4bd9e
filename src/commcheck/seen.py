"""What a check reads: readers of tools' answers, and the fields of its ``Seen``.

Checks take these names from ``commcheck.check``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import field, fields
from functools import cache
from typing import Any, Final, Generic, TypeVar, cast

from commcheck.command import Command, Output
from commcheck.errors import ParseError
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Machine, Rail

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Reader(Generic[R]):
    """Commands and the pure function that reads their answers into a frozen dataclass.

    ``parse`` takes one ``Output`` per command and returns a reading, or raises ``Unjudgeable``
    (``ParseError`` where the form is unknown). ``per`` is what its commands are run for.
    Output that was cut is refused before ``parse`` unless ``reads_cut_output``. ``varies``: no
    two hosts answer alike, so that remembering an answer would only cost memory. ``declared_by``:
    the inventory variable without which there is nothing to ask.
    """

    tool: str
    commands: tuple[Command, ...]
    parse: Callable[..., R]
    per: type[Machine] | type[Rail] | type[Accelerator] = Machine
    reads_cut_output: bool = False
    varies: bool = False
    declared_by: str = ""

    @property
    def readers(self) -> tuple[Reader[R], ...]:
        """Itself: the same shape as ``FirstOf``."""
        return (self,)

    def read(self, *outputs: Output) -> R:
        """What ``parse`` tells of an output per command; raises ``Unjudgeable`` and nothing else
        that the output is to blame for: a number that none can hold is of an unknown form.
        """
        try:
            return self.parse(*outputs)
        except (ValueError, OverflowError) as error:
            raise ParseError(self.tool, "".join(output.stdout for output in outputs)) from error


@dataclass(frozen=True, slots=True)
class FirstOf(Generic[R]):
    """Several ways to the same reading: the first that speaks is taken, the report says which."""

    readers: tuple[Reader[R], ...]

    @property
    def tool(self) -> str:
        """The names of all, for messages."""
        return " or ".join(reader.tool for reader in self.readers)

    @property
    def per(self) -> type[Machine] | type[Rail] | type[Accelerator]:
        """What the commands are run for."""
        return self.readers[0].per


def first_of(*readers: Reader[R]) -> FirstOf[R]:
    """Readers of the same reading, best first. All must be read per the same kind of subject."""
    if len({reader.per for reader in readers}) != 1:
        raise ValueError("first_of: readers are per different subjects")
    return FirstOf(readers)


@dataclass(frozen=True, slots=True)
class Unread:
    """An optional reading that could not be had, and why."""

    reason: str
    error: str  # class name of the error
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Reading(Generic[R]):
    """How a field of ``Seen`` is filled: by which reader, in which phase, and if it must be."""

    reader: Reader[R] | FirstOf[R]
    at: str  # "once", "start" or "end" of the bundle; WATCH: at both ends; FLEET: beside it
    required: bool
    every_rail: bool = False  # of a check on the machine: one reading for each of its rails

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in which its commands are run."""
        return ("start", "end") if self.at == WATCH else (self.at,)


@dataclass(frozen=True, slots=True)
class EveryRail(Generic[R]):
    """One thing as read of every rail that the host has, by the rail's label."""

    readings: Mapping[str, R | Unread]

    def of(self, rail: Rail) -> R | None:
        """The rail's reading; None where there is none, or it could not be had."""
        found = self.readings.get(rail.label)
        return None if found is None or isinstance(found, Unread) else found


PHASES: Final = ("start", "once", "end")

WATCH: Final = "watch"
FLEET: Final = "fleet"
"""Phase of a reading that is taken once for many hosts, and not on them: they are not asked."""

EARLIER: Final = "earlier"
"""Phase of a reading that an earlier run took; its frames are copied into the later run."""


@dataclass(frozen=True, slots=True)
class Span(Generic[R]):
    """Two readings of one thing and the seconds between them, on the host's own clock."""

    first: R
    last: R
    seconds: float


@dataclass(frozen=True, slots=True)
class Watched(Generic[R]):
    """A thing read at the start and the end of a visit.

    ``since``: from the reading of an earlier run of commcheck on the same boot to the end of this
    visit: hours for nothing. None where there is none.
    """

    visit: Span[R]
    since: Span[R] | None = None


def reads(reader: Reader[R] | FirstOf[R], *, at: str = "once") -> R:
    """A required reading. Unread: the verdict is ``error`` and ``judge`` is not called."""
    return cast("R", _seen_field(reader, at, required=True))


def tries(reader: Reader[R] | FirstOf[R], *, at: str = "once") -> R | Unread:
    """An optional reading. Unread: ``judge`` gets ``Unread`` and decides."""
    return cast("R", _seen_field(reader, at, required=False))


def watches(reader: Reader[R] | FirstOf[R]) -> Watched[R]:
    """A required reading at both ends of the visit, for what counts up.

    Where the check's ``Limits`` have a ``window_s``, the visit waits that long between the two.
    """
    return cast("Watched[R]", _seen_field(reader, WATCH, required=True))


def may_watch(reader: Reader[R] | FirstOf[R]) -> Watched[R] | Unread:
    """As ``watches``, but optional."""
    return cast("Watched[R]", _seen_field(reader, WATCH, required=False))


class Launches(Generic[R]):
    """What launches on several hosts and yields one reading of them all; see ``jobs.job.Job``."""

    __slots__ = ()


def launches(job: Launches[R]) -> R:
    """A required reading that loads hosts. The check's ``effects`` hold ``load``."""
    return cast("R", field(metadata={"job": job}))


def tries_rails(reader: Reader[R] | FirstOf[R]) -> EveryRail[R]:
    """For a check on the machine: an optional reading of each of its rails."""
    reading = Reading(reader, "once", required=False, every_rail=True)
    return cast("EveryRail[R]", field(metadata={"reading": reading}))


def _seen_field(reader: Reader[R] | FirstOf[R], at: str, *, required: bool) -> object:
    if at not in (*PHASES, WATCH, FLEET):
        raise ValueError(f"at={at!r} is none of {', '.join(PHASES)}")
    return field(metadata={"reading": Reading(reader, at, required)})


def readings_of(seen: type[Any]) -> Mapping[str, Reading[Any]]:
    """The declared readings of a ``Seen`` class, by field name."""
    return declared(seen, "reading")  # type: ignore[arg-type] # a class is hashable


@cache
def declared(declaring: Hashable, what: str) -> Mapping[str, Any]:
    """Fields of a class and what they carry: asked for every subject of every host."""
    return {
        each.name: each.metadata[what]
        for each in fields(cast("type[Any]", declaring))
        if what in each.metadata or not each.metadata  # a field that declares nothing is refused
    }
