"""The picture of one step: what computes, what communicates, and where the lanes are blank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from commcheck.model import Figure, Verdict, Words
from commcheck.trace.facts import JobFacts, Lane, RankFacts
from commcheck.trace.intervals import Span, clip, intersect, subtract, union
from commcheck.trace.store import Transfer

SPANS_MOST: Final = 2000
"""Spans of one picture: more cannot be seen, and make a report heavy."""

_Labelled = tuple[int, int, str]
_Drawn = tuple[int, int, str, str]


def label_of(transfer: Transfer | None, name: str) -> str:
    """What a span of communication says: ``allreduce 25.0 MB``, else its kernel's name."""
    if transfer is None:
        return name[:48]
    if transfer.size_bytes is None:
        return transfer.kind
    return f"{transfer.kind} {transfer.size_bytes / 1e6:.3g} MB"


def lanes_of(
    compute: Sequence[Span],
    mem: Sequence[Span],
    comm: Mapping[str, Sequence[_Labelled]],
    start: int,
    end: int,
) -> tuple[Lane, ...]:
    """Lanes of a window: computing with its blanks, each stream that communicates, copies.

    Thinned to ``SPANS_MOST``: neighbours that are nearest to each other become one.
    """
    streams = sorted(comm, key=lambda stream: min(span[0] for span in comm[stream]))
    each = SPANS_MOST // (len(streams) + 2) // 2  # a span may be drawn in two parts
    busy = _thinned([(a, b, "") for a, b in compute], each)
    worked = union((a, b) for a, b, _ in busy)
    lanes = [
        Lane(
            "compute",
            tuple(
                sorted(
                    [(a, b, "compute", label) for a, b, label in busy]
                    + [(a, b, "blank", "") for a, b in subtract([(start, end)], worked)]
                )
            ),
        )
    ]
    for stream in streams:
        spans = _thinned(sorted(comm[stream]), each)
        lanes.append(Lane(f"communication {stream}", tuple(_parted(spans, worked))))
    if mem:
        copies = _thinned([(a, b, "") for a, b in mem], each)
        lanes.append(Lane("copy", tuple((a, b, "copy", label) for a, b, label in copies)))
    return tuple(lanes)


def _parted(spans: Sequence[_Labelled], worked: Sequence[Span]) -> list[_Drawn]:
    """Each span cut where computing begins and ends: hidden beneath it, or exposed."""
    drawn: list[_Drawn] = []
    for start, end, label in spans:
        near = clip(worked, start, end)
        hidden = intersect([(start, end)], near)
        drawn += [(a, b, "comm", label) for a, b in hidden]
        drawn += [(a, b, "exposed", label) for a, b in subtract([(start, end)], near)]
    drawn.sort()
    if len(drawn) <= SPANS_MOST // 2:
        return drawn
    # Long collectives above short kernels fall into crumbs: drawn whole, as what they mostly are.
    whole: list[_Drawn] = []
    for start, end, label in spans:
        covered = sum(b - a for a, b in clip(worked, start, end))
        whole.append((start, end, "comm" if 2 * covered >= end - start else "exposed", label))
    return whole


def _thinned(spans: Sequence[_Labelled], most: int) -> list[_Labelled]:
    """The same spans, the nearest neighbours joined until there are ``most`` at the utmost."""
    if len(spans) <= most:
        return list(spans)
    gaps = sorted(
        range(1, len(spans)), key=lambda at: spans[at][0] - spans[at - 1][1], reverse=True
    )
    kept = sorted(gaps[: most - 1])
    joined = []
    for first, last in zip([0, *kept], [*kept, len(spans)], strict=True):
        start, end = spans[first][0], max(span[1] for span in spans[first:last])
        label = spans[first][2] if last - first == 1 else f"{last - first} events"
        joined.append((start, end, label))
    return joined


def figure(rank: RankFacts) -> Figure:
    """The picture of a rank's median step, in ns from its begin."""
    step = next(each for each in rank.steps if each.name == rank.lanes_of)
    return Figure(
        form="lanes",
        title=Words(
            f"{rank.name}, {step.name}: {step.time_ns / 1e6:.2f} ms",
            f"{rank.name}，{step.name}：{step.time_ns / 1e6:.2f} ms",
        ),
        data={
            "unit": "ns",
            "span": [0, step.time_ns],
            "lanes": [
                {
                    "name": lane.name,
                    "spans": [
                        [a - step.start, b - step.start, *rest] for a, b, *rest in lane.spans
                    ],
                }
                for lane in rank.lanes
            ],
        },
    )


def pictured(job: JobFacts, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    """The verdicts with the lanes of the most exposed rank, where there are any."""
    worst = max(job.ranks, key=lambda rank: (bool(rank.lanes), rank.share("exposed_ns") or 0.0))
    if not worst.lanes:
        return verdicts
    return (replace(verdicts[0], figures=(figure(worst),)), *verdicts[1:])
