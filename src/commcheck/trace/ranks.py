"""What only several ranks together tell: clocks, skew, the straggler, the bandwidth of the wire."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from commcheck.trace.facts import Call, JobFacts, RankFacts, Skew, Wire
from commcheck.trace.names import POINT_TO_POINT

_Key = tuple[str, str, int, int, str]
"""Kind, group, sequence or ordinal, step (by ordinal only), stream (by ordinal only)."""

_Together = tuple[Call, ...]
"""One collective as each rank saw it, in the order of the ranks."""


def job_of(ranks: Sequence[RankFacts]) -> JobFacts:
    """The facts of a job from those of its ranks, in order of rank."""
    ordered = sorted(ranks, key=lambda each: (each.rank is None, each.rank or 0, each.file))
    notes: list[str] = []
    matched = match([rank.calls for rank in ordered], notes) if len(ordered) > 1 else []
    skew = _skew(ordered, matched) if matched else None
    if len(ordered) > 1 and not matched and any(rank.layout != "table" for rank in ordered):
        notes.append("no collective could be matched across ranks: stragglers are not judged")
    wires = _wires(matched) if matched else _wires([(call,) for r in ordered for call in r.calls])
    return JobFacts(tuple(ordered), skew, wires, tuple(notes))


def match(calls: Sequence[Sequence[Call]], notes: list[str]) -> list[_Together]:
    """The collectives that all ranks take part in, without send and receive.

    By sequence number within the group where every call has its own, else by ordinal within step,
    group and stream. Groups of other ranks than all are left out; kinds whose counts differ
    between ranks are not matched, and ``notes`` says so.
    """
    by_rank = [_by_key(mine, len(calls)) for mine in calls]
    families = [Counter(key[:2] for key in mine) for mine in by_rank]
    uneven = {
        family
        for family in set().union(*families)
        if len({counts[family] for counts in families}) > 1
        # A group that one rank never speaks in is not a group of all.
        and all(counts[family] for counts in families)
    }
    for kind, group in sorted(uneven):
        counts = ", ".join(str(each[(kind, group)]) for each in families)
        of = f" of group {group}" if group else ""
        notes.append(f"{kind}{of}: the ranks count {counts} calls; they are not matched")
    return [
        tuple(mine[key] for mine in by_rank)
        for key in by_rank[0]
        if key[:2] not in uneven and all(key in mine for mine in by_rank)
    ]


def _by_key(calls: Iterable[Call], ranks: int) -> dict[_Key, Call]:
    keyed: dict[_Key, Call] = {}
    ordinals: Counter[tuple[object, ...]] = Counter()
    calls = [
        call
        for call in calls
        if call.transfer.kind not in POINT_TO_POINT
        # Untold (0), or large enough to hold every rank that there is a trace of.
        and not 0 < call.transfer.group_size < ranks
    ]
    seqs = Counter((call.transfer.kind, call.transfer.group, call.seq) for call in calls)
    for call in sorted(calls, key=lambda each: each.start):
        kind, group = call.transfer.kind, call.transfer.group
        if call.seq >= 0 and seqs[(kind, group, call.seq)] == 1:
            keyed[(kind, group, call.seq, -1, "")] = call
            continue
        # gloo hands collectives to whichever of its threads is free: on each rank another one.
        stream = "" if call.stream.startswith("thread ") else call.stream
        place = (kind, group, call.step, stream)
        keyed[(kind, group, ordinals[place], call.step, stream)] = call
        ordinals[place] += 1
    return keyed


def _skew(ranks: Sequence[RankFacts], matched: Sequence[_Together]) -> Skew:
    # All ranks leave a collective nearly together: what is left in the median is the clock.
    offsets = [
        int(median(calls[number].end - calls[0].end for calls in matched))
        for number in range(len(ranks))
    ]
    late: list[list[int]] = [[] for _ in ranks]
    wait = [0] * len(ranks)
    comm = [0] * len(ranks)
    spread: list[int] = []
    by_step: dict[int, list[int]] = defaultdict(lambda: [0] * (len(ranks) + 1))
    for calls in matched:
        starts = [call.start - offset for call, offset in zip(calls, offsets, strict=True)]
        first, last = min(starts), max(starts)
        spread.append(last - first)
        sums = by_step[calls[0].step]
        sums[-1] += last - first
        for number, start in enumerate(starts):
            late[number].append(start - first)
            sums[number] += start - first
            wait[number] += last - start
            comm[number] += calls[number].end - calls[number].start
    per_step = tuple(
        int(median(sums[number] for sums in by_step.values())) for number in range(len(ranks))
    )
    return Skew(
        ranks=tuple(rank.name for rank in ranks),
        collectives=len(matched),
        mean_ns=sum(spread) // len(spread),
        most_ns=max(spread),
        step_ns=int(median(sums[-1] for sums in by_step.values())),
        late_ns=tuple(sum(mine) // len(mine) for mine in late),
        late_step_ns=per_step,
        wait_ns=tuple(wait),
        comm_ns=tuple(comm),
        offset_ns=tuple(offsets),
    )


def _wires(matched: Iterable[_Together]) -> tuple[Wire, ...]:
    """Sums over the matched collectives with the least time any rank needed for each."""
    sums: dict[tuple[str, str, int], list[int]] = {}
    alone = True
    for calls in matched:
        alone = alone and len(calls) == 1
        what = calls[0].transfer
        if what.size_bytes is None or not what.group_size or what.kind in POINT_TO_POINT:
            continue
        total = sums.setdefault((what.kind, what.group, what.group_size), [0, 0, 0])
        total[0] += 1
        total[1] += what.size_bytes
        total[2] += max(1, min(call.end - call.start for call in calls))
    wires = (
        Wire(kind, group, size, count, moved, ns, includes_waiting=alone)
        for (kind, group, size), (count, moved, ns) in sums.items()
    )
    return tuple(sorted(wires, key=lambda wire: -wire.time_ns))
