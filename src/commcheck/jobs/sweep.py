"""Is a sweep as fast as the hardware allows, as steady as it should be, and is its data right?

The curve is kept: never a conclusion from ``Avg bus bandwidth``, which depends on where the sweep
starts. A verdict shows the value measured, the sum that gives the bound, the fraction, and which
known fault the curve looks like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from commcheck.check import failed, known_to, passed, undecidable, warned
from commcheck.jobs import causes
from commcheck.jobs.bound import Fabric, expectation, hosts_of
from commcheck.jobs.curve import curve
from commcheck.jobs.fit import Shape, shape
from commcheck.jobs.proof import Asked, disproved
from commcheck.jobs.reading import GIB, Sweep, size_text
from commcheck.jobs.steadiness import dip, latency, slow_iteration, unsteady
from commcheck.jobs.sweep_seen import Limits, Seen, name_of, percent, signature_of
from commcheck.jobs.witness import hear
from commcheck.model import Status, Verdict


def judge(
    sweep: Sweep, fabric: Fabric, asked: Asked | None = None, limits: Limits | None = None
) -> tuple[Verdict, ...]:
    """The verdicts on one run: one that stands for the run, and warnings beside it."""
    verdicts = _judged(sweep, fabric, asked or Asked(), limits or Limits())
    accelerator = "npu" if sweep.tool == "hccl_test" else "gpu"
    return tuple(
        replace(verdict, remedies=known_to(accelerator, verdict.remedies)) for verdict in verdicts
    )


def _judged(sweep: Sweep, fabric: Fabric, asked: Asked, limits: Limits) -> tuple[Verdict, ...]:
    why_not = disproved(sweep, asked)
    if why_not is not None:
        return (replace(why_not, measured={**_run(sweep), **why_not.measured}),)
    form = shape(sweep.rows)
    if form is None:
        return (undecidable("every row of the sweep is empty", turn_on="use larger sizes"),)
    hosts = hosts_of(sweep, asked.host_count)
    expected, missing = expectation(sweep, fabric, hosts)
    value, extrapolated = _value(form)
    seen = Seen(
        sweep,
        form,
        hosts,
        fabric,
        hear(sweep.log, sweep.env),
        expected,
        missing,
        value,
        extrapolated,
        limits,
    )
    return tuple(_dressed(verdict, seen) for verdict in _verdicts(seen))


def _verdicts(seen: Seen) -> tuple[Verdict, ...]:
    wrong = _wrong_data(seen)
    if wrong is not None:
        return (wrong,)
    main = unsteady(seen, Status.FAIL) or _level(seen)
    if main.status is Status.FAIL:
        return (main,)
    beside = [unsteady(seen, Status.WARN), dip(seen), slow_iteration(seen), latency(seen)]
    return (main, *(verdict for verdict in beside if verdict is not None))


# --- data ---------------------------------------------------------------------------------------


def _wrong_data(seen: Seen) -> Verdict | None:
    sweep = seen.sweep
    if not sweep.out_of_bounds and not sweep.wrong and not sweep.failed_ranks:
        return None
    sizes = ", ".join(size_text(size) for size in sweep.wrong) or "sizes not named"
    ranks = ", ".join(map(str, sweep.failed_ranks))
    by = f", told by ranks {ranks}" if ranks else ""
    return failed(
        causes.WRONG_DATA,
        f"{name_of(seen)}: wrong data at {sizes}{by}; want none. Its {seen.shape.peak:.1f} GB/s "
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


def _level(seen: Seen) -> Verdict:
    expected, fraction = seen.expected, seen.fraction
    if expected is None or fraction is None:
        what = "" if _has_busbw(seen.sweep) else " algorithm bandwidth"
        return undecidable(
            f"{name_of(seen)}: {seen.value:.1f} GB/s{what}{_at(seen)}, and nothing to hold it "
            "against",
            turn_on=seen.missing,
        )
    if expected.ceiling and seen.shape.peak > expected.ceiling * seen.limits.above_ceiling:
        return undecidable(
            f"{name_of(seen)}: {seen.shape.peak:.1f} GB/s is more than the network can carry "
            f"({expected.sum})",
            turn_on="correct --nic-gbps and --rails, or the algorithm given; or the hosts share an "
            "NVLink domain: then give --reference",
        )
    says = (
        f"{name_of(seen)}: busbw {seen.value:.1f} GB/s{_at(seen)} is {percent(fraction)} of "
        f"{expected.gbytes:.4g} GB/s ({expected.sum})"
    )
    network = expected.kind == "network"
    enough = seen.limits.network_pass if network else seen.limits.reference_pass
    if fraction >= enough and expected.most and seen.value < enough * expected.most:
        return undecidable(
            f"{says}, but only {percent(seen.value / expected.most)} of {expected.most:.4g} GB/s "
            f"if the {seen.fabric.rails} NICs of a host are all for the GPUs that ran"
            + (", with both ports of each bond" if seen.fabric.ports > 1 else ""),
            turn_on="run on all GPUs of the hosts; or say how many those have and which NICs are "
            "for training: --gpus and --rails, commcheck_nics in the inventory",
        )
    if fraction >= enough:
        return passed(says + _proves_less(seen))
    if not _plateau(seen.shape):
        return undecidable(
            f"{says}, but the curve still rises at its last size",
            turn_on="run the sweep to 8 GiB: -b 1G -e 8G -f 2 -w 5 -n 20",
        )
    if network and seen.sweep.tool == "hccl_test" and fraction >= seen.limits.hccl_fail:
        return undecidable(
            f"{says}, and what healthy NPUs reach of it is not known",
            turn_on="measure hosts that you know to be good and give their busbw: --reference "
            "GB/s, in the inventory commcheck_expected_busbw",
        )
    found = signature_of(seen, expected, fraction)
    judged = failed if fraction < seen.limits.warn_from else warned
    return judged(found.cause, f"{says}, want {enough:.0%}; {found.text}", rule="level")


def _plateau(form: Shape) -> bool:
    """The curve has stopped rising: its last step is below 10 %, or it was sized to the end."""
    if len(form.points) < 2 or form.last_size >= GIB:
        return True
    return form.points[-1][1] < 1.10 * form.points[-2][1]


def _proves_less(seen: Seen) -> str:
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


# --- words --------------------------------------------------------------------------------------


def _at(seen: Seen) -> str:
    if seen.extrapolated:
        return f" (carried on from {seen.shape.peak:.1f} at {size_text(seen.shape.last_size)})"
    size = max(seen.shape.points, key=lambda p: (p[0] >= GIB or seen.shape.last_size < GIB, p[1]))[
        0
    ]
    return f" at {size_text(size)}"


def _run(sweep: Sweep) -> dict[str, object]:
    return {
        "tool": " ".join(filter(None, (sweep.tool, sweep.version))),
        "collective": sweep.collective or "unknown",
        "ranks": sweep.nranks or 0,
        "state": sweep.state.value,
    }


def _dressed(verdict: Verdict, seen: Seen) -> Verdict:
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


def _wanted(seen: Seen) -> float | None:
    if seen.expected is None:
        return None
    network = seen.expected.kind == "network"
    share = seen.limits.network_pass if network else seen.limits.reference_pass
    return share * seen.expected.gbytes


def _algbw(seen: Seen) -> float:
    return max(
        half.algbw for row in seen.sweep.rows for half in row.halves if row.best == seen.shape.peak
    )
