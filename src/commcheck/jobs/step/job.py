"""The job that trains a few profiled steps inside each host, on all of its accelerators."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Final

from commcheck.check import keys_of, limit, undecidable
from commcheck.collect.base import Request
from commcheck.command import Command, Output
from commcheck.errors import ParseError, Unjudgeable
from commcheck.jobs.collective import error
from commcheck.jobs.job import Answered, Job, Member, Members, Part, Ran, Search, Steps
from commcheck.jobs.locate import Outcome, Run
from commcheck.jobs.step import reading
from commcheck.jobs.step.reading import TOOL, StepOutput, facts_of, parse, without_traces
from commcheck.jobs.step.site import StepSite
from commcheck.model import Kind, Status, Verdict
from commcheck.trace import limits as trace
from commcheck.trace.ladder import judge
from commcheck.trace.lanes import pictured
from commcheck.trace.rungs import Known

_OWN: Final = "commcheck's own training step"
_STARTER: Final = (
    "import sys,zlib,base64;"
    "exec(compile(zlib.decompress(base64.b64decode(sys.argv[1])),'train_step.py','exec'))"
)
_DEVICES: Final = {"ascend": "npu"}
_SHARDINGS: Final = ("ddp", "fsdp")
_END_S: Final = 15.0
"""The script's own limit ends this much before ours: it then says how far it came."""


@dataclass(frozen=True, slots=True)
class StepLimits(trace.Limits):
    """What is trained, beside the limits by which its traces are judged."""

    sharding: str = limit("ddp", unit="ddp or fsdp", source="most jobs are data-parallel")
    device: str = limit(
        "auto", unit="auto, cuda, npu or cpu", source="what the host's platform trains on"
    )
    ranks: int = limit(0, unit="ranks a host, 0: one for each accelerator", source=_OWN)
    steps: int = limit(5, unit="profiled steps", source=_OWN)
    trace_mib: float = limit(
        4.0, unit="MiB of packed trace a rank", source="ten times what five such steps take"
    )
    run_limit_s: float = limit(
        240.0, unit="s for one run", source="torch starts within a minute from a slow file system"
    )


def step_job() -> Job:
    """A training step inside each host, all hosts at once: nothing crosses the network."""
    return Job(
        tool=TOOL,
        least=1,
        programs=lambda _platform, _limits: (),
        steps=_steps,
        preview=lambda _hosts, _limits: None,
        run_s=lambda _hosts, limits: min(60.0, limits.run_limit_s),
        launch=_launch,
        read=_read,
        together=lambda _found, _limits: (),
        shown=without_traces,
    )


def _steps(members: Sequence[Member], _limits: StepLimits) -> Steps:
    round_ = tuple(Run((member.name,)) for member in members)
    return lambda outcomes: () if outcomes else round_


# --- launching ----------------------------------------------------------------------------------


def _launch(run: Run, members: Members, limits: StepLimits) -> tuple[Part, ...]:
    member = members[run.hosts[0]]
    site = site_of(member)
    options = _options(member, site, limits)
    text = files("commcheck.jobs.step").joinpath(TOOL).read_bytes()
    packed = base64.b64encode(zlib.compress(text, 9)).decode()
    python = site.python.value
    # One line without a space in the text: it passes through whatever enters an environment.
    words = (*site.environment.value, python, "-c", _STARTER, packed, json.dumps(options))
    said = (*site.environment.value, python, TOOL, limits.sharding, str(limits.steps))
    # base64 takes four bytes for three; its lines' heads and what else is told, a little more.
    cap = int(options["ranks"] * (options["most_bytes"] * 1.4 + (16 << 10))) + (64 << 10)
    command = Command(words, timeout_s=limits.run_limit_s, cap_bytes=cap, said_as=said)
    return (Part(member.name, (Request(command),)),)


def site_of(member: Member) -> StepSite:
    """What the inventory says of a host's Python."""
    platform = member.machine.platform
    found: dict[str, Any] = {
        name: key.on(member.host, platform) for name, key in keys_of(StepSite).items()
    }
    return StepSite(**found)


def _options(member: Member, site: StepSite, limits: StepLimits) -> dict[str, Any]:
    if limits.sharding not in _SHARDINGS:
        raise Unjudgeable(f"sharding {limits.sharding!r} is none of {', '.join(_SHARDINGS)}")
    if limits.device not in ("auto", "cuda", "npu", "cpu"):
        raise Unjudgeable(f"device {limits.device!r} is none of auto, cuda, npu, cpu")
    ranks = limits.ranks or len(member.machine.accelerators)
    if ranks < 1 or limits.steps < 1:
        raise Unjudgeable(f"{member.name} has no accelerator to train on: ranks says how many")
    auto = _DEVICES.get(member.machine.platform, "cuda")
    return {
        "device": auto if limits.device == "auto" else limits.device,
        "ranks": ranks,
        "sharding": limits.sharding,
        "steps": limits.steps,
        "limit_s": max(10.0, limits.run_limit_s - _END_S),
        "most_bytes": int(limits.trace_mib * (1 << 20)),
        "env": dict(site.env.value),
    }


