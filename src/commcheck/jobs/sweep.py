"""Is a sweep as fast as the hardware allows, as steady as it should be, and is its data right?

The curve is kept: never a conclusion from ``Avg bus bandwidth``, which depends on where the sweep
starts. A verdict shows the value measured, the sum that gives the bound, the fraction, and which
known fault the curve looks like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from commcheck.check import failed, limit, passed, undecidable, warned
from commcheck.jobs import causes
from commcheck.jobs.bound import Expectation, Fabric, expectation, hosts_of
from commcheck.jobs.curve import curve
from commcheck.jobs.fit import LARGE, Shape, shape
from commcheck.jobs.proof import Asked, disproved
from commcheck.jobs.reading import GIB, MIB, Sweep, median, size_text
from commcheck.jobs.signature import Case, Signature, classify, collapse
from commcheck.jobs.witness import Witness, hear
from commcheck.lazy import dataclass
from commcheck.model import Status, Verdict

_PRACTICE: Final = "between public practice (0.60 to 0.95) and healthy tables (0.91 to 0.97)"
_TABLES: Final = "public nccl-tests tables of healthy clusters"


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares are of the bound or reference; sizes are in bytes as printed."""

    network_pass: float = limit(0.85, unit="of the network bound", source=_PRACTICE)
    reference_pass: float = limit(0.90, unit="of the reference", source=_PRACTICE)
    warn_from: float = limit(0.70, unit="of bound or reference", source=_PRACTICE)
    above_ceiling: float = limit(1.03, unit="of the hard bound", source="rounding of two decimals")
    collapse_fail: float = limit(0.70, unit="of the best, at the last size", source=_TABLES)
    collapse_warn: float = limit(0.85, unit="of the best, at the last size", source=_TABLES)
    dip_warn: float = limit(
        0.80, unit="of the lower neighbour", source="healthy dips reach 0.86 at an algorithm change"
    )
    placement_fail: float = limit(0.20, unit="out of place against in place", source=_TABLES)
    placement_warn: float = limit(0.10, unit="out of place against in place", source=_TABLES)
    spread_fail: float = limit(0.15, unit="coefficient of variation", source=_TABLES)
    spread_warn: float = limit(0.05, unit="coefficient of variation", source=_TABLES)
    slow_iteration_warn: float = limit(1.5, unit="of the median iteration", source=_TABLES)
    latency_node_us: float = limit(120.0, unit="us", source="3 x 40 us, healthy single hosts")
    latency_pair_us: float = limit(240.0, unit="us", source="3 x 80 us, healthy RDMA pairs")


@dataclass(frozen=True, slots=True)
class _Seen:
    """One run with all that was worked out of it."""

    sweep: Sweep
    shape: Shape
    hosts: int | None
    fabric: Fabric
    witness: Witness
    expected: Expectation | None
    missing: str
    value: float  # busbw that is judged, GB/s
    extrapolated: bool
    limits: Limits

    @property
    def fraction(self) -> float | None:
        return None if self.expected is None else self.value / self.expected.gbytes


def judge(
    sweep: Sweep, fabric: Fabric, asked: Asked | None = None, limits: Limits | None = None
) -> tuple[Verdict, ...]:
    """The verdicts on one run: one that stands for the run, and warnings beside it."""
    asked, limits = asked or Asked(), limits or Limits()
    why_not = disproved(sweep, asked)
    if why_not is not None:
        return (replace(why_not, measured={**_run(sweep), **why_not.measured}),)
    form = shape(sweep.rows)
    if form is None:
        return (undecidable("every row of the sweep is empty", turn_on="use larger sizes"),)
    hosts = hosts_of(sweep, asked.host_count)
    expected, missing = expectation(sweep, fabric, hosts)
    value, extrapolated = _value(form)
    seen = _Seen(
        sweep,
        form,
        hosts,
        fabric,
        hear(sweep.log),
        expected,
        missing,
        value,
        extrapolated,
        limits,
    )
    return tuple(_dressed(verdict, seen) for verdict in _verdicts(seen))


def _verdicts(seen: _Seen) -> tuple[Verdict, ...]:
    wrong = _wrong_data(seen)
    if wrong is not None:
        return (wrong,)
    main = _steadiness(seen, Status.FAIL) or _level(seen)
    if main.status is Status.FAIL:
        return (main,)
    beside = [_steadiness(seen, Status.WARN), _dip(seen), _slow_iteration(seen), _latency(seen)]
    return (main, *(verdict for verdict in beside if verdict is not None))


# --- data ---------------------------------------------------------------------------------------


def _wrong_data(seen: _Seen) -> Verdict | None:
    sweep = seen.sweep
    if not sweep.out_of_bounds and not sweep.wrong and not sweep.failed_ranks:
        return None
    sizes = ", ".join(size_text(size) for size in sweep.wrong) or "sizes not named"
    ranks = ", ".join(map(str, sweep.failed_ranks))
    by = f", told by ranks {ranks}" if ranks else ""
    return failed(
        causes.WRONG_DATA,
        f"{_name(seen)}: wrong data at {sizes}{by}; want none. Its {seen.shape.peak:.1f} GB/s "
        "prove nothing",
        rule="data",
    )


