"""Carries out the plays that load: guards on every host, runs round by round, results.

On each host that takes part a *guard* session stays open: it took the host's lock, proved the
accelerators idle, read the counters, and waits. Runs are launched beside it, in sessions of their
own. When all is done, or commcheck is gone, every guard's host is swept of what carries the mark
of the run's jobs. Everything that is learnt from hosts goes through frames, so that a run that is
judged again, or goes on, does all of this from what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commcheck.check import AnyCheck, Span
from commcheck.collect.base import SUBJECTS, Frame, Sink
from commcheck.collect.errand import errand
from commcheck.collect.fleet import visit_all
from commcheck.counters import Growth, growth
from commcheck.jobs import ready
from commcheck.jobs.guards import (
    AFTER_S,
    AT_A_TIME,
    Guard,
    close_all,
    guards_of,
    head_guards,
    members_of,
    open_all,
)
from commcheck.jobs.job import Job, Member, Ran, Search
from commcheck.jobs.locate import locate
from commcheck.jobs.office import Office
from commcheck.jobs.rounds import Runner
from commcheck.lazy import dataclass
from commcheck.model import Host, Kind, Status, Verdict
from commcheck.report.cleaning import decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What came of one batch: the search, hosts that took no part and why, whether it was cut."""

    search: Search | None
    out: Mapping[str, Verdict]


def carry_out(
    check: AnyCheck,
    job: Job,
    hosts: Sequence[Host],
    limits: Any,
    office: Office,
    *,
    retries: int = 0,
    label: str = "",
) -> Batch:
    """Load ``hosts`` as the job plans it. ``label`` tells batches of one check apart in frames.

    ``retries``: how often a run that proved nothing is launched again.
    """
    name = f"{check.id}{label}"
    guards = guards_of(name, job, hosts, limits, office)
    heads = head_guards(name, job, hosts, limits, office)
    try:
        open_all({**guards, **heads}, office.stop)
        members, out = members_of(name, job, guards, office)
        launching, _ = members_of(name, job, heads, office, must_be_free=False)
        if office.stop.is_set():
            return Batch(search=None, out={})
        if len(members) < job.least:
            why = f"it takes {job.least} free hosts, and {len(members)} of {len(hosts)} are"
            few = Verdict(status=Status.SKIP, kind=Kind.UNDECIDABLE, reason=f"undecidable: {why}")
            return Batch(search=None, out={**out, **dict.fromkeys(members, few)})
        ran = Runner(name, job, members, launching, limits, office, retries).search()
    finally:
        close_all({**guards, **heads})
    grown = _afterwards(name, guards, members, office)
    if office.stop.is_set():
        return Batch(search=None, out={})
    return Batch(search=_search(members, ran, grown), out=out)


def _search(
    members: Mapping[str, Member], ran: Sequence[Ran], grown: Mapping[str, Growth]
) -> Search:
    names = tuple(members)
    leaves = {name: m.site.leaf_name for name, m in members.items() if m.site.leaf_name}
    return Search(
        hosts=names,
        ran=tuple(ran),
        located=locate(names, [each.outcome for each in ran], leaves),
        growth=grown,
        floor_gbytes=max((floor for each in ran for floor in _floors(each)), default=None),
    )


def _floors(ran: Ran) -> Iterator[float]:
    """The least busbw that would have passed, from the picture of the run."""
    for figure in (figure for verdict in ran.verdicts for figure in verdict.figures):
        for line in figure.data.get("lines", ()):  # type: ignore[attr-defined] # plain JSON
            if line["name"] == "least that passes":
                yield float(line["y"])


def _afterwards(
    name: str, guards: Mapping[str, Guard], members: Mapping[str, Member], office: Office
) -> dict[str, Growth]:
    """Sweep the members, and read the loss counters once more; what they grew by, by host."""
    at = f"after {name}"
    frames: dict[str, dict[str, Frame]] = {host: {} for host in members}

    def sink_for(host: Host) -> Sink:
        def sink(*arrived: Frame) -> None:
            for frame in arrived:
                if frame.key != SUBJECTS:
                    office.keep(host.name, frame)
                    frames[host.name][frame.key] = frame

        return sink

    visit_all(
        [member.host for member in members.values()],
        visitor_for=lambda host: errand(office.visitor_for(host), "", AFTER_S),
        ask_for=lambda host: lambda _frame: ready.after(at, members[host.name].machine),
        sink_for=sink_for,
        forks=AT_A_TIME,
        started=lambda _host: None,
        done=lambda _host, _error: None,
        stop=office.stop,
    )
    grown = {}
    for host, member in members.items():
        ended, resist = ready.left_behind(at, frames[host], decode)
        if ended:
            office.note(f"{ended} processes of this run were left on {host}, and were ended")
        if resist:
            office.note(f"processes of this run do not end on {host}, ids {', '.join(resist)}")
        held = ready.still_held(at, frames[host], decode)
        if held:
            office.note(f"after the runs on {host}, {held}")
        first = ready.counters(f"before {name}", member.machine, guards[host].frames, decode)
        last = ready.counters(at, member.machine, frames[host], decode)
        if first.values and last.values:
            begun = min(frame.started_s for frame in guards[host].frames.values())
            seconds = max(0.0, max(frame.ended_s for frame in frames[host].values()) - begun)
            grown[host] = growth(Span(first, last, seconds), tuple(first.values))
    return grown
