"""``analyze bucket``: traces, descriptions and sweeps in, one advice out."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Final

from commcheck.analysis import Analysis
from commcheck.bucket import description, layout
from commcheck.bucket.advice import FLAT, Advice, Now, advise, default_of
from commcheck.bucket.description import Description
from commcheck.bucket.from_trace import NoGradients, Traced, read_work
from commcheck.bucket.judge import Limits, judge, screen
from commcheck.bucket.layout import Framework
from commcheck.bucket.link import Link, given, of_sweep
from commcheck.bucket.logged import is_logged, logged_sizes
from commcheck.bucket.simulate import Costs, outcome, sizes_of
from commcheck.bucket.work import Work, laid_over
from commcheck.check import limits_of, undecidable
from commcheck.errors import ParseError, UsageError
from commcheck.files import opened, read_whole
from commcheck.frameworks.causes import BUCKETS, TITLES
from commcheck.jobs.offline import BYTES_MOST, Told, read_runs
from commcheck.jobs.reading import Sweep, factor
from commcheck.lazy import dataclass, regex
from commcheck.model import Bound, Finding, Result, Verdict
from commcheck.report.record import PlannedCheck

_SWEEP: Final = "all_reduce"
_SCATTER: Final = 0.5
"""Of an all-reduce, which is a reduce-scatter and an all-gather of the same bytes."""

_TRACE: Final = regex(r'"(traceEvents|deviceProperties|distributedInfo|schemaVersion)"')
_BARE: Final = regex(r"\[\s*\{")
"""torch_npu writes a list of events and nothing around it."""

_HEAD: Final = 1 << 16

CLOSING: Final = (
    "predicted, not measured: left out are late ranks, noise, other users of the wire and, unless "
    "told, copies into buckets and slower computing during a collective; against two measured "
    "tables of DDP on CPUs every step was predicted 1 to 10 % too short, and sizes ranked right"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the caller knows and no file says; None: not told.

    ``framework``: "ddp", "deepspeed" or "megatron"; "": the trace's, else DDP. ``current``: the
    size in force, in its unit (MiB, elements). ``alpha_us`` and ``busbw_gbytes``: the network,
    instead of a sweep. ``ranks``: data-parallel size. ``element_bytes``: of a gradient on the wire.
    ``free_bytes``: what buckets may take.
    """

    framework: str = ""
    current: float | None = None
    alpha_us: float | None = None
    busbw_gbytes: float | None = None
    ranks: int | None = None
    element_bytes: int | None = None
    free_bytes: float | None = None
    costs: Costs = field(default_factory=Costs)


@dataclass(slots=True)
class _Files:
    """What the files turned out to be; descriptions as text and name."""

    traces: list[Traced]
    descriptions: list[tuple[str, str]]
    links: list[tuple[Link, int | None]]  # and the ranks of the sweep
    notes: list[str]
    sizes: tuple[int, ...] = ()  # of the buckets, as DDP logged them


