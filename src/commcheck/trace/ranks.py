"""What only several ranks together tell: clocks, skew, the straggler, the bandwidth of the wire."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final

from commcheck.lazy import dataclass
from commcheck.trace.facts import JobFacts, RankFacts, Skew, Wire
from commcheck.trace.intervals import Span, length, union
from commcheck.trace.matching import Together, match
from commcheck.trace.names import POINT_TO_POINT

APART_NS: Final = 600_000_000_000
"""Traces that begin so far apart are not of the same steps, and numbers of collectives begin anew
with every start of a job. Source: commcheck; a profile takes seconds, and clocks of hosts that no
server sets drift by some seconds a day."""


def job_of(ranks: Sequence[RankFacts]) -> JobFacts:
    """The facts of a job from those of its ranks, in order of rank."""
    ordered = sorted(ranks, key=lambda each: (each.rank is None, each.rank or 0, each.file))
    notes: list[str] = []
    several = len(ordered) > 1
    pipes = frozenset[str]().union(*(rank.pipes for rank in ordered))
    apart_ns = _apart(ordered)
    is_one = several and apart_ns <= APART_NS
    matched = match([rank.calls for rank in ordered], notes, pipes) if is_one else []
    skew = _skew(ordered, matched) if matched else None
    if apart_ns > APART_NS:
        notes.append(
            f"the traces begin {apart_ns / 60e9:.0f} min apart, as those of several runs: they are "
            "not compared, and stragglers are not judged; give those of one run"
        )
    elif several and not matched and any(rank.layout != "table" for rank in ordered):
        crossed = " within a pipeline's stages" if pipes else ""
        named = any(rank.layout == "ascend" for rank in ordered)
        advice = "; leave profiler_metadata.json, which tells the groups, in its place"
        notes.append(
            f"no collective{crossed} could be matched across ranks: stragglers are not judged"
            f"{advice if named else ''}"
        )
    wires = _wires(matched or [{0: call} for rank in ordered for call in rank.calls])
    return JobFacts(tuple(ordered), skew, wires, tuple(notes))


def _apart(ranks: Sequence[RankFacts]) -> int:
    begun = [rank.began_ns for rank in ranks if rank.began_ns]
    return max(begun) - min(begun) if begun else 0


@dataclass(slots=True)
class _Rank:
    """What is summed up of a rank; spans by step."""

    late: list[int]
    waits: int
    comm: int
    mates: int
    late_spans: dict[int, list[Span]]
    all_spans: dict[int, list[Span]]  # from the first begin of a collective to the last


def _skew(ranks: Sequence[RankFacts], matched: Sequence[Together]) -> Skew:
    offsets = _offsets(len(ranks), matched)
    sums = [_Rank([], 0, 0, 0, defaultdict(list), defaultdict(list)) for _ in ranks]
    spread: list[int] = []
    of_group: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for calls in matched:
        starts = {place: call.start - offsets[place] for place, call in calls.items()}
        first, last = min(starts.values()), max(starts.values())
        spread.append(last - first)
        of = of_group[tuple(calls)]
        for place, start in starts.items():
            mine, call = sums[place], calls[place]
            mine.late.append(start - first)
            mine.late_spans[call.step].append((first, start))
            mine.all_spans[call.step].append((first, last))
            mine.waits += last - start
            of[place] += call.end - call.start
    for of in of_group.values():
        least, second = sorted(of.values())[:2]
        for place, own in of.items():
            sums[place].comm += own
            sums[place].mates += second if own == least else least
    return Skew(
        ranks=tuple(rank.name for rank in ranks),
        collectives=len(matched),
        mean_ns=sum(spread) // len(spread),
        most_ns=max(spread),
        step_ns=max(_typical(mine.all_spans) for mine in sums),
        late_ns=tuple(sum(mine.late) // max(1, len(mine.late)) for mine in sums),
        late_step_ns=tuple(_typical(mine.late_spans) for mine in sums),
        wait_ns=tuple(mine.waits for mine in sums),
        comm_ns=tuple(mine.comm for mine in sums),
        mates_ns=tuple(mine.mates for mine in sums),
        offset_ns=tuple(offsets),
    )


def _typical(spans: Mapping[int, Sequence[Span]]) -> int:
    """The time of a step, median over steps. What is late at once is so once."""
    return int(median(length(union(mine)) for mine in spans.values())) if spans else 0


def _offsets(ranks: int, matched: Sequence[Together]) -> list[int]:
    """Each rank's clock against that of the first one it meets, directly or by others.

    All ranks leave a collective nearly together: what is left in the median is the clock.
    """
    apart: dict[tuple[int, int], list[int]] = defaultdict(list)
    for calls in matched:
        (one, first), *others = calls.items()
        for other, call in others:
            apart[one, other].append(call.end - first.end)
    found: dict[int, int] = {}
    # Those who meet most often are told best: a tree of such pairs, by whoever is known already.
    pairs = sorted(apart, key=lambda pair: (-len(apart[pair]), pair))
    for root in range(ranks):
        found.setdefault(root, 0)
        while pair := next((p for p in pairs if (p[0] in found) != (p[1] in found)), None):
            one, other = pair
            between = int(median(apart[pair]))
            if one in found:
                found[other] = found[one] + between
            else:
                found[one] = found[other] - between
    return [found[place] for place in range(ranks)]


def _wires(matched: Iterable[Together]) -> tuple[Wire, ...]:
    """Sums over the matched collectives with the least time any rank needed for each."""
    sums: dict[tuple[str, str, int], list[int]] = {}
    alone = True
    for calls in matched:
        alone = alone and len(calls) == 1
        what = next(iter(calls.values())).transfer
        if what.size_bytes is None or not what.group_size or what.kind in POINT_TO_POINT:
            continue
        total = sums.setdefault((what.kind, what.group, what.group_size), [0, 0, 0])
        total[0] += 1
        total[1] += what.size_bytes
        total[2] += max(1, min(call.end - call.start for call in calls.values()))
    wires = (
        Wire(kind, group, size, count, moved, ns, includes_waiting=alone)
        for (kind, group, size), (count, moved, ns) in sums.items()
    )
    return tuple(sorted(wires, key=lambda wire: -wire.time_ns))
