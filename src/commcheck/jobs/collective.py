"""Jobs that run a collective: inside hosts, between pairs, rail by rail, over the whole fleet.

One vocabulary for nccl-tests and hccl_test. A run is judged by ``sweep.judge``, which first asks
for proof that it is the run asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from commcheck.check import limit
from commcheck.collect.base import Request
from commcheck.command import Command, Output
from commcheck.errors import CommandMissing, ParseError, Unjudgeable
from commcheck.jobs import hccl_test, nccl_tests, sweep, sweep_seen
from commcheck.jobs.bound import Fabric
from commcheck.jobs.job import Answered, Job, Member, Members, Part, Ran, Steps, once
from commcheck.jobs.launchers import Program, alone, command
from commcheck.jobs.outcomes import ALL_RAILS, Outcome, Run
from commcheck.jobs.pairing import Plan, PlanName, Preview, next_round, preview
from commcheck.jobs.pods import hostname_of, is_mpijob
from commcheck.jobs.proof import Asked
from commcheck.jobs.reading import COLLECTIVES, MIB, Sweep
from commcheck.jobs.said import Shape, error, together
from commcheck.kube.mpijob import on_hosts
from commcheck.lazy import dataclass
from commcheck.model import Status, Verdict
from commcheck.report.counts import many

_SHORT: Final = "a pair scan takes 2 GiB and 20 iterations, below 10 s (nccl-tests)"
_OWN: Final = "commcheck's plan of runs"


@dataclass(frozen=True, slots=True)
class Limits(sweep_seen.Limits):
    """What is run, and what of it passes. Sizes in MiB, as nccl-tests counts them."""

    collective: str = limit("all_gather", unit="collective", source="it proves the NICs: a tree "
                            "cannot hide them (NCCL)")  # fmt: skip
    plan: str = limit("pairs", unit="pairs, circle or bisect", source=_OWN)
    min_mib: int = limit(64, unit="MiB, first size", source=_SHORT)
    max_mib: int = limit(2048, unit="MiB, last size", source=_SHORT)
    iterations: int = limit(20, unit="timed runs of each size", source="default of nccl-tests")
    run_limit_s: float = limit(180.0, unit="s for one run", source="five times a healthy run and "
                               "a minute to start (nccl-tests)")  # fmt: skip


@dataclass(frozen=True, slots=True)
class NodeLimits(Limits):
    """Inside a host all_reduce has references, and costs nobody else anything."""

    collective: str = limit("all_reduce", unit="collective", source="the references of healthy "
                            "hosts are for it")  # fmt: skip
    min_mib: int = limit(256, unit="MiB, first size", source=_SHORT)
    max_mib: int = limit(8192, unit="MiB, last size", source="NVLink levels off above 1 GiB "
                         "(public nccl-tests tables)")  # fmt: skip


_NO_ENV: Final[Mapping[str, str]] = {}
_PLANS: Final = ("pairs", "circle", "bisect")
_MPI_HOSTS: Final = 4
"""Above so many hosts NCCL's own lines would be megabytes: only warnings are asked for."""


def collective_job(shape: Shape, env: Mapping[str, str] = _NO_ENV) -> Job:
    """The job of one shape. ``pairs`` takes its plan from the limits.

    ``env``: variables of its runs that count for more than those it sets by itself.
    """
    return Job(
        tool="nccl-tests or hccl_test",
        least=1 if shape == "node" else 2,
        programs=_programs,
        steps=lambda members, limits: _steps(shape, members, limits),
        preview=lambda hosts, limits: _preview(shape, hosts, limits),
        run_s=lambda _hosts, limits: _about_s(limits),
        launch=lambda run, members, limits: _launch(run, members, limits, env),
        read=lambda run, members, limits, answered: _read(shape, run, members, limits, answered),
        together=lambda found, _limits: together(shape, found),
    )


def _programs(platform: str, limits: Limits) -> tuple[str, ...]:
    if limits.collective not in COLLECTIVES:
        raise Unjudgeable(f"{limits.collective!r} is none of {', '.join(COLLECTIVES)}")
    if platform == "ascend":
        return (f"{limits.collective}_test",)
    return (f"{limits.collective}_perf", f"{limits.collective}_perf_mpi")


def _about_s(limits: Limits) -> float:
    """Start-up, and the sizes at a slow 20 GB/s."""
    moved = 2 * limits.max_mib * MIB * (limits.iterations + 8) * 2
    return min(limits.run_limit_s, 15 + moved / 20e9)


# --- which hosts run together -------------------------------------------------------------------


def _steps(shape: Shape, members: Sequence[Member], limits: Limits) -> Steps:
    names = tuple(member.name for member in members)
    if shape == "node":
        return once(tuple(Run((name,)) for name in names))
    if shape == "fleet":
        return once((Run(names, alone=True),))
    leaves = {member.name: member.site.leaf_name for member in members}
    plan = Plan(
        hosts=names,
        name=_plan_name(shape, limits),
        rails=_rails(members),
        leaf_of={name: leaf for name, leaf in leaves.items() if leaf},
        narrow=_rails(members) > 1,
    )
    return lambda outcomes: next_round(plan, outcomes)