# --- reading ------------------------------------------------------------------------------------


def _read(run: Run, members: Members, limits: StepLimits, answered: Answered) -> Ran:
    verdicts = _judged(members[run.hosts[0]], limits, answered)
    good = {Status.PASS: True, Status.WARN: True, Status.FAIL: False}.get(verdicts[0].status)
    return Ran(run=run, verdicts=verdicts, outcome=Outcome(run, good))


def _judged(member: Member, limits: StepLimits, answered: Answered) -> tuple[Verdict, ...]:
    if answered.problem:
        return (error("LaunchFailed", answered.problem),)
    if answered.timed_out:
        what = f"the step on {member.name} did not end within {limits.run_limit_s:.0f} s"
        return (error("RunTimedOut", f"{what} and was ended"),)
    output = answered.outputs[0]
    try:
        told = parse(output)
        if told.ran is None or not told.traces:
            return (_nothing(member, told, output),)
        job, unread = facts_of(told.traces)
    except ParseError as problem:
        return (error("ParseError", problem.reason),)
    ran = told.ran
    about = f"{ran.sharding.upper()} step of {ran.ranks} ranks on {ran.device} ({ran.backend})"
    if len(told.traces) < ran.ranks or unread:
        why = "; ".join([*_left_out(told), *unread]) or "they were not sent"
        return (error("TraceMissing", f"{about}: not all traces are there: {why}"),)
    verdicts = pictured(job, judge(job, limits, Known()))
    return tuple(_of(each, member, about, ran) for each in verdicts)


def _of(verdict: Verdict, member: Member, about: str, ran: reading.Ran) -> Verdict:
    """A verdict of the ladder as one on the host that trained."""
    status, reason = verdict.status, f"{about}: {verdict.reason}"
    if ran.backend == "gloo" and status in (Status.FAIL, Status.WARN):
        # What else runs on the host's cores shows in it as late ranks and slow communication.
        status, reason = Status.WARN, f"{reason}; on CPUs it is no proof against an accelerator"
    measured = {
        "step_ms": round(sum(ran.step_ms) / len(ran.step_ms), 3),
        "ranks": ran.ranks,
        "torch": ran.torch,
        "parameters": ran.parameters,
        **verdict.measured,
    }
    return replace(verdict, status=status, reason=reason, measured=measured, hosts=(member.name,))


def _left_out(told: StepOutput) -> list[str]:
    return [
        f"that of rank {rank} has {size / (1 << 20):.1f} MiB, more than trace_mib"
        for rank, size in sorted(told.left_out.items())
    ]


def _nothing(member: Member, told: StepOutput, output: Output) -> Verdict:
    """Why there is no trace to judge."""
    site = site_of(member)
    if told.missing:
        return undecidable(
            f"nothing to train with on {member.name}: {told.problem}",
            turn_on="name a Python that has it in the inventory: commcheck_train_python, and "
            "commcheck_train_environment where it is in a container",
        )
    if told.problem:
        return error("LaunchFailed", f"the step on {member.name}: {told.problem}{_last(output)}")
    if told.left_out:
        return error("TraceMissing", f"the step on {member.name}: {'; '.join(_left_out(told))}")
    if output.rc in (126, 127):
        return undecidable(
            f"nothing to train with on {member.name}: "
            f"{' '.join((*site.environment.value, site.python.value))} cannot be started there",
            turn_on="name one that has torch in the inventory: commcheck_train_python, "
            "commcheck_train_environment",
        )
    return error("LaunchFailed", f"the step on {member.name} brought no trace{_last(output)}")


def _last(output: Output) -> str:
    """The last line that says what went wrong; torchrun's own summary is none."""
    lines = [line.strip() for line in output.stderr.splitlines() if "Error" in line]
    own = [line for line in lines if "ChildFailedError" not in line and "error_file" not in line]
    return f": {own[-1][:300]}" if own else ""


def of_step(found: Search, host: str) -> tuple[Verdict, ...]:
    """What the step inside a host says."""
    mine = found.of(host)
    if mine:
        return mine[-1].verdicts
    reason = f"undecidable: no step on {host} was launched"
    return (Verdict(status=Status.SKIP, kind=Kind.UNDECIDABLE, reason=reason),)
