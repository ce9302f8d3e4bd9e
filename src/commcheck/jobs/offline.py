"""Sweeps that somebody already has: read, judged and drawn as a launched run would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from commcheck.analysis import Analysis
from commcheck.check import limits_of
from commcheck.errors import ParseError, UsageError
from commcheck.files import read_whole
from commcheck.jobs import (
    hccl_test,
    nccl_json,
    nccl_tests,
    perftest,
    places,
    rdma,
    said,
    sweep,
    sweep_seen,
)
from commcheck.jobs.bound import Fabric
from commcheck.jobs.failures import NIC_EVENT
from commcheck.jobs.locate import locate
from commcheck.jobs.outcomes import Outcome, Run
from commcheck.jobs.perftest import Perftest
from commcheck.jobs.proof import Asked
from commcheck.jobs.reading import COLLECTIVES, Sweep
from commcheck.jobs.titles import TITLES
from commcheck.jobs.witness import hear
from commcheck.lazy import dataclass, regex
from commcheck.model import Bound, Finding, Kind, Result, Status, Verdict
from commcheck.report.counts import many
from commcheck.report.record import JOB, PlannedCheck

BYTES_MOST: Final = 256 << 20
"""NCCL's own lines of a thousand ranks may stand around a sweep."""

_BOARD_GPUS: Final = 8
"""Where so many of a host's GPUs run, all do. Source: HGX and DGX boards, AWS p4 to p6."""