def _plan_name(shape: Shape, limits: Limits) -> PlanName:
    if shape == "rails":
        return "rails"
    if limits.plan not in _PLANS:
        raise Unjudgeable(f"plan {limits.plan!r} is none of {', '.join(_PLANS)}")
    return cast("PlanName", limits.plan)


def _rails(members: Sequence[Member]) -> int:
    """How many rails can be chosen one by one: their names must be the same everywhere."""
    names = {tuple(rail.label for rail in member.machine.rails) for member in members}
    return len(names.pop()) if len(names) == 1 else 0


def _preview(shape: Shape, hosts: Sequence[str], limits: Limits) -> Preview | None:
    if shape in ("node", "fleet") or len(hosts) < 2:
        return None
    name = _plan_name(shape, limits)
    plan = Plan(hosts=tuple(hosts), name=name, rails=8 if shape == "rails" else 0)
    return preview(plan, _about_s(limits))


# --- launching ----------------------------------------------------------------------------------


def _launch(run: Run, members: Members, limits: Limits, env: Mapping[str, str]) -> tuple[Part, ...]:
    mine = [members[host] for host in run.hosts]
    first = mine[0]
    head = members.get(first.site.head.value or first.name)
    if head is None:
        raise Unjudgeable(
            f"{first.site.head.value}, from which runs are launched, is not in the inventory or "
            "was not reached"
        )
    platforms = {member.machine.platform for member in mine}
    if len(platforms) != 1:
        raise Unjudgeable(f"hosts of different platforms cannot run together: {sorted(platforms)}")
    per_host = _per_host(mine)
    ascend = "ascend" in platforms
    as_job = is_mpijob(first)
    single = len(mine) == 1 and not ascend and not as_job
    program = Program(
        argv=(
            _in_image(first, limits) if as_job else _path(mine, limits),
            *_arguments(run, limits, per_host if single or ascend else 1, ascend),
        ),
        per_host=per_host,
        env={**_environment(run, mine, limits), **env, **dict(first.site.env.value)},
        limit_s=limits.run_limit_s,
    )
    words = alone(program) if single else command(program, head, mine)
    # nccl-tests prints a kilobyte a rank, NCCL ten times that where it is asked to.
    cap = (4 << 20) + per_host * len(mine) * (16 << 10)
    launch = Command(words, timeout_s=limits.run_limit_s, cap_bytes=cap)
    return (Part(head.name, (Request(launch),)),)


def _per_host(members: Sequence[Member]) -> int:
    counts = {member.name: len(member.machine.accelerators) for member in members}
    if len(set(counts.values())) != 1 or 0 in counts.values():
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise Unjudgeable(f"hosts with different numbers of accelerators cannot run as one: {told}")
    return next(iter(counts.values()))


def _path(members: Sequence[Member], limits: Limits) -> str:
    """The program's path on the first host; every other one must have it, too."""
    names = _programs(members[0].machine.platform, limits)
    for member in members:
        if not any(name in member.programs for name in names):
            raise CommandMissing(
                f"{member.name} has no {names[0]} on PATH nor in the usual places",
                "build nccl-tests with MPI=1, or say where it is: commcheck_benchmarks",
            )
    # Built for MPI it may carry another name; where both are there, that one crosses hosts.
    wanted = reversed(names) if len(members) > 1 else iter(names)
    found = members[0].programs
    return next(found[name] for name in wanted if name in found)


def _in_image(first: Member, limits: Limits) -> str:
    """The program's path in the image of an MPIJob."""
    if first.machine.platform == "ascend":
        raise Unjudgeable("commcheck_launcher is mpijob, which is for GPUs only; use mpirun")
    name = _programs(first.machine.platform, limits)[0]
    folder = first.site.programs.value
    return f"{folder}/{name}" if folder else name


def _arguments(run: Run, limits: Limits, gpus: int, ascend: bool) -> tuple[str, ...]:
    sizes = ("-b", f"{limits.min_mib}M", "-e", f"{limits.max_mib}M", "-f", "2")
    common = (*sizes, "-w", "5", "-n", str(limits.iterations), "-c", "1")
    if ascend:
        return ("-p", str(gpus), *common)
    # The mean over groups would hide one slow rail of eight.
    slowest = ("-a", "3") if run.rail == ALL_RAILS else ()
    return (*common, "-g", str(gpus), *slowest)


def _environment(run: Run, members: Sequence[Member], limits: Limits) -> dict[str, str]:
    first = members[0]
    if first.machine.platform == "ascend":
        # Above its buffer HCCL falls off by itself: that is no fault of the wire.
        return {"HCCL_BUFFSIZE": str(max(200, limits.max_mib))}
    talk = "INFO" if len(members) <= _MPI_HOSTS else "WARN"
    env = {"NCCL_DEBUG": talk, "NCCL_DEBUG_SUBSYS": "INIT,NET"}
    interface = first.site.interface.value
    if interface and "/" not in interface:
        env["NCCL_SOCKET_IFNAME"] = interface
    if run.rail == ALL_RAILS:
        env["NCCL_TESTS_SPLIT"] = f"MOD {len(first.machine.accelerators)}"
    elif run.rail is not None:
        rail = first.machine.rails[run.rail]
        env["NCCL_IB_HCA"] = f"={rail.hca}:{rail.port}"
    return env