# --- level --------------------------------------------------------------------------------------


def _value(form: Shape) -> tuple[float, bool]:
    """The busbw to judge: the best at 1 GiB and more, carried on where the sweep ends there."""
    large = [busbw for size, busbw in form.points if size >= GIB]
    best = max(large, default=form.peak)
    if form.last_size > GIB or form.asymptote is None:
        return best, False
    carried = min(form.asymptote, 1.1 * form.peak)
    return (carried, True) if carried > best else (best, False)


def _level(seen: _Seen) -> Verdict:
    expected, fraction = seen.expected, seen.fraction
    if expected is None or fraction is None:
        what = "" if _has_busbw(seen.sweep) else " algorithm bandwidth"
        return undecidable(
            f"{_name(seen)}: {seen.value:.1f} GB/s{what}{_at(seen)}, and nothing to hold it "
            "against",
            turn_on=seen.missing,
        )
    if expected.ceiling and seen.shape.peak > expected.ceiling * seen.limits.above_ceiling:
        return undecidable(
            f"{_name(seen)}: {seen.shape.peak:.1f} GB/s is more than the network can carry "
            f"({expected.sum})",
            turn_on="correct --nic-gbps and --rails, or the algorithm given; or the hosts share an "
            "NVLink domain: then give --reference",
        )
    says = (
        f"{_name(seen)}: busbw {seen.value:.1f} GB/s{_at(seen)} is {_percent(fraction)} of "
        f"{expected.gbytes:.4g} GB/s ({expected.sum})"
    )
    network = expected.kind == "network"
    enough = seen.limits.network_pass if network else seen.limits.reference_pass
    if fraction >= enough:
        return passed(says + _proves_less(seen))
    if not _plateau(seen.shape):
        return undecidable(
            f"{says}, but the curve still rises at its last size",
            turn_on="run the sweep to 8 GiB: -b 1G -e 8G -f 2 -w 5 -n 20",
        )
    found = _signature(seen, expected, fraction)
    judged = failed if fraction < seen.limits.warn_from else warned
    return judged(found.cause, f"{says}, want {enough:.0%}; {found.text}", rule="level")


def _signature(seen: _Seen, expected: Expectation, fraction: float) -> Signature:
    return classify(
        Case(
            seen.sweep,
            seen.shape,
            expected,
            seen.hosts or 1,
            seen.fabric,
            seen.witness,
            fraction,
        )
    )


def _plateau(form: Shape) -> bool:
    """The curve has stopped rising: its last step is below 10 %, or it was sized to the end."""
    if len(form.points) < 2 or form.last_size >= GIB:
        return True
    return form.points[-1][1] < 1.10 * form.points[-2][1]


def _proves_less(seen: _Seen) -> str:
    notes = []
    if seen.expected is not None and seen.expected.hides > 1.05:
        notes.append(
            f"a tree may hide a network {seen.expected.hides:.2f} x slower than this: "
            "NCCL_ALGO=Ring or all_gather proves the NICs"
        )
    if seen.sweep.split and not seen.sweep.slowest:
        notes.append("times of all groups may be averaged: one slow group hides without -a 3")
    if seen.sweep.validation is False:
        notes.append("the data was not checked")
    return f"; {'; '.join(notes)}" if notes else ""


# --- shape --------------------------------------------------------------------------------------


def _steadiness(seen: _Seen, status: Status) -> Verdict | None:
    """Collapse, placement and spread beyond the limit of a status; the first that is."""
    limits, fails = seen.limits, status is Status.FAIL
    judged = failed if fails else warned
    left = collapse(seen.shape)
    if left is not None and left < (limits.collapse_fail if fails else limits.collapse_warn):
        best_size, best = max(seen.shape.at_least(16 * MIB), key=lambda point: point[1])
        cause, extra = causes.LOSS, ""
        if seen.expected is not None and seen.fraction is not None:
            found = _signature(seen, seen.expected, seen.fraction)
            cause, extra = found.cause, f"; {found.text}"
            if seen.hosts == 1:
                cause = causes.NVLINK_DEGRADED
        return judged(
            cause,
            f"{_name(seen)}: busbw falls from {best:.1f} GB/s at {size_text(best_size)} to "
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
            f"{_name(seen)}: out of place and in place differ by {most:.0%} at {size_text(size)}, "
            f"want {limits.placement_warn:.0%}",
            rule="placement",
        )
    spread = max(seen.shape.spread or 0.0, _iteration_spread(seen.sweep))
    if spread > (limits.spread_fail if fails else limits.spread_warn):
        return judged(
            causes.UNSTEADY,
            f"{_name(seen)}: repeats vary by {spread:.0%} at {size_text(LARGE)} and more, want "
            f"{limits.spread_warn:.0%}",
            rule="spread",
        )
    return None


