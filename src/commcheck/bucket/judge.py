"""From an advice to a verdict, a picture and the lines that a person came for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from commcheck.bucket.advice import LATENCY_FACTOR, Advice
from commcheck.bucket.layout import DDP, DEEPSPEED, MIB
from commcheck.bucket.link import Link
from commcheck.bucket.work import Work
from commcheck.check import failed, limit, passed, undecidable, warned
from commcheck.frameworks import causes
from commcheck.lazy import dataclass
from commcheck.model import Cause, Figure, Remedy, Status, Verdict, Words


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a predicted gain becomes a warning or a failure."""

    gain_warn: float = limit(
        0.02, unit="of the step", source="commcheck: run-to-run noise of a healthy job"
    )
    gain_fail: float = limit(
        0.10, unit="of the step", source="commcheck: twice what predicted and measured steps differ"
    )
    gain_sure: float = limit(
        0.02, unit="of the step", source="commcheck: the least gain of all doubts, to fail"
    )
    misfit: float = limit(
        0.10,
        unit="of the traced step",
        source="commcheck: by as much predicted and measured steps differ where the inputs fit",
    )


_REMEDY: Final[Mapping[str, Remedy]] = {
    "ddp": causes.DDP_BUCKET,
    "deepspeed": causes.DEEPSPEED_BUCKET,
    "megatron": causes.MEGATRON_BUCKET,
}


def judge(
    advice: Advice,
    work: Work,
    link: Link,
    limits: Limits,
    traced: tuple[float, float] | None = None,
) -> tuple[Verdict, ...]:
    """One verdict on the size; one more where no size hides the communication.

    ``traced``: the step in us as it was measured, and as it is predicted with its own buckets.
    """
    doubt = _doubt(advice, link, limits, traced)
    if doubt is not None:
        return (replace(doubt, figures=(figure(advice, work),)),)
    verdicts = [_on_size(advice, limits)]
    if advice.wire_bound:
        verdicts.append(
            warned(
                causes.WIRE_BOUND,
                f"{work.total_bytes / 1e6:.1f} MB of gradients take {advice.wire_us / 1e3:.1f} ms "
                f"on the wire, and the backward pass takes {work.backward_us / 1e3:.1f} ms: at "
                f"best {advice.best.exposed_us / 1e3:.1f} ms stay exposed",
                measured={
                    "gradients_bytes": round(work.total_bytes),
                    "wire_ms": round(advice.wire_us / 1e3, 3),
                    "backward_ms": round(work.backward_us / 1e3, 3),
                },
                rule="wire-bound",
            )
        )
    verdicts[0] = replace(verdicts[0], figures=(figure(advice, work),))
    return tuple(verdicts)


def _doubt(
    advice: Advice, link: Link, limits: Limits, traced: tuple[float, float] | None
) -> Verdict | None:
    """Why the inputs do not carry an advice."""
    now = advice.now
    if traced is not None and abs(traced[1] / traced[0] - 1) > limits.misfit:
        return undecidable(
            f"the traced step took {traced[0] / 1e3:.1f} ms, and with this network ({link.source}) "
            f"it is predicted with {traced[1] / 1e3:.1f} ms: they do not belong together",
            turn_on="give a sweep of the job's own hosts and ranks",
        )
    if now.mean_bytes < link.least_bytes:
        return undecidable(
            f"{link.source} begins at {link.least_bytes / 1e6:.1f} MB, and the buckets have "
            f"{now.mean_bytes / 1e6:.1f} MB",
            turn_on="sweep from 8 bytes on (all_reduce_perf -b 8 -e 1G -f 2)",
        )
    return None


def _on_size(advice: Advice, limits: Limits) -> Verdict:
    best, now = advice.best, advice.now
    setting = advice.framework.told(best.cap or 0.0)
    measured = {
        "step_ms": round(now.step_us / 1e3, 3),
        "step_at_best_ms": round(best.step_us / 1e3, 3),
        "exposed_ms": round(now.exposed_us / 1e3, 3),
        "exposed_at_best_ms": round(best.exposed_us / 1e3, 3),
        "gain": round(advice.gain, 4),
        "gain_low": round(advice.gain_low, 4),
        "gain_high": round(advice.gain_high, 4),
        "buckets": now.buckets,
        "buckets_at_best": best.buckets,
        "best": best.cap,
    }
    if advice.gain < limits.gain_warn:
        why = "no bucket size makes a difference" if advice.flat else _within(advice)
        return passed(f"{advice.compared.told}: {why}", measured=measured)
    is_small = now.largest_bytes < best.largest_bytes
    cause: Cause = causes.TOO_SMALL if is_small else causes.TOO_LARGE
    reason = (
        f"{advice.compared.told}: {_count(now.buckets)} and a step of "
        f"{now.step_us / 1e3:.1f} ms, {now.exposed_us / 1e3:.1f} ms of it exposed; {setting}: "
        f"{best.step_us / 1e3:.1f} ms, {advice.gain:.0%} less "
        f"({advice.gain_low:.0%} to {advice.gain_high:.0%})"
    )
    is_fail = (
        advice.compared.is_known
        and advice.gain >= limits.gain_fail
        and advice.gain_low >= limits.gain_sure
    )
    value = f"{best.cap:.0f}" if advice.framework.in_elements else f"{best.cap:g}"
    find = failed if is_fail else warned
    verdict = find(cause, reason, measured=measured, rule="predicted-gain", value=value)
    mine = _REMEDY[advice.framework.name].effect
    return replace(
        verdict, remedies=tuple(each for each in verdict.remedies if each.effect == mine)
    )


