"""The nouns of a playbook: plays, their entries, and what they ask of hosts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from enum import StrEnum

from commcheck.check import AnyCheck
from commcheck.check_fields import Params
from commcheck.errors import Position
from commcheck.fields import Count
from commcheck.lazy import dataclass
from commcheck.model import Host, Layer, Machine, Subject
from commcheck.waivers import Waiver
from commcheck.when import When


class Gate(StrEnum):
    """What a fail, or a host that cannot be judged, keeps out of the layers above."""

    HOST = "host"  # that host
    FLEET = "fleet"  # every host
    NONE = "none"  # nobody


class Severity(StrEnum):
    """An advisory check's fail is a warning: shown and counted, gates nothing."""

    BLOCKING = "blocking"
    ADVISORY = "advisory"


class Suspects(StrEnum):
    """Whether hosts that failed below take part in a play that loads, to confirm the cause."""

    EXCLUDE = "exclude"
    INCLUDE = "include"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One check of a play, and all that the playbook says of it.

    ``timeout_s``: for each command; None: as the command says. ``when``: the play's conditions,
    then the entry's own.
    """

    check: str
    position: Position
    params: Params = field(default_factory=dict)
    when: tuple[When, ...] = ()
    severity: Severity = Severity.BLOCKING
    retries: int = 0
    timeout_s: float | None = None

    def not_applicable(self, host: Host, machine: Machine, subject: Subject) -> str | None:
        """The first condition of ``when`` that does not hold, or None."""
        reasons = (when.not_applicable(host, machine, subject) for when in self.when)
        return next((reason for reason in reasons if reason is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Checks of one layer, in order, for the hosts of one pattern."""

    name: str
    layer: Layer
    checks: tuple[Entry, ...]
    position: Position
    hosts: str = "all"
    gate: Gate = Gate.HOST
    suspects: Suspects = Suspects.EXCLUDE
    serial: Count | None = None
    max_fail: Count | None = None
    forks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Playbook:
    """A named list of plays; the layer may stay or rise from play to play, never fall."""

    name: str
    plays: tuple[Play, ...]
    forks: int | None = None
    allow: frozenset[str] = frozenset()  # "load", "write"
    waivers: tuple[Waiver, ...] = ()

    def not_permitted(self, check: AnyCheck, operator_allows: Collection[str]) -> str | None:
        """What the operator must still allow for the check to run, in words; None: it may run."""
        missing = sorted(check.effects - (self.allow & frozenset(operator_allows)))
        return f"needs --allow {','.join(missing)}" if missing else None
