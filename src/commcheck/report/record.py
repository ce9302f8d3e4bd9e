"""The one record of a run that every report is rendered from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import datetime
from functools import cached_property
from typing import Final, Literal

from commcheck import conclusions
from commcheck.lazy import dataclass
from commcheck.model import Finding, Kind, Layer, Result, Status, Verdict, Words
from commcheck.report.changes import Changes
from commcheck.report.ranges import natural

State = Literal["complete", "interrupted", "incomplete"]
"""``interrupted``: by a signal or its deadline; ``incomplete``: killed, no end was written."""

INTERRUPTED: Final = "Interrupted"
"""Error class of a planned case that was never judged."""

JOB: Final = "@job"
"""Stands for a host's name in a verdict on a whole job, whose hosts it does not tell apart."""

_NOT_RUN: Final[Mapping[State, str]] = {
    "interrupted": "the run was stopped before this was judged",
    "incomplete": "the run was killed before this was judged",
    "complete": "the run ended without judging this",
}


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run was asked to do. ``started`` is aware, in UTC.

    ``settings`` are the options in force, as text; ``strict``: warnings count as failures.
    ``choice``: the words by which hosts and checks were chosen, by option; a run that goes on
    from this one takes them where the operator names no others.
    """

    run_id: str
    started: datetime
    version: str
    playbook: str
    inventory: tuple[str, ...]
    inventory_digest: str
    limit: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    noun: str = "host"  # what verdicts are about; of an analysis "file", "job", "watched host"
    choice: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedCheck:
    """A check of the plan: ``source`` is its path or ``bundled``.

    ``overrides`` is empty, or says what it stands in for: ``bundled`` or a path. ``digest`` is of
    its file: two runs with the same one asked the same. ``explained_by``: slugs of causes that
    always bring its own fail with them. ``contradicts``: those that a pass of it speaks against.
    ``needs``: checks that must pass before it says anything.
    """

    id: str
    title: Words
    source: str = "bundled"
    overrides: str = ""
    digest: str = ""
    explained_by: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def layer(self) -> Layer:
        """The layer in its id."""
        return Layer.of(self.id)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be judged: hosts in inventory order, checks in playbook order, cases by host.

    ``groups``: the inventory's groups, and ``leaf NAME`` where it names switches, with their hosts.
    ``runbook``: sections, by anchor, in which this run's book is not the bundled one.
    """

    hosts: tuple[str, ...] = ()
    checks: tuple[PlannedCheck, ...] = ()
    cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    runbook: Mapping[str, Words] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many cases are planned."""
        return sum(len(checks) for checks in self.cases.values())


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a host could not be judged whole; ``error`` is the class of the error."""

    error: str
    code: str
    reason: str
    remedy: str = ""


SIGNALLED: Final = (130, 143)
"""Exit codes of a run that a signal stopped: 128 and its number."""


@dataclass(frozen=True)
class Record:
    """A run as far as it got.

    ``reached`` maps a host to "" where its session ran to the end, else to the error's code;
    hosts that were never begun are missing. ``failures`` say more of those with a code.
    ``changes``: against a baseline, where one was named. ``screen`` and ``facts`` are of an
    analysis of files: the lines that a person came for, and all that was read, as plain JSON.
    ``signalled``: 130 or 143 where a signal stopped the run, else 0.
    """

    info: RunInfo
    plan: Plan
    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()
    ended: datetime | None = None
    state: State = "incomplete"
    reached: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(default_factory=dict)
    changes: Changes | None = None
    screen: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    signalled: int = 0
    # What was worked out of it, so that five reports do it once. A changed copy begins anew.
    memo: dict[str, object] = field(init=False, repr=False, compare=False, default_factory=dict)

    @cached_property
    def sorted(self) -> tuple[Result, ...]:
        """A result for every planned case, by inventory and playbook order, groups first.

        A case judged twice shows the later result; one never judged is an error, since a half
        run must not look green.
        """
        by_case = {(result.host, result.check): result for result in self.results}
        for host, checks in self.plan.cases.items():
            for check in checks:
                if (host, check) not in by_case:
                    by_case[(host, check)] = self._not_run(host, check)
        host_order = {host: index for index, host in enumerate(self.plan.hosts)}
        check_order = {check.id: index for index, check in enumerate(self.plan.checks)}

        def of_host(host: str) -> tuple[object, ...]:
            known = host in host_order
            return (
                not host.startswith("@"),
                host_order[host] if known else len(host_order),
                () if known else natural(host),
            )

        def of_check(check: str) -> tuple[object, ...]:
            return Layer.of(check).height, check_order.get(check, len(check_order)), check

        hosts_at = _places((host for host, _ in by_case), of_host)
        checks_at = _places((check for _, check in by_case), of_check)
        cases = sorted(by_case, key=lambda case: (hosts_at[case[0]], checks_at[case[1]]))
        return tuple(map(by_case.__getitem__, cases))

    def _not_run(self, host: str, check: str) -> Result:
        verdict = Verdict(
            status=Status.ERROR,
            kind=Kind.CHECK,
            reason=_NOT_RUN[self.state],
            error=INTERRUPTED,
        )
        return Result(
            check=check,
            host=host,
            findings=(Finding(check=check, host=host, subject="", verdict=verdict),),
        )

    @cached_property
    def layers(self) -> Mapping[Layer, tuple[Result, ...]]:
        """The sorted results by layer, bottom-up; layers without a case are empty."""
        layers: dict[Layer, list[Result]] = {layer: [] for layer in Layer}
        for result in self.sorted:
            layers[Layer.of(result.check)].append(result)
        return {layer: tuple(results) for layer, results in layers.items()}

    @property
    def exit_code(self) -> int:
        """That of the process: the signal's, where one stopped the run, else by what was judged."""
        return self.signalled or self.judged_code

    @cached_property
    def judged_code(self) -> int:
        """0, 1 or 3 by the truth table; what was planned and never judged counts as unknown."""
        if self.state != "complete" and not self.plan.size:
            return 3  # killed before it knew what to do: nothing is known of anybody
        return conclusions.exit_code(self.sorted, strict=self.info.strict)

    @property
    def seconds(self) -> float:
        """How long the run took; 0 where its end is not known."""
        return (self.ended - self.info.started).total_seconds() if self.ended else 0.0


def _places(names: Iterable[str], order: Callable[[str], tuple[object, ...]]) -> Mapping[str, int]:
    """The place of each name: cases are many, and hosts and checks are few."""
    inorder = sorted(dict.fromkeys(names), key=order)
    return {name: place for place, name in enumerate(inorder)}
