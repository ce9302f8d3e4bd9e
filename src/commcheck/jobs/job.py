"""The nouns of launching: jobs, the hosts that take part, one launch, and what a job saw.

A ``Job`` is a reader that launches. It plans which hosts run together, says what each run starts
where, and reads what came back; it does no I/O itself. The engine (``stage``) carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from commcheck.check import Launches
from commcheck.collect.base import Request
from commcheck.command import Command, Output
from commcheck.counters import Growth
from commcheck.jobs.locate import Located
from commcheck.jobs.outcomes import Outcome, Run
from commcheck.jobs.pairing import Preview, Round
from commcheck.jobs.site import Site
from commcheck.lazy import dataclass
from commcheck.model import Evidence, Host, Machine, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A host that is ready to take part. ``address``: by which the others reach it.

    ``launchers``: what there is to launch with ("openmpi", "openmpi5", "mpich", "srun").
    ``programs``: paths of the benchmarks found there, by name. ``told``: what it answered to the
    job's ``asks``, in their order.
    """

    host: Host
    machine: Machine
    site: Site
    address: str
    launchers: frozenset[str] = frozenset()
    programs: Mapping[str, str] = field(default_factory=dict)
    told: tuple[Output, ...] = ()

    @property
    def name(self) -> str:
        """Its name in the inventory."""
        return self.host.name

    @property
    def hostname(self) -> str:
        """What the machine calls itself, as benchmarks print it: to the first dot."""
        return self.machine.hostname.partition(".")[0]


Members = Mapping[str, Member]
"""By inventory name."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one host does in a launch: its requests run one after another in one session."""

    host: str
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """What a launch brought: outputs of the part that reports, in the order of its requests.

    ``problem`` says why there are none; ``timed_out``: commcheck's own limit ended it. ``by_host``:
    where all parts report, those of every host that did.
    """

    outputs: tuple[Output, ...] = ()
    problem: str = ""
    timed_out: bool = False
    by_host: Mapping[str, tuple[Output, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run with its verdicts and what it says for the search.

    ``retried``: how often it was launched again before it proved something.
    """

    run: Run
    verdicts: tuple[Verdict, ...]
    outcome: Outcome
    evidence: tuple[Evidence, ...] = ()
    retried: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The reading of a job: everything that ran in one batch of hosts.

    ``growth``: what the loss counters of each host grew by meanwhile; hosts whose counters could
    not be read are missing. ``floor_gbytes``: the least busbw that passes, where one is known.
    """

    hosts: tuple[str, ...]
    ran: tuple[Ran, ...]
    located: Located
    growth: Mapping[str, Growth] = field(default_factory=dict)
    floor_gbytes: float | None = None

    def of(self, host: str) -> tuple[Ran, ...]:
        """The runs in which a host took part."""
        return tuple(each for each in self.ran if host in each.run.hosts)


Steps = Callable[[Sequence[Outcome]], Round]
"""From what is known to the runs to be launched next; empty: nothing more can be learnt."""


def once(round_: Round) -> Steps:
    """One round, whatever it shows."""
    return lambda outcomes: () if outcomes else round_


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Launches[Search]):
    """What a check launches. All of it is pure; ``limits`` are the check's.

    ``least``: hosts that one run needs. ``programs``: names of benchmarks, by platform.
    ``launch``: the parts of a run, the one that reports first; raises ``Unjudgeable`` where a
    host cannot take part. ``together``: the verdicts on the batch as a whole. ``shown``: what of
    an output a report shows. ``all_report``: every part has its own to say, and ends the others
    only where it goes wrong. ``asks``: of each host, before anything is launched.
    """

    tool: str
    least: int
    programs: Callable[[str, Any], tuple[str, ...]]
    steps: Callable[[Sequence[Member], Any], Steps]
    preview: Callable[[Sequence[str], Any], Preview | None]
    run_s: Callable[[int, Any], float]
    launch: Callable[[Run, Members, Any], tuple[Part, ...]]
    read: Callable[[Run, Members, Any, Answered], Ran]
    together: Callable[[Search, Any], tuple[Verdict, ...]]
    shown: Callable[[str], str] = str
    all_report: bool = False
    asks: tuple[Command, ...] = ()
