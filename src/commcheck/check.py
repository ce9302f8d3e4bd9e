"""The vocabulary in which a check is written: readers, limits, expectations, verdicts.

A check module ends in a constant named ``CHECK``. Importing it does nothing. ``docs`` for writers
are the checks themselves: ``checks/physical/nic_mtu.py`` is the shortest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import MISSING, field, fields
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar, cast

from commcheck.lazy import dataclass
from commcheck.model import (
    PLATFORMS,
    UNKNOWN,
    Accelerator,
    Cause,
    Host,
    Kind,
    Layer,
    Machine,
    Origin,
    Rail,
    Status,
    Verdict,
    Wanted,
    Words,
)
from commcheck.seen import (
    EARLIER,
    FLEET,
    PHASES,
    WATCH,
    EveryRail,
    FirstOf,
    Launches,
    Reader,
    Reading,
    Span,
    Unread,
    Watched,
    declared,
    first_of,
    launches,
    may_watch,
    readings_of,
    reads,
    tries,
    tries_rails,
    watches,
)
from commcheck.verdicts import (
    failed,
    fitting,
    known_to,
    not_applicable,
    passed,
    remedies_for,
    undecidable,
    warned,
)

__all__ = [
    "EARLIER",
    "FLEET",
    "PHASES",
    "UNREAD",
    "WATCH",
    "AnyCheck",
    "Check",
    "EveryRail",
    "Explained",
    "FirstOf",
    "Key",
    "Launches",
    "LimitSpec",
    "Nothing",
    "Reader",
    "Reading",
    "Span",
    "Together",
    "Trait",
    "Unread",
    "Watched",
    "Whole",
    "expects",
    "failed",
    "first_of",
    "fitting",
    "job_of",
    "keys_of",
    "known_to",
    "launches",
    "limit",
    "limits_of",
    "may_watch",
    "not_applicable",
    "passed",
    "readings_of",
    "reads",
    "remedies_for",
    "to_compare",
    "tries",
    "tries_rails",
    "undecidable",
    "warned",
    "watches",
]

R = TypeVar("R")
T = TypeVar("T")
SeenT = TypeVar("SeenT")
SubjectT = TypeVar("SubjectT", Machine, Rail, Accelerator)
WantT = TypeVar("WantT")
LimitsT = TypeVar("LimitsT")


# --- Want and Limits ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """An inventory variable that says what should be: its type, defaults and bounds.

    ``read`` turns the inventory's value into ``T`` or raises ``ValueError`` saying what was
    wanted; a value above the physical bound is refused there. ``defaults`` is by platform, ``""``
    for all; no default: ``None``. ``source`` says where the default comes from.
    """

    name: str  # "commcheck_roce_priority"
    read: Callable[[object], T]
    defaults: Mapping[str, T] = field(default_factory=dict)
    unit: str = ""
    source: str = ""
    meaning: str = ""

    def on(self, host: Host, platform: str) -> Wanted[T | None]:
        """The value in force for a host. Raises ``ValueError`` with what was wanted."""
        if self.name in host.variables and host.variables[self.name] is not None:
            value = self.read(host.variables[self.name])
            return Wanted(value, host.origin_of(self.name))
        default = self.defaults.get(platform, self.defaults.get(""))
        return Wanted(default, Origin(f"default ({self.source})" if self.source else "default"))


def expects(key: Key[T]) -> Wanted[T]:
    """A field of ``Want`` whose key has a default, or whose judge copes with ``None``."""
    return cast("Wanted[T]", field(metadata={"key": key}))


def keys_of(want: type[Any]) -> Mapping[str, Key[Any]]:
    """The declared keys of a ``Want`` class, by field name."""
    return declared(want, "key")  # type: ignore[arg-type] # a class is hashable


def limit(default: T, *, unit: str, source: str) -> T:
    """A field of ``Limits``: a threshold with its unit and source, settable per group."""
    return field(default=default, metadata={"unit": unit, "source": source})


@dataclass(frozen=True, slots=True)
class LimitSpec:
    """A declared threshold: name, default, unit and source."""

    name: str
    default: object
    unit: str
    source: str


def limits_of(limits: type[Any]) -> Mapping[str, LimitSpec]:
    """The declared thresholds of a ``Limits`` class, by name."""
    return _limits_of(limits)  # type: ignore[arg-type] # a class is hashable


@cache
def _limits_of(limits: Hashable) -> Mapping[str, LimitSpec]:
    specs = {}
    for each in fields(cast("type[Any]", limits)):
        if each.default is MISSING:
            raise ValueError(f"limit {each.name} has no default")
        specs[each.name] = LimitSpec(
            each.name, each.default, each.metadata["unit"], each.metadata["source"]
        )
    return specs


@dataclass(frozen=True, slots=True)
class Nothing:
    """The ``Seen``, ``Want`` or ``Limits`` of a check that has none."""


_NONE: Final = cast("type[Any]", Nothing)


# --- peers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trait:
    """Something in which peers should be alike; ``peers.compare`` finds those that are not.

    ``name`` is its key in what ``to_compare`` got. ``kin``: the key of what must be equal for two
    subjects to be compared at all (a card's model). ``owners``: checks that judge the same thing
    by what is declared; where one of them found something, no drift is reported on top.
    ``fails``: the odd ones out cannot work with the others, so that drift is a fail.
    ``unique``: no two hosts may have the same (an address), whatever rail it is on. It is the key
    of what the subject itself is (a port's identity): a port that two hosts show is one port.
    """

    name: str
    title: Words
    cause: Cause
    kin: str = ""
    owners: tuple[str, ...] = ()
    fails: bool = False
    unique: str = ""


UNREAD: Final = "unread"
"""Key of the traits that could not be read, each with its reason."""


def to_compare(values: Mapping[str, object], unread: Mapping[str, str] | None = None) -> Verdict:
    """What a subject has; whether that is right only its peers can tell.

    A trait that does not apply is left out of ``values``; one that could not be read stands in
    ``unread`` with the reason. ``values`` also hold what the remedies of the traits' causes name.
    """
    return Verdict(
        status=Status.SKIP,
        kind=Kind.UNDECIDABLE,
        reason="undecidable: the run ended before this was compared with its peers",
        measured={**values, **({UNREAD: dict(unread)} if unread else {})},
    )


# --- consequences -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Explained:
    """A cause of another check that may be why this one fails: then it is no fault of its own.

    ``join``: whose cause counts, that of the same subject (a rail, mostly), of the host at fault,
    or of any host that took part.
    ``by_loss``: it works by losing packets, so counters that stand still speak against it.
    ``of``: slugs of the check's own causes that it may explain; empty: all of them.
    ``always``: who has the cause shows this as well, so that a pass here speaks against it; False
    for what comes and goes, as a link that flaps.
    """

    cause: str  # slug
    join: Literal["same-rail", "same-host", "any-in-job"] = "same-host"
    by_loss: bool = False
    of: frozenset[str] = frozenset()
    always: bool = True

    def covers(self, slug: str) -> bool:
        """True for a cause of the check's own that this may explain."""
        return not self.of or slug in self.of


# --- parts of one thing on several hosts --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole:
    """What was judged as one: who took part, and verdicts by host; others keep their own."""

    hosts: tuple[str, ...]
    verdicts: Mapping[str, tuple[Verdict, ...]]


@dataclass(frozen=True, slots=True)
class Together:
    """How the parts that hosts have of one thing are judged as one; ``together.judged`` does it.

    ``part``: from a ``Seen``, the machine and a ``Want`` to the host's part, which may be sent to
    another process; None: it has none. ``judge``: from the parts by host. Both are pure.
    """

    part: Callable[[Any, Any, Any], object | None]
    judge: Callable[[Mapping[str, Any]], Iterable[Whole]]


# --- Check --------------------------------------------------------------------------------------


def _always(_subject: Any) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[SeenT, SubjectT, WantT, LimitsT]):
    """One question, asked of every subject of one kind.

    ``judge`` answers with a verdict, or with several where one text holds many (a log's rules).
    ``needs``: checks of the same layer that must pass first on the same subject.
    ``peers``: for a check that compares hosts; its ``judge`` then ends in ``to_compare``.
    ``not_applicable`` says in a few words why the subject is none of its business, or None.
    ``platforms``: where it is asked at all. ``each_port``: of a rail that is a bond, each of its
    ports is asked, for what belongs to a port and not to the rail.
    """

    id: str
    title: Words
    subject: type[SubjectT]
    seen: type[SeenT]
    judge: Callable[[SeenT, SubjectT, WantT, LimitsT], Verdict | tuple[Verdict, ...]]
    # The defaults fit only where WantT and LimitsT are Nothing; judge's type says so to mypy.
    want: type[WantT] = _NONE
    limits: type[LimitsT] = _NONE
    needs: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    platforms: frozenset[str] = frozenset({*PLATFORMS, UNKNOWN})
    effects: frozenset[str] = frozenset()  # "load", "write": what it does beyond looking
    peers: tuple[Trait, ...] = ()
    not_applicable: Callable[[SubjectT], str | None] = _always
    explained_by: tuple[Explained, ...] = ()
    together: Together | None = None
    contradicts: tuple[str, ...] = ()  # slugs of causes that a pass here speaks against
    opt_in: Key[bool] | None = None  # asked only of hosts where the inventory says true
    each_port: bool = False

    @property
    def layer(self) -> Layer:
        """The layer in its id."""
        return Layer.of(self.id)

    def verdicts(
        self, seen: SeenT, subject: SubjectT, want: WantT, limits: LimitsT
    ) -> tuple[Verdict, ...]:
        """What ``judge`` says, as many verdicts. Raises ``ValueError`` where it says nothing."""
        said = self.judge(seen, subject, want, limits)
        verdicts = (said,) if isinstance(said, Verdict) else tuple(said)
        if not verdicts:
            raise ValueError(f"{self.id} gave no verdict")
        return verdicts


AnyCheck = Check[Any, Any, Any, Any]


def job_of(check: AnyCheck) -> Launches[Any] | None:
    """What a check launches; None: it only looks."""
    jobs = declared(check.seen, "job")  # type: ignore[arg-type] # a class is hashable
    return next(iter(jobs.values()), None)