def analyse_bucket(
    paths: Sequence[Path],
    options: Given = Given(),  # noqa: B008 - frozen
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Analysis:
    """Advise a bucket size for one rank's trace or a model description, and a sweep.

    Which file is what, their content tells. Raises ``UsageError``, one line, for a file that is
    none of them, and where options contradict each other or the files.
    """
    _framework(options.framework)  # a wrong name is told before files are read
    heads = {path: _head(path) for path in dict.fromkeys(paths)}
    logged = [path for path, head in heads.items() if is_logged(head) and not _TRACE.search(head)]
    files = _Files([], [], [], [])
    for path in logged:
        files.sizes = files.sizes or logged_sizes(_text(path), str(path))
    refused: list[str] = []
    for path, head in heads.items():
        try:
            if path not in logged:
                _take(path, head, files)
        except NoGradients as none:
            refused.append(str(none))
    files.notes += refused[1:]
    name = paths[0].name if paths else ""
    work, traced = _work(files, options, refused)
    if work is None:
        reason, turn_on = refused[0], ""
        return _analysis(name, (undecidable(reason, turn_on=turn_on),), files.notes, [], {}, limits)
    shown = _SHOWN.get(traced.framework, "") if traced is not None else ""
    framework = _framework(options.framework or shown)
    if shown not in ("", framework.name) and traced is not None:
        files.notes.append(
            f"{work.name} is a trace of {traced.framework}, and the advice is for {framework.title}"
        )
    link = _link(files, options, traced, work)
    if isinstance(link, Verdict):
        return _analysis(work.name, (link,), files.notes, [], {}, limits)
    costs = options.costs
    if traced is not None and traced.scatters and link is not traced.link:
        costs = replace(costs, share=_SCATTER)  # the network is that of an all-reduce
    now = _now(framework, options, traced, work)
    try:
        advice = advise(work, link, costs, framework, now, options.free_bytes)
    except ValueError as error:
        raise UsageError(f"error: {error} [bucket]") from None
    calibration = _as_traced(traced, work, link, costs)
    verdicts = judge(advice, work, link, limits, calibration)
    if link.least_bytes:
        files.notes.append(
            f"{link.source} begins at {link.least_bytes / 1e6:.1f} MB: smaller buckets are not "
            "advised"
        )
    notes = [*files.notes, *work.notes, *_calibration(advice, calibration), CLOSING]
    return _analysis(
        work.name,
        verdicts,
        notes,
        screen(advice, work, link, verdicts),
        _facts(advice, work, link),
        limits,
    )


_SHOWN: Final = {"DDP": "ddp", "DeepSpeed": "deepspeed", "Megatron": "megatron"}
"""By what a trace gives away."""


def _framework(name: str) -> Framework:
    try:
        return layout.FRAMEWORKS[name or layout.DDP.name]
    except KeyError:
        known = ", ".join(layout.FRAMEWORKS)
        raise UsageError(f"error: no framework {name!r}, known are {known} [bucket]") from None


# --- files --------------------------------------------------------------------------------------


def _take(path: Path, head: str, files: _Files) -> None:
    """Read one file by what it is."""
    start = head.lstrip("\ufeff \t\r\n")
    if _TRACE.search(head) or _BARE.match(start):
        files.traces.append(read_work(path, files.sizes))
        return
    if start.startswith("{") and '"gradients"' in head:
        files.descriptions.append((_text(path), path.name))
        return
    try:
        runs = read_runs(_text(path), Told())
    except ParseError:
        if start.startswith("{"):  # its keys stand far behind its head
            files.traces.append(read_work(path, files.sizes))
            return
        raise UsageError(
            f"{path}: error: neither a profiler trace, nor a model description, nor the output of "
            "a collective benchmark [bucket]"
        ) from None
    sweeps = [run for run in runs if isinstance(run, Sweep)]
    wanted = [run for run in sweeps if run.collective in (_SWEEP, None)]
    if not wanted:
        kinds = ", ".join(sorted({run.collective or run.tool for run in sweeps})) or "RDMA"
        raise UsageError(f"{path}: error: a run of {kinds}, wanted all_reduce [bucket]")
    try:
        files.links.append((of_sweep(wanted[0], path.name), wanted[0].nranks))
    except ValueError as error:
        raise UsageError(f"{path}: error: no sweep: {error} [bucket]") from None


def _head(path: Path) -> str:
    try:
        with opened(path) as raw:
            data = raw.read(_HEAD)
            if data[:2] == b"\x1f\x8b":
                raw.seek(0)
                with gzip.GzipFile(fileobj=raw) as packed:
                    data = packed.read(_HEAD)
    except (OSError, EOFError, zlib.error) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path}: error: cannot be read: {what} [bucket]") from None
    return data.decode("utf-8", "backslashreplace")


def _text(path: Path) -> str:
    try:
        return read_whole(path, BYTES_MOST).decode("utf-8", "backslashreplace")
    except OSError as error:
        raise UsageError(f"{path}: error: {error.strerror} [bucket]") from None


# --- what is simulated --------------------------------------------------------------------------


def _work(
    files: _Files, options: Given, refused: Sequence[str]
) -> tuple[Work | None, Traced | None]:
    """The step to simulate, and the trace it comes from; (None, None) where a trace was refused."""
    # A bucket is sent when the last rank has it: who computes longest decides.
    traced = max(files.traces, key=lambda each: each.work.backward_us, default=None)
    described = _described(files, options, traced)
    if traced is None:
        if described is not None and described.work is not None:
            return described.work, None
        if refused:
            return None, None
        if described is not None:
            raise UsageError(
                "error: the description gives sizes alone: add backward_ms, or a trace [bucket]"
            )
        raise UsageError("error: no profiler trace and no model description given [bucket]")
    work = traced.work
    if len(files.traces) > 1:
        files.notes.append(
            f"of {len(files.traces)} ranks {work.name} computes longest: it is taken"
        )
    if described is not None:
        try:
            work = replace(laid_over(work, described.sizes), element_bytes=described.element_bytes)
        except ValueError as error:
            raise UsageError(f"error: {error} [bucket]") from None
    if options.element_bytes:
        work = replace(work, element_bytes=options.element_bytes)
    return work, traced


def _described(files: _Files, options: Given, traced: Traced | None) -> Description | None:
    """The first description. What it does not say of an element's size, the trace may show."""
    if not files.descriptions:
        return None
    shown = description.ELEMENT_BYTES if traced is None else traced.work.element_bytes
    text, name = files.descriptions[0]
    return description.read(text, name, options.element_bytes, else_bytes=shown)


