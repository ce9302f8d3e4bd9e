"""Hosts that could not be reached, or were lost, by the reason why."""

from __future__ import annotations

from collections import defaultdict

from commcheck.lazy import dataclass
from commcheck.report.record import Failure, Record


@dataclass(frozen=True, slots=True)
class Unreached:
    """``hosts``, in inventory order, of which ``error`` (its class) says the same ``code``.

    ``example`` is the first host's reason, of as many as ``reasons``; ``remedy`` is what to do
    about that host, and about all those in ``same``.
    """

    error: str
    code: str
    hosts: tuple[str, ...]
    example: str
    reasons: int
    remedy: str
    same: tuple[str, ...]


def unreached(record: Record) -> tuple[Unreached, ...]:
    """The most hosts first."""
    found: defaultdict[tuple[str, str], dict[str, Failure]] = defaultdict(dict)
    for host in record.plan.hosts:
        if failure := record.failures.get(host):
            found[failure.error, failure.code][host] = failure
    sorts = []
    for (error, code), failures in found.items():
        first = next(iter(failures.values()))
        sorts.append(
            Unreached(
                error=error,
                code=code,
                hosts=tuple(failures),
                example=first.reason,
                reasons=len({each.reason for each in failures.values()}),
                remedy=first.remedy,
                same=tuple(host for host in failures if failures[host].remedy == first.remedy),
            )
        )
    return tuple(sorted(sorts, key=lambda each: -len(each.hosts)))