# --- reading ------------------------------------------------------------------------------------


def _read(shape: Shape, run: Run, members: Members, limits: Limits, answered: Answered) -> Ran:
    mine = [members[host] for host in run.hosts]
    verdicts, busbw = _judged(shape, run, mine, limits, answered)
    status = verdicts[0].status
    good = {Status.PASS: True, Status.WARN: True, Status.FAIL: False}.get(status)
    named = tuple(replace(each, hosts=_inventory_names(each.hosts, mine)) for each in verdicts)
    return Ran(run=run, verdicts=named, outcome=Outcome(run, good, busbw))


def _judged(
    shape: Shape, run: Run, mine: Sequence[Member], limits: Limits, answered: Answered
) -> tuple[tuple[Verdict, ...], float | None]:
    if answered.problem:
        return (error("LaunchFailed", answered.problem),), None
    if answered.timed_out:
        return (_timed_out(run, mine, limits, answered),), None
    output = answered.outputs[0]
    try:
        found = _sweep_of(output, mine, limits)
    except ParseError:
        reason = f"the run on {run} printed no table: {output.complaint}"
        return (error("LaunchFailed", reason),), None
    first = mine[0]
    # Each NPU has a port of its own.
    ascend = first.machine.platform == "ascend"
    rails = len(first.machine.accelerators if ascend else first.machine.rails)
    found = replace(found, slowest=run.rail == ALL_RAILS)
    per_host = len(first.machine.accelerators)
    if run.rail is not None and not (run.rail == ALL_RAILS and found.split):
        rails = 1
    names = tuple(member.hostname for member in mine)
    asked = Asked(
        collective=limits.collective,
        nranks=per_host * len(mine),
        hosts=names if len(set(names)) == len(names) and all(names) else None,
        host_count=len(mine),
        max_bytes=limits.max_mib * MIB,
    )
    fabric = Fabric(
        nic_gbits=None if shape == "node" else first.site.nic_gbits.value,
        rails=rails or None,
        gpus=per_host if _all_for_training(first) else None,
        ports=max((len(rail.ports) for rail in first.machine.rails), default=0) or 1,
        reference_gbytes=first.site.reference("rails" if run.rail is not None else shape),
        algorithm=dict(first.site.env.value).get("NCCL_ALGO", ""),
    )
    verdicts = sweep.judge(found, fabric, asked, limits)
    return verdicts, verdict_busbw(verdicts[0])


def _all_for_training(member: Member) -> bool:
    """No rail may be for storage or management: declared, next to an accelerator, or EFA."""
    machine = member.machine
    return machine.platform == "gpu-efa" or all(rail.fabric for rail in machine.rails)


def _timed_out(run: Run, mine: Sequence[Member], limits: Limits, answered: Answered) -> Verdict:
    """How far it came before it was ended, and what it said of why."""
    reason = f"the run on {run} did not end within {limits.run_limit_s:.0f} s and was ended"
    try:
        found = _sweep_of(answered.outputs[0], mine, limits) if answered.outputs else None
    except ParseError:
        found = None
    if found is not None and found.first_failure is not None:
        reason += f": {found.first_failure.text}"
    elif found is not None and found.rows:
        reason += f", after {many(len(found.rows), 'size')}"
    elif found is not None and found.ranks:
        reason += (
            ", right after its ranks had met: a firewall between the hosts, or a NIC that does "
            "not reach its peer"
        )
    return error("RunTimedOut", reason)


def _sweep_of(output: Output, mine: Sequence[Member], limits: Limits) -> Sweep:
    text = on_hosts(f"{output.stdout}\n{output.stderr}", hostname_of(mine))
    ranks = len(mine[0].machine.accelerators) * len(mine)
    if mine[0].machine.platform == "ascend" or hccl_test.looks_like(text):
        return hccl_test.parse(text, collective=limits.collective, nranks=ranks)[0]
    found = nccl_tests.parse(text)[0]
    if found.collective is None:  # before 2.16.7 no line names it, and this is what was started
        return replace(found, collective=limits.collective)
    return found


def verdict_busbw(verdict: Verdict) -> float | None:
    """The busbw that a verdict measured, GB/s."""
    value = verdict.measured.get("busbw_gbytes")
    return float(value) if isinstance(value, int | float) else None


def _inventory_names(hostnames: Sequence[str], mine: Sequence[Member]) -> tuple[str, ...]:
    """Names that people know for those that the machines call themselves."""
    known: dict[str, str] = {}
    for member in mine:
        known.setdefault(member.hostname, member.name)
    return tuple(known.get(name, name) for name in hostnames) or tuple(m.name for m in mine)
