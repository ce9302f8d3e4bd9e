"""How a rule on one environment becomes a rule on all of a job's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from commcheck.lazy import dataclass
from commcheck.model import Cause, Status
from commcheck.nccl.environment.model import Case, Environment, HostFacts
from commcheck.nccl.ruling import Found, Ruling, other, wrong

OfOne = Callable[[Environment, HostFacts], Ruling]


@dataclass(frozen=True, slots=True)
class EnvRule:
    """A rule: its number, what it asks, how it answers.

    ``weighty``: where it cannot tell although its variable is set, the environment is not right.
    """

    id: str
    asks: str
    judge: Callable[[Case], Ruling]
    weighty: bool = False


def each(rule: str, asks: str, judge: OfOne, *, weighty: bool = False) -> EnvRule:
    """A rule that looks at every environment by itself; equal findings are told once."""

    def judge_all(case: Case) -> Ruling:
        rulings = [(one, judge(one, case.facts(one))) for one in case.environments]
        found: dict[tuple[str, str], Found] = {}
        for one, ruling in rulings:
            for each in ruling.found:
                key = (each.reason, each.status)
                before = found.get(key, each)
                found[key] = replace(
                    before,
                    rule=rule,
                    hosts=_more(before.hosts, [one.host] if one.host else []),
                    evidence=_more(before.evidence, one.who),
                )
        if found:
            return wrong(*found.values())
        for state in ("unknown", "right", "other"):
            said = [ruling for _, ruling in rulings if ruling.state == state]
            if said:
                return next((ruling for ruling in said if ruling.why), said[0])
        return other("there is no environment of a process")

    return EnvRule(rule, asks, judge_all, weighty)


def _more(before: tuple[str, ...], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*before, *names)))


def fail(cause: Cause, reason: str, **measured: object) -> Found:
    """Proven wrong; the rule's number is filled in by ``each``."""
    return Found(rule="", cause=cause, reason=reason, measured=measured)


def warn(cause: Cause, reason: str, **measured: object) -> Found:
    """Wrong, but advisory."""
    return replace(fail(cause, reason, **measured), status=Status.WARN)


UNSET = "the variable is not set"