def _within(advice: Advice) -> str:
    exposed = advice.now.exposed_us / 1e3
    gain = max(advice.gain, 0.0)
    return (
        f"a step of {advice.now.step_us / 1e3:.1f} ms, {exposed:.1f} ms of it exposed, within "
        f"{gain:.1%} of the best size"
    )


def _count(buckets: int) -> str:
    return "1 bucket" if buckets == 1 else f"{buckets} buckets"


# --- the screen ---------------------------------------------------------------------------------


def screen(advice: Advice, work: Work, link: Link, verdicts: tuple[Verdict, ...]) -> list[str]:
    """What to set and what it brings, for a terminal of 100 columns."""
    best, now = advice.best, advice.now
    setting = advice.framework.told(best.cap or 0.0)
    lines = [
        f"{advice.framework.title}: {work.total_bytes / 1e6:.1f} MB of gradients, backward "
        f"{work.backward_us / 1e3:.1f} ms, step without communication {work.alone_us / 1e3:.1f} ms",
        f"  network      {link.alpha_us:.0f} us + bytes / {link.beta_gbytes:.1f} GB/s "
        f"({link.source})",
        f"  now          {now.step_us / 1e3:8.1f} ms, {now.exposed_us / 1e3:7.1f} ms exposed, "
        f"{_count(now.buckets)}: {advice.compared.told}",
        f"  {_label(advice)}{best.step_us / 1e3:8.1f} ms, {best.exposed_us / 1e3:7.1f} ms exposed, "
        f"{_count(best.buckets)}: {setting}{_same(advice)}",
    ]
    if verdicts[0].status is Status.SKIP:
        return lines
    if verdicts[0].status is Status.PASS:
        lines.append("set: no change" + (", the curve is flat" if advice.flat else ""))
    else:
        lines.append(
            f"set: {setting}: the step takes {advice.gain:.0%} less ({advice.gain_low:.0%} to "
            f"{advice.gain_high:.0%} if the inputs are off)"
        )
    changes = verdicts[0].status is not Status.PASS
    memory = advice.memory_bytes if changes else advice.memory_now_bytes
    lines += _remarks(advice, work, memory, is_low=link.is_measured_low)
    return lines


def _label(advice: Advice) -> str:
    """Of sizes that are as good as each other the largest is named, which may be the slower one."""
    return "best         " if advice.best.step_us <= advice.now.step_us else "as good      "


def _same(advice: Advice) -> str:
    low, high = advice.same
    if low == high:
        return ""
    if advice.framework.in_elements:
        return f" ({low:.3g} to {high:.3g} give the same buckets)"
    return f" ({low:g} to {high:g} give the same buckets)"


def _remarks(advice: Advice, work: Work, memory_bytes: float | None, *, is_low: bool) -> list[str]:
    """What else to know; ``memory_bytes``: of the size that is to be set, or to be left."""
    lines = []
    if is_low:
        half = LATENCY_FACTOR * advice.half_bytes
        lines.append(
            f"  below {half / 1e6:.2g} MB ({LATENCY_FACTOR} x latency x bandwidth) a bucket is "
            "bound by latency"
        )
    if advice.framework is DEEPSPEED and memory_bytes is not None:
        lines.append(
            f"  memory       {memory_bytes / 1e9:.2f} GB for buckets of this size "
            "(4.5 x its bytes, with overlap_comm)"
        )
        if advice.capped:
            lines.append("  the free memory rules out what would be better")
    if advice.framework is DDP:
        lines.append(
            f"  memory       {work.total_bytes / 1e9:.2f} GB for buckets of any size, none with "
            "gradient_as_bucket_view=True"
        )
    if advice.dominant:
        lines.append(f"  one gradient of {max(work.sizes) / 1e6:.1f} MB decides: it is never split")
    return lines


# --- the picture --------------------------------------------------------------------------------


def figure(advice: Advice, work: Work) -> Figure:
    """Step and exposed time over the bucket size; beyond all gradients nothing changes."""
    unit, scale = ("M elements", 1e6) if advice.framework.in_elements else ("MiB", 1.0)
    shown = []
    for each in advice.outcomes:
        shown.append(each)
        if each.cap_bytes > work.total_bytes:
            break
    points = [((each.cap or 0.0) / scale, each) for each in shown]
    best = advice.best
    marks = [
        {
            "x": (best.cap or 0.0) / scale,
            "y": round(best.step_us / 1e3, 3),
            "text": f"set {best.step_us / 1e3:.1f} ms",
        }
    ]
    now = advice.compared
    at = now.value if now.value is not None else _as_value(advice, work)
    marks.append({"x": at / scale, "y": round(advice.now.step_us / 1e3, 3), "text": "now"})
    return Figure(
        form="curve",
        title=Words(
            f"Predicted step over bucket size, {advice.framework.title}, {work.name}",
            f"预测步时间与桶大小，{advice.framework.title}，{work.name}",
        ),
        data={
            "x": {"label": "bucket size", "unit": unit, "log": True},
            "y": {"label": "time", "unit": "ms"},
            "series": [
                {
                    "name": "step",
                    "style": "predicted",
                    "points": [[x, round(each.step_us / 1e3, 3)] for x, each in points],
                },
                {
                    "name": "exposed",
                    "style": "other",
                    "points": [[x, round(each.exposed_us / 1e3, 3)] for x, each in points],
                },
            ],
            "lines": [{"name": "without communication", "y": round(work.alone_us / 1e3, 3)}],
            "marks": marks,
        },
    )


def _as_value(advice: Advice, work: Work) -> float:
    """The size that buckets which were observed come from, as nearly as they tell."""
    unit = work.element_bytes if advice.framework.in_elements else MIB
    return advice.now.largest_bytes / unit
