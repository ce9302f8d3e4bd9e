"""``analyze config``: files with settings in, verdicts and what to set out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from commcheck.analysis import Analysis
from commcheck.check import limits_of
from commcheck.errors import ParseError, UsageError
from commcheck.files import read_whole
from commcheck.frameworks import deepspeed, documents, flops_profiler, mfu
from commcheck.frameworks.causes import TITLES
from commcheck.frameworks.flops_profiler import Profile
from commcheck.frameworks.judge import judge
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.mfu import MfuLimits
from commcheck.frameworks.settings import TITLES as NAMES
from commcheck.frameworks.settings import Settings
from commcheck.lazy import regex
from commcheck.model import Bound, Finding, Kind, Result, Status, Verdict
from commcheck.report.record import PlannedCheck

BYTES_MOST: Final = 64 << 20
_OWN: Final = regex(r"(\.json|:\d+)$")
"""Where DeepSpeed's own configuration stands, or a call: any key may be added there."""


def analyse_config(
    paths: Sequence[Path],
    limits: Limits = Limits(),  # noqa: B008 - frozen
    *,
    device: str = "",
    mfu_limits: MfuLimits = MfuLimits(),  # noqa: B008 - frozen
) -> Analysis:
    """Judge DeepSpeed, DDP, FSDP and Megatron settings: JSON, YAML, Python, scripts, command lines.

    A log with the summary of DeepSpeed's flops profiler is judged by the peak of ``device``, a name
    as nvidia-smi prints it. Raises ``UsageError`` with a line for every file that cannot be read or
    holds nothing of these.
    """
    problems: list[str] = []
    read: dict[str, tuple[Settings, ...]] = {}
    profiles: dict[str, tuple[Profile, ...]] = {}
    for name in dict.fromkeys(map(str, paths)):
        try:
            text = _text(Path(name))
            if flops_profiler.HEAD.search(text):
                profiles[name] = _profiles(text, name)
            else:
                read[name] = documents.read(text, name)
        except UsageError as error:
            problems += error.problems
    if problems:
        raise UsageError(*problems)
    results = [*_judged(read, limits), *_mfu(profiles, device, mfu_limits)]
    asked = dict.fromkeys(result.check for result in results)
    titles = {**TITLES, mfu.CHECK_ID: mfu.TITLE}
    return Analysis(
        checks=tuple(PlannedCheck(check, titles[check]) for check in asked),
        results=tuple(results),
        notes=_notes(read),
        # What passed has no line above the ladder, and an MFU is what a person came for.
        screen=tuple(
            finding.verdict.reason
            for result in results
            for finding in result.findings
            if finding.verdict.status is Status.PASS
        ),
        facts={
            "settings": [_facts(job) for found in read.values() for job in found],
            "profiles": {
                name: [asdict(each) for each in found] for name, found in profiles.items()
            },
        },
    )


def _judged(read: Mapping[str, tuple[Settings, ...]], limits: Limits) -> list[Result]:
    """The three checks on each file, without those that none of its settings concern."""
    # A file that another one names has its settings: nothing is left to be looked for.
    names = {Path(name).name for name in read}
    results = []
    for name, found in read.items():
        jobs = [job for job in found if Path(job.elsewhere).name not in names]
        judged = {check: judge(check, jobs, limits) for check in TITLES if jobs}
        said = {
            check: verdicts
            for check, verdicts in judged.items()
            if any(each.kind is not Kind.NOT_APPLICABLE for each in verdicts)
        }
        # DeepSpeed at stage 0: that is all there is to say, and it is said once.
        for check, verdicts in (said or dict(list(judged.items())[:1])).items():
            results.append(_result(check, name, verdicts, limits))
    return results


def _profiles(text: str, name: str) -> tuple[Profile, ...]:
    try:
        return flops_profiler.parse(text)
    except ParseError as error:
        raise UsageError(f"{name}: error: {error.reason} [config]") from None


def _mfu(
    profiles: Mapping[str, tuple[Profile, ...]], device: str, limits: MfuLimits
) -> Iterator[Result]:
    peak = mfu.peak_of(device)
    for name, found in profiles.items():
        verdicts = [mfu.judge(profile, peak, name, limits) for profile in found]
        yield _result(mfu.CHECK_ID, name, verdicts, limits)


def _text(path: Path) -> str:
    try:
        data = read_whole(path, BYTES_MOST)
    except OSError as error:
        raise UsageError(f"{path}: error: cannot be read: {error.strerror} [config]") from None
    return data.decode("utf-8", "backslashreplace")


def _result(
    check: str, host: str, verdicts: Sequence[Verdict], limits: Limits | MfuLimits
) -> Result:
    bounds = tuple(
        Bound(each.name, getattr(limits, each.name), f"default ({each.source})", each.unit)
        for each in limits_of(type(limits)).values()
    )
    findings = tuple(
        Finding(check=check, host=host, subject="", verdict=verdict, bounds=bounds)
        for verdict in verdicts
    )
    return Result(check=check, host=host, findings=findings)


def _notes(read: Mapping[str, tuple[Settings, ...]]) -> tuple[str, ...]:
    notes = []
    jobs = [job for found in read.values() for job in found]
    if any(str(each.value) == "auto" for job in jobs for each in job.values.values()):
        notes.append(
            "auto is filled in by Hugging Face's trainer (hidden size squared for "
            "reduce_bucket_size): such a setting is not judged"
        )
    for job in jobs:
        steps = job.number(deepspeed.ACCUMULATION)
        if job.number("stage") == 2 and steps and steps > 1:
            # DeepSpeed issue 2252; runtime/zero/stage_1_and_2.py, process_gradients.
            notes.append(
                f"{job.at(deepspeed.ACCUMULATION)}: stage 2 reduces gradients after each of the "
                f"{steps:g} accumulated steps; stage 1 does once, and keeps all of them in memory"
            )
    own = [job for job in jobs if job.framework == "deepspeed" and not job.elsewhere]
    if not all(_OWN.search(job.where) or job.is_set("reduce_bucket_size") for job in own):
        notes.append(
            "Accelerate's YAML and flags have no place for other keys of DeepSpeed: they go into a "
            "JSON that deepspeed_config_file names"
        )
    if any(job.framework in ("megatron", "fsdp") and not job.environ for job in jobs):
        notes.append(
            "CUDA_DEVICE_MAX_CONNECTIONS is judged where a script sets it: give the start script"
        )
    if jobs:
        notes.append(
            "settings alone do not tell what they cost: commcheck analyze bucket predicts it from "
            "a trace and a sweep, analyze trace shows it"
        )
    return tuple(notes)


def _facts(job: Settings) -> dict[str, object]:
    return {
        "framework": NAMES[job.framework],
        "where": job.where,
        "values": {name: [each.value, each.where] for name, each in job.values.items()},
        "elsewhere": job.elsewhere,
    }
