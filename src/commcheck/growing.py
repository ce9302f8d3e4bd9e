"""How checks judge counters that should not grow: one ladder for all of them. Pure.

Growth during the visit fails. Growth since an earlier run fails where it is more than an incident
(a peer that was rebooted, a switch that was upgraded), and warns else. Without growth it is right
where the counters never counted at all or the window is long enough to mean something; else the
old totals could be of a minute ago, and nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from commcheck.check import Watched, failed, limit, not_applicable, passed, undecidable, warned
from commcheck.counters import WINDOW_SOURCE, Counters, Errors, growth, length
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Rail, Verdict

KNOWN_DRIVERS: Final = ("mlx5_core", "bnxt_en")
"""Drivers whose counters are known by name: one of theirs that is missing is a new layout."""


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on growth is a fault, and no growth means something."""

    window_s: float = limit(0.0, unit="s of waiting", source=WINDOW_SOURCE)
    enough_s: float = limit(
        5.0, unit="s without growth", source="own default: errors under load come by the second"
    )
    since_per_hour: float = limit(
        60.0, unit="per hour since an earlier run", source="own default: one a minute"
    )


def settle(
    found: Errors,
    rail: Rail | Accelerator,
    cause: Cause,
    limits: Limits,
    *,
    advisory: bool = False,
) -> Verdict:
    """The verdict on counters that should not grow. ``advisory``: a warning at most."""
    measured = found.measured
    since = found.since
    places = _places(rail)
    if found.visit.added:
        say = warned if advisory else failed
        reason = f"{rail.label}: {found.visit}, want none"
        return say(cause, reason, measured=measured, **places)
    if since is not None and since.added:
        say = failed if since.per_hour > limits.since_per_hour and not advisory else warned
        none_now = f"none in the last {length(found.visit.seconds)}"
        reason = f"{rail.label}: {since}, since an earlier run; {none_now}"
        return say(cause, reason, measured=measured, **places)
    if found.full:
        return undecidable(
            f"{rail.label}: {', '.join(found.full)} stands at its highest value and cannot grow",
            turn_on=f"set it to zero with perfquery -R on {rail.label} (root)",
        )
    longest = found.longest
    reset = f"; reset since: {', '.join(longest.reset)}" if longest.reset else ""
    if found.never:
        return passed(f"{rail.label}: never counted{reset}", measured=measured)
    if longest.seconds >= limits.enough_s:
        return passed(f"{rail.label}: {longest}{found.told}{reset}", measured=measured)
    return undecidable(
        f"{rail.label}: {longest}{found.told}, and nothing tells when",
        turn_on="run again later on the same boot, or set window_s: 10",
    )


def exceeds(
    found: Errors,
    counters: Watched[Counters],
    names: Iterable[str],
    share: float,
    *,
    least: int = 0,
) -> bool:
    """``least`` and more growth, and more than a share of what ``names`` counted in the same time:
    during the visit, or since an earlier run where the visit saw none."""
    span = counters.visit if found.visit.added or counters.since is None else counters.since
    grown = found.visit if span is counters.visit else found.since
    arrived = growth(span, names).total
    if grown is None or not arrived:
        return False
    return grown.total >= least and grown.total > share * arrived


def _places(subject: Rail | Accelerator) -> dict[str, str]:
    """What the subject fills into a remedy's command."""
    if isinstance(subject, Accelerator):
        return {"npu": str(subject.index)}
    named = {"netdev": subject.netdev or "?", "hca": subject.hca, "pci": subject.pci or "?"}
    return {**named, "port": str(subject.port)}


def absent(rail: Rail, what: str) -> Verdict:
    """None of the counters is there, which is not the same as zero."""
    if rail.driver in KNOWN_DRIVERS:
        return undecidable(
            f"{rail.label}: driver {rail.driver} shows no counter of {what}",
            turn_on="read it on the host that owns the port, or update the driver",
        )
    return not_applicable(f"driver {rail.driver or 'unknown'} counts no {what}")
