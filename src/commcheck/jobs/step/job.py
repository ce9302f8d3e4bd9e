"""The jobs that train a few profiled steps: inside each host, or one training on all of them."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final

from commcheck.collect.base import Request
from commcheck.command import Command
from commcheck.errors import Unjudgeable
from commcheck.jobs.job import Answered, Job, Member, Members, Part, Ran, Steps, once
from commcheck.jobs.outcomes import Outcome, Run
from commcheck.jobs.step.limits import FleetLimits, StepLimits
from commcheck.jobs.step.reading import TOOL, without_traces
from commcheck.jobs.step.site import StepSite, site_of
from commcheck.jobs.step.verdicts import judged, whole
from commcheck.model import Status

_STARTER: Final = (
    "import sys,zlib,base64,json;"
    "exec(compile(json.loads(zlib.decompress(base64.b64decode(sys.argv[1])))['on_host.py'],"
    "'on_host.py','exec'))"
)
_TEXTS: Final = ("on_host.py", "train_step.py", "wrapper.py")
_DEVICES: Final = {"ascend": "npu"}
_SHARDINGS: Final = ("ddp", "fsdp")
_END_S: Final = 15.0
"""The script's own limit ends this much before ours: it then says how far it came."""


def step_job() -> Job:
    """A training step inside each host, all hosts at once: nothing crosses the network."""
    return _job(_each_alone)


def fleet_job() -> Job:
    """One training on all hosts: they meet at the first one's address."""
    return replace(
        _job(_all_as_one),
        least=2,
        together=lambda found, _limits: whole(found),
        all_report=True,
    )


def _job(steps: Callable[[Sequence[Member], StepLimits], Steps]) -> Job:
    return Job(
        tool=TOOL,
        least=1,
        programs=lambda _platform, _limits: (),
        steps=steps,
        preview=lambda _hosts, _limits: None,
        run_s=lambda _hosts, limits: min(60.0, limits.run_limit_s),
        launch=_launch,
        read=_read,
        together=lambda _found, _limits: (),
        shown=without_traces,
    )


def _each_alone(members: Sequence[Member], _limits: StepLimits) -> Steps:
    return once(tuple(Run((member.name,)) for member in members))


def _all_as_one(members: Sequence[Member], _limits: StepLimits) -> Steps:
    return once((Run(tuple(member.name for member in members)),))


# --- launching ----------------------------------------------------------------------------------


def _launch(run: Run, members: Members, limits: StepLimits) -> tuple[Part, ...]:
    mine = [members[host] for host in run.hosts]
    counts = {_ranks_of(member, limits) for member in mine}
    if len(counts) > 1:
        raise Unjudgeable(f"{run} have not all as many accelerators: {sorted(counts)}")
    places: list[dict[str, Any]] = [{"nodes": 1, "node": 0, "master": "127.0.0.1", "port": 0}]
    if isinstance(limits, FleetLimits):
        whole = {"nodes": len(mine), "master": mine[0].address, "port": limits.port}
        places = [{**whole, "node": number} for number in range(len(mine))]
    return tuple(_part(member, place, limits) for member, place in zip(mine, places, strict=True))


def _part(member: Member, place: Mapping[str, Any], limits: StepLimits) -> Part:
    site = site_of(member)
    options = {**_options(member, site, limits), "place": place}
    folder = files("commcheck.jobs.step")
    texts = json.dumps({name: folder.joinpath(name).read_text() for name in _TEXTS})
    packed = base64.b64encode(zlib.compress(texts.encode(), 9)).decode()
    python = site.python.value
    # One line without a space in the texts: it passes through whatever enters an environment.
    words = (*site.environment.value, python, "-c", _STARTER, packed, json.dumps(options))
    what = site.command.value or (limits.sharding,)
    said = (*site.environment.value, python, TOOL, *what, str(limits.steps))
    # base64 takes four bytes for three; its lines' heads and what else is told, a little more.
    each = int(options["most_bytes"] * 1.4 + (16 << 10))
    command = Command(
        words,
        timeout_s=limits.run_limit_s,
        cap_bytes=_ranks_of(member, limits) * each + (64 << 10),
        said_as=said,
    )
    return Part(member.name, (Request(command),))


def _ranks_of(member: Member, limits: StepLimits) -> int:
    return limits.ranks or len(member.machine.accelerators)


def _options(member: Member, site: StepSite, limits: StepLimits) -> dict[str, Any]:
    if limits.sharding not in _SHARDINGS:
        raise Unjudgeable(f"sharding {limits.sharding!r} is none of {', '.join(_SHARDINGS)}")
    if limits.device not in ("auto", "cuda", "npu", "cpu"):
        raise Unjudgeable(f"device {limits.device!r} is none of auto, cuda, npu, cpu")
    ranks = _ranks_of(member, limits)
    if ranks < 1 or limits.steps < 1 or limits.skip < 1:
        raise Unjudgeable(f"{member.name} has no accelerator to train on: ranks says how many")
    auto = _DEVICES.get(member.machine.platform, "cuda")
    return {
        "device": auto if limits.device == "auto" else limits.device,
        "ranks": ranks,
        "sharding": limits.sharding,
        "steps": limits.steps,
        "limit_s": max(10.0, limits.run_limit_s - _END_S),
        "most_bytes": int(limits.trace_mib * (1 << 20)),
        "env": {**_meeting(site.interface.value, limits), **dict(site.env.value)},
        "command": list(site.command.value),
        "folder": site.folder.value,
        "skip": limits.skip,
    }


def _meeting(interface: str | None, limits: StepLimits) -> dict[str, str]:
    """The management interface, over which the ranks of several hosts find each other."""
    if not isinstance(limits, FleetLimits) or interface is None or "/" in interface:
        return {}
    return dict.fromkeys((f"{name}_SOCKET_IFNAME" for name in ("NCCL", "GLOO", "HCCL")), interface)


def _read(run: Run, members: Members, limits: StepLimits, answered: Answered) -> Ran:
    verdicts = judged(run, members, limits, answered)
    good = {Status.PASS: True, Status.WARN: True, Status.FAIL: False}.get(verdicts[0].status)
    return Ran(run=run, verdicts=verdicts, outcome=Outcome(run, good))