def _link(files: _Files, options: Given, traced: Traced | None, work: Work) -> Link | Verdict:
    """The network: given, of a sweep, or as the trace's own collectives show it."""
    ranks = options.ranks or (traced.ranks if traced is not None else None)
    if options.alpha_us is not None or options.busbw_gbytes is not None:
        if options.alpha_us is None or options.busbw_gbytes is None:
            raise UsageError("error: latency and busbw are given together or not at all [bucket]")
        share = factor(_SWEEP, ranks) if ranks and ranks > 1 else None
        if share is None:
            raise UsageError("error: busbw says nothing without the number of ranks [bucket]")
        return given(options.alpha_us, options.busbw_gbytes / share)
    if files.links:
        link, measured = files.links[0]
        if ranks and measured and ranks != measured:
            files.notes.append(
                f"{link.source} was measured with {measured} ranks, and the job has {ranks}"
            )
        return link
    if traced is not None and traced.link is not None:
        files.notes.append(
            "without a sweep the network is taken from the trace's own collectives: of one rank "
            "they include waiting for the others"
        )
        return traced.link
    why = traced.why_no_link if traced is not None else f"{work.name}: nothing tells the network"
    return undecidable(
        why, turn_on="give a sweep (all_reduce_perf -b 8 -e 1G -f 2), or latency and busbw"
    )


def _now(framework: Framework, options: Given, traced: Traced | None, work: Work) -> Now:
    if options.current is not None:
        return Now(framework.told(options.current), options.current, True)
    if traced is not None and work.source == "trace":
        # Of one bucket nothing tells when its gradients were ready: a guess must not fail a job.
        return Now("as traced", None, len(traced.ends) > 1, ends=traced.ends)
    ranks = options.ranks or (traced.ranks if traced is not None else None)
    return default_of(framework, ranks)


def _as_traced(
    traced: Traced | None, work: Work, link: Link, costs: Costs
) -> tuple[float, float] | None:
    """The traced step in us, and as it is predicted with its own buckets; None: not known."""
    if traced is None or work.source != "trace":
        return None
    copied = work.with_copies(costs.copy_us_per_mb / 1e6)
    one = outcome(copied, sizes_of(copied.sums, traced.ends), traced.ends, link, costs)
    return traced.step_us, one.step_us


def _calibration(advice: Advice, both: tuple[float, float] | None) -> list[str]:
    """How far the prediction is from the step it was made of."""
    if both is None:
        return []
    step_us, shown_us = both
    notes = [
        f"the traced step took {step_us / 1e3:.1f} ms, and is predicted with "
        f"{shown_us / 1e3:.1f} ms ({shown_us / step_us - 1:+.1%})"
    ]
    if not advice.compared.ends and abs(advice.now.step_us / shown_us - 1) > FLAT:
        notes.append(
            f"the trace was made with other buckets than {advice.compared.told} gives: with those "
            f"its step is predicted with {advice.now.step_us / 1e3:.1f} ms"
        )
    return notes


# --- out ----------------------------------------------------------------------------------------


def _analysis(
    host: str,
    verdicts: tuple[Verdict, ...],
    notes: Sequence[str],
    lines: Sequence[str],
    facts: Mapping[str, object],
    limits: Limits,
) -> Analysis:
    bounds = tuple(
        Bound(each.name, getattr(limits, each.name), f"default ({each.source})", each.unit)
        for each in limits_of(Limits).values()
    )
    findings = tuple(
        Finding(check=BUCKETS, host=host, subject="", verdict=verdict, bounds=bounds)
        for verdict in verdicts
    )
    shown = lines or [f"{verdict.status}: {verdict.reason}" for verdict in verdicts]
    return Analysis(
        checks=(PlannedCheck(BUCKETS, TITLES[BUCKETS]),),
        results=(Result(check=BUCKETS, host=host, findings=findings),),
        notes=tuple(dict.fromkeys(notes)),
        screen=tuple(shown),
        facts=facts,
    )


def _facts(advice: Advice, work: Work, link: Link) -> dict[str, object]:
    return {
        "framework": advice.framework.name,
        "gradients": len(work.sizes),
        "gradients_bytes": round(work.total_bytes),
        "backward_us": work.backward_us,
        "alone_us": work.alone_us,
        "alpha_us": link.alpha_us,
        "beta_gbytes": link.beta_gbytes,
        "now": {"told": advice.compared.told, **asdict(advice.now)},
        "best": asdict(advice.best),
        "gain": [advice.gain, advice.gain_low, advice.gain_high],
        "flat": advice.flat,
        "wire_bound": advice.wire_bound,
        "memory_bytes": advice.memory_bytes,
        "outcomes": [asdict(each) for each in advice.outcomes],
    }