def _dip(seen: _Seen) -> Verdict | None:
    points = seen.shape.at_least(MIB)
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        low = min(before[1], after[1])
        # Below 1 GB/s two decimals say too little.
        if low >= 1.0 and here[1] < seen.limits.dip_warn * low:
            return warned(
                causes.DIP,
                f"{_name(seen)}: {here[1]:.1f} GB/s at {size_text(here[0])} lies under both "
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


def _slow_iteration(seen: _Seen) -> Verdict | None:
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
        f"{_name(seen)}: {which or 'one iteration'} took {ratio:.1f} x the typical time at "
        f"{size_text(size)}, want {seen.limits.slow_iteration_warn:g} x",
        rule="slow-iteration",
    )


def _latency(seen: _Seen) -> Verdict | None:
    alpha = seen.shape.alpha_us
    most = {1: seen.limits.latency_node_us, 2: seen.limits.latency_pair_us}.get(seen.hosts or 0)
    # hccl_test measures from the host, with its launch: other numbers, and no reference.
    if alpha is None or most is None or alpha <= most or seen.sweep.tool == "hccl_test":
        return None
    return warned(
        causes.LATENCY,
        f"{_name(seen)}: messages up to 64 KiB take {alpha:.0f} us, want {most:.0f} us",
        rule="latency",
    )


# --- words --------------------------------------------------------------------------------------


def _percent(fraction: float) -> str:
    return f"{fraction:.0%}" if fraction >= 0.1 else f"{fraction:.1%}"


def _name(seen: _Seen) -> str:
    sweep = seen.sweep
    where = ", ".join(sweep.hosts[:4]) or (f"{seen.hosts} hosts" if seen.hosts else "unknown hosts")
    if len(sweep.hosts) > 4:
        where = f"{sweep.hosts[0]} to {sweep.hosts[-1]}, {len(sweep.hosts)} hosts"
    return f"{sweep.collective or 'a collective'} with {sweep.nranks or '?'} ranks on {where}"


def _at(seen: _Seen) -> str:
    if seen.extrapolated:
        return f" (carried on from {seen.shape.peak:.1f} at {size_text(seen.shape.last_size)})"
    size = max(seen.shape.points, key=lambda p: (p[0] >= GIB or seen.shape.last_size < GIB, p[1]))[
        0
    ]
    return f" at {size_text(size)}"


def _of_bound(seen: _Seen) -> str:
    if seen.expected is None or seen.fraction is None:
        return ""
    return f", and {seen.fraction:.0%} of {seen.expected.gbytes:.4g} GB/s ({seen.expected.sum})"


def _run(sweep: Sweep) -> dict[str, object]:
    return {
        "tool": " ".join(filter(None, (sweep.tool, sweep.version))),
        "collective": sweep.collective or "unknown",
        "ranks": sweep.nranks or 0,
        "state": sweep.state.value,
    }


def _dressed(verdict: Verdict, seen: _Seen) -> Verdict:
    """The verdict with its numbers, hosts, and the curve where it stands for the run."""
    form = seen.shape
    measured: dict[str, object] = {
        **_run(seen.sweep),
        "algbw_gbytes": round(_algbw(seen), 2),
        "size_bytes": form.peak_size,
    }
    if _has_busbw(seen.sweep):
        measured["busbw_gbytes"] = round(seen.value, 2)
    if seen.expected is not None and seen.fraction is not None:
        measured["bound_gbytes"] = round(seen.expected.gbytes, 2)
        measured["fraction"] = round(seen.fraction, 4)
    extra: Mapping[str, float | int | None] = {
        "alpha_us": None if form.alpha_us is None else round(form.alpha_us, 2),
        "knee_bytes": form.knee,
        "asymptote_gbytes": None if form.asymptote is None else round(form.asymptote, 2),
    }
    measured |= {name: value for name, value in extra.items() if value is not None}
    main = verdict.rule in ("", "level", "collapse", "data")
    figures = (curve(seen.sweep, form, seen.expected, _wanted(seen)),) if main else ()
    return replace(verdict, measured=measured, hosts=seen.sweep.hosts, figures=figures)


def _has_busbw(sweep: Sweep) -> bool:
    """hccl_test prints algorithm bandwidth: its busbw needs the collective and the ranks."""
    return sweep.tool != "hccl_test" or bool(sweep.collective and sweep.nranks)


def _wanted(seen: _Seen) -> float | None:
    if seen.expected is None:
        return None
    network = seen.expected.kind == "network"
    share = seen.limits.network_pass if network else seen.limits.reference_pass
    return share * seen.expected.gbytes


def _algbw(seen: _Seen) -> float:
    return max(
        half.algbw for row in seen.sweep.rows for half in row.halves if row.best == seen.shape.peak
    )