_NAMED: Final = regex("|".join(name.replace("_", "_?") for name in COLLECTIVES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the caller knows of the runs and their text does not say; None: not told.

    ``nic_gbits``: line rate of one NIC port in Gb/s; ``rails``: NICs a host; ``gpus``: GPUs a host;
    ``reference_gbytes``: busbw in GB/s of the same run on good hosts; ``nranks`` and ``hosts``: how
    many took part, held against the run where it names its own.
    """

    nic_gbits: float | None = None
    rails: int | None = None
    gpus: int | None = None
    reference_gbytes: float | None = None
    algorithm: str = ""
    collective: str | None = None
    nranks: int | None = None
    hosts: int | None = None


@dataclass(frozen=True, slots=True)
class _Judged:
    check: str
    file: str
    subject: str
    verdicts: tuple[Verdict, ...]
    run: Sweep | Perftest | None
    notes: tuple[str, ...] = ()


def analyse_sweeps(paths: Sequence[Path], told: Told | None = None) -> Analysis:
    """Judge saved outputs of nccl-tests, rccl-tests, hccl_test and perftest, each for itself.

    Where several files hold pairs of hosts, they are also searched for the host or path at fault.
    Raises ``UsageError`` where a file cannot be opened, or none of them holds a run.
    """
    told = told or Told()
    judged = [each for path, text in _texts(paths) for each in _judge_file(path, text, told)]
    if all(each.run is None for each in judged):
        expected = "an output of nccl-tests, rccl-tests, hccl_test or perftest"
        raise UsageError(*(f"{each.file}: error: expected {expected} [sweep]" for each in judged))
    results = _results(judged)
    together = _located(judged)
    if together is not None:
        results = (together, *results)
    asked = dict.fromkeys(result.check for result in results)
    return Analysis(
        checks=tuple(PlannedCheck(check, TITLES[check]) for check in asked),
        results=results,
        notes=tuple(dict.fromkeys(note for each in judged for note in each.notes)),
        screen=tuple(_screen(each) for each in judged),
        facts={"runs": [_facts(each) for each in judged]},
    )


def _texts(paths: Sequence[Path]) -> list[tuple[str, str]]:
    """Names as short as they stay different, and what the files hold."""
    times = Counter(path.name for path in paths)
    found = []
    for path in dict.fromkeys(paths):
        try:
            text = read_whole(path, BYTES_MOST).decode("utf-8", "backslashreplace")
        except OSError as error:
            raise UsageError(f"{path}: error: cannot be read: {error.strerror}") from error
        found.append((path.name if times[path.name] == 1 else str(path), text))
    return found


def read_runs(text: str, told: Told) -> tuple[Sweep | Perftest, ...]:
    """The runs in a text of any of the tools. Raises ``ParseError`` where none of them wrote it."""
    if nccl_json.looks_like(text):
        return nccl_json.parse(text)
    if hccl_test.looks_like(text):
        return hccl_test.parse(text, collective=told.collective, nranks=told.nranks)
    if perftest.looks_like(text):
        return (perftest.parse(text),)
    try:
        found = nccl_tests.parse(text)
    except ParseError:
        return (perftest.parse(text),)
    return tuple(
        replace(
            run,
            collective=run.collective or told.collective,
            nranks=told.nranks if run.nranks is None else run.nranks,
        )
        for run in found
    )


def _judge_file(file: str, text: str, told: Told) -> list[_Judged]:
    notes: list[str] = []
    if told.collective is None and hccl_test.looks_like(text):
        named = _NAMED.search(file.rpartition("/")[2])
        if named:
            known = {name.replace("_", ""): name for name in COLLECTIVES}
            told = replace(told, collective=known[named[0].replace("_", "")])
            notes.append(f"{file}: taken for {told.collective} by its name")
    try:
        runs = read_runs(text, told)
    except ParseError as error:
        verdict = said.error(error.type_name, error.reason)
        return [_Judged("physical.collective-fleet", file, "", (verdict,), None)]
    judged = []
    for number, run in enumerate(runs, start=1):
        subject = f"run {number}" if len(runs) > 1 else ""
        if isinstance(run, Perftest):
            verdicts: tuple[Verdict, ...] = (rdma.judge(run, told.nic_gbits),)
        else:
            verdicts = _judge_sweep(file, run, told, notes)
        judged.append(_Judged(_check_of(run, told), file, subject, verdicts, run, tuple(notes)))
    return judged


def _judge_sweep(file: str, run: Sweep, told: Told, notes: list[str]) -> tuple[Verdict, ...]:
    rails = told.rails
    listed = hear(run.log).most_nics  # a host that lists fewer is what is looked for
    if rails is None and listed is not None:
        rails = listed
        notes.append(f"{file}: {many(listed, 'rail')}, as NCCL lists them; --rails says otherwise")
    notes += [
        f"{file}: NCCL warned while it ran: {failure.text}"
        for failure in run.failures
        if failure.slug == NIC_EVENT
    ]
    if run.env:
        names = ", ".join(f"{name}={value}" for name, value in list(run.env.items())[:4])
        notes.append(f"{file}: ran with {names}")
    fabric = Fabric(
        nic_gbits=told.nic_gbits,
        rails=rails,
        gpus=told.gpus or (_whole_host(run, told.hosts) if told.rails else None),
        reference_gbytes=told.reference_gbytes,
        algorithm=told.algorithm,
    )
    asked = Asked(collective=told.collective, nranks=told.nranks, host_count=told.hosts)
    if rails is None and told.nic_gbits is not None:
        # A host has one NIC at least: what is too little for that is too little for any number.
        least = sweep.judge(run, replace(fabric, rails=1), asked)
        bound = least[0].measured.get("bound_gbytes")
        fits = isinstance(bound, float) and run.peak is not None and run.peak <= bound
        if least[0].status is Status.FAIL and fits:
            notes.append(f"{file}: held against one NIC a host; --rails gives the true bound")
            return least
    return sweep.judge(run, fabric, asked)


def _whole_host(run: Sweep, hosts: int | None) -> int | None:
    """The GPUs of a host, where all of them took part as far as one can tell."""
    among = len(run.hosts) or hosts
    each = (run.nranks or 0) // among if among else 0
    return each if each >= _BOARD_GPUS else None


def _check_of(run: Sweep | Perftest, told: Told) -> str:
    if isinstance(run, Perftest):
        return "physical.rdma-pairs"
    hosts = len(run.hosts) or told.hosts or 0
    if hosts == 1:
        return "physical.collective-node"
    one_each = hosts == 2 and run.nranks == 2
    if one_each or (run.split and len(run.group_hosts) > 1):
        return "physical.collective-rails"
    return "physical.collective-pairs" if hosts == 2 else "physical.collective-fleet"


def _results(judged: Sequence[_Judged]) -> tuple[Result, ...]:
    cases: dict[tuple[str, str], list[Finding]] = {}
    for each in judged:
        findings = cases.setdefault((each.file, each.check), [])
        findings += [
            Finding(
                check=each.check,
                host=each.file,
                subject=each.subject,
                verdict=verdict,
                bounds=_bounds(each.run),
            )
            for verdict in each.verdicts
        ]
    return tuple(
        Result(check=check, host=file, findings=tuple(findings))
        for (file, check), findings in cases.items()
    )


def _bounds(run: Sweep | Perftest | None) -> tuple[Bound, ...]:
    if run is None:
        return ()
    limits = rdma.Limits if isinstance(run, Perftest) else sweep_seen.Limits
    return tuple(
        Bound(name=spec.name, value=spec.default, origin=f"default ({spec.source})", unit=spec.unit)
        for spec in limits_of(limits).values()
    )


# --- several pairs ------------------------------------------------------------------------------


def _located(judged: Sequence[_Judged]) -> Result | None:
    """The search over pairs of hosts in several files; None below two pairs."""
    check = "physical.collective-pairs"
    outcomes = []
    for each in judged:
        if not isinstance(each.run, Sweep) or each.check != check or len(each.run.hosts) != 2:
            continue
        worst = each.verdicts[0].status
        good = {Status.PASS: True, Status.WARN: True, Status.FAIL: False}.get(worst)
        busbw = each.run.peak
        # Nobody knows what ran beside a saved run: nothing is blamed before it is repeated alone.
        outcomes.append(Outcome(Run(each.run.hosts), good, busbw))
    pairs = {outcome.run.pair for outcome in outcomes}
    if len(pairs) < 2:
        return None
    hosts = tuple(dict.fromkeys(host for outcome in outcomes for host in outcome.run.hosts))
    verdicts = places.verdicts(hosts, locate(hosts, outcomes), outcomes)
    return Result(
        check=check,
        host=JOB,
        findings=tuple(
            Finding(check=check, host=JOB, subject="", verdict=verdict) for verdict in verdicts
        ),
    )


# --- for the screen and for programs ------------------------------------------------------------


def _screen(each: _Judged) -> str:
    verdict = each.verdicts[0]
    name = f"{each.file} {each.subject}".strip()
    if not isinstance(each.run, Sweep):
        return f"{name}: {verdict.status}: {verdict.reason}"
    measured = verdict.measured
    parts = [f"{name}: {verdict.status}"]
    if verdict.kind is not Kind.NONE:
        parts[0] += f" ({verdict.kind})"
    parts.append(f"{each.run.collective or each.run.tool}, {each.run.nranks or '?'} ranks")
    if "busbw_gbytes" in measured:
        parts.append(f"busbw {measured['busbw_gbytes']} GB/s")
    fraction = measured.get("fraction")
    if isinstance(fraction, float):
        parts.append(f"{fraction:.0%} of {measured['bound_gbytes']} GB/s")
    if "alpha_us" in measured:
        parts.append(f"latency {measured['alpha_us']} us")
    return ", ".join(parts)


def _facts(each: _Judged) -> dict[str, object]:
    facts: dict[str, object] = {"file": each.file, "check": each.check, "subject": each.subject}
    if each.run is not None:
        facts["run"] = asdict(each.run)
    return facts
