"""Is a sweep as steady as it should be: it neither falls at its end, nor dips, varies or waits."""

from __future__ import annotations

from commcheck.check import failed, warned
from commcheck.jobs import causes
from commcheck.jobs.fit import LARGE
from commcheck.jobs.reading import MIB, Sweep, median, size_text
from commcheck.jobs.signature import collapse
from commcheck.jobs.sweep_seen import Seen, name_of, signature_of
from commcheck.model import Status, Verdict


def unsteady(seen: Seen, status: Status) -> Verdict | None:
    """Collapse, placement and spread beyond the limit of a status; the first that is."""
    limits, fails = seen.limits, status is Status.FAIL
    judged = failed if fails else warned
    left = collapse(seen.shape)
    if left is not None and left < (limits.collapse_fail if fails else limits.collapse_warn):
        best_size, best = max(seen.shape.at_least(16 * MIB), key=lambda point: point[1])
        cause, extra = causes.LOSS, ""
        if seen.expected is not None and seen.fraction is not None:
            found = signature_of(seen, seen.expected, seen.fraction)
            cause, extra = found.cause, f"; {found.text}"
            if seen.hosts == 1:
                cause = causes.NVLINK_DEGRADED
        return judged(
            cause,
            f"{name_of(seen)}: busbw falls from {best:.1f} GB/s at {size_text(best_size)} to "
            f"{seen.shape.last:.1f} at {size_text(seen.shape.last_size)}, {left:.0%} of the best"
            f"{_of_bound(seen)}, want {limits.collapse_warn:.0%}{extra}",
            rule="collapse",
        )
    far = limits.placement_fail if fails else limits.placement_warn
    apart = [(size, each) for size, each in seen.shape.placement if each > far]
    # One outlier is a warning: healthy tables have single ones of 8 %.
    if len(apart) >= 2 or (apart and not fails):
        size, most = max(apart, key=lambda each: each[1])
        return judged(
            causes.UNSTEADY,
            f"{name_of(seen)}: out of place and in place differ by {most:.0%} at "
            f"{size_text(size)}, want {limits.placement_warn:.0%}",
            rule="placement",
        )
    spread = max(seen.shape.spread or 0.0, _iteration_spread(seen.sweep))
    if spread > (limits.spread_fail if fails else limits.spread_warn):
        return judged(
            causes.UNSTEADY,
            f"{name_of(seen)}: repeats vary by {spread:.0%} at {size_text(LARGE)} and more, want "
            f"{limits.spread_warn:.0%}",
            rule="spread",
        )
    return None


def dip(seen: Seen) -> Verdict | None:
    """One size lies under both of its neighbours."""
    points = seen.shape.at_least(MIB)
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        low = min(before[1], after[1])
        # Below 1 GB/s two decimals say too little.
        if low >= 1.0 and here[1] < seen.limits.dip_warn * low:
            return warned(
                causes.DIP,
                f"{name_of(seen)}: {here[1]:.1f} GB/s at {size_text(here[0])} lies under both "
                f"neighbours ({before[1]:.1f} and {after[1]:.1f}), want {seen.limits.dip_warn:.0%}",
                rule="dip",
            )
    return None


def _iteration_spread(sweep: Sweep) -> float:
    """The spread of single iterations without the slowest: that one has its own rule."""
    worst = 0.0
    for row in sweep.rows:
        for half in row.halves:
            times = half.iterations
            if times is None or row.size < LARGE:
                continue
            count = len(times.times_us) or sweep.iterations or 0
            if count < 4 or half.time_us <= 0:
                continue
            variance = (times.cv_percent / 100 * half.time_us) ** 2
            outlier = (times.max_us - half.time_us) ** 2 / (count - 1)
            worst = max(
                worst, max(variance - outlier * count / (count - 1), 0.0) ** 0.5 / half.time_us
            )
    return worst


def slow_iteration(seen: Seen) -> Verdict | None:
    """A single iteration took much longer than the typical one."""
    worst = (0.0, 0, "")
    for row in seen.sweep.rows:
        for half in row.halves:
            times = half.iterations
            if times is None or row.size < LARGE:
                continue
            middle = median(times.times_us) if times.times_us else half.time_us
            ratio = times.max_us / middle if middle > 0 else 0.0
            which = ""
            if times.times_us:
                which = f"iteration {times.times_us.index(max(times.times_us))}"
            if times.by_process_us:
                slowest = max(
                    range(len(times.by_process_us)),
                    key=lambda p: max(times.by_process_us[p], default=0.0),
                )
                which += f" of process {slowest}"
            worst = max(worst, (ratio, row.size, which))
    ratio, size, which = worst
    if ratio <= seen.limits.slow_iteration_warn:
        return None
    return warned(
        causes.SLOW_ITERATION,
        f"{name_of(seen)}: {which or 'one iteration'} took {ratio:.1f} x the typical time at "
        f"{size_text(size)}, want {seen.limits.slow_iteration_warn:g} x",
        rule="slow-iteration",
    )


def latency(seen: Seen) -> Verdict | None:
    """Small messages take longer than on healthy hosts."""
    alpha = seen.shape.alpha_us
    most = {1: seen.limits.latency_node_us, 2: seen.limits.latency_pair_us}.get(seen.hosts or 0)
    # hccl_test measures from the host, with its launch: other numbers, and no reference.
    if alpha is None or most is None or alpha <= most or seen.sweep.tool == "hccl_test":
        return None
    return warned(
        causes.LATENCY,
        f"{name_of(seen)}: messages up to 64 KiB take {alpha:.0f} us, want {most:.0f} us",
        rule="latency",
    )


def _of_bound(seen: Seen) -> str:
    if seen.expected is None or seen.fraction is None:
        return ""
    return f", and {seen.fraction:.0%} of {seen.expected.gbytes:.4g} GB/s ({seen.expected.sum})"
