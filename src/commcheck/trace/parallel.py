"""The rungs of groups that are not data-parallel: each hides by other means, or by none."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Final

from commcheck.check import undecidable
from commcheck.model import Verdict
from commcheck.trace import causes
from commcheck.trace.facts import JobFacts, RankFacts
from commcheck.trace.limits import Limits
from commcheck.trace.roles import Role
from commcheck.trace.rungs import Rung, Shares, exposure, pct, percent

_CAUSES: Final = {
    Role.EXPERT: causes.EXPERT_PARALLEL,
    Role.CONTEXT: causes.CONTEXT_PARALLEL,
}
_ON_GPU: Final = (
    "ProfilerActivity.CPU beside CUDA, with torch 2.4 or later, and groups that have a "
    "description: new_group(group_desc=...), init_device_mesh(mesh_dim_names=...)"
)
_ON_NPU: Final = (
    "groups with a name: group_name in ProcessGroupHCCL.Options().hccl_config, and "
    "profiler_metadata.json left beside the trace"
)


def of_role(shares: Shares, role: Role) -> Shares:
    """The same rank's shares, of the communication with one role."""
    parts = [(step.part(role), step.time_ns) for step in shares.rank.steps if step.time_ns]
    comm = sum(part.comm_ns for part, _ in parts)
    exposed = sum(part.exposed_ns for part, _ in parts)
    others = sorted({str(each) for step in shares.rank.steps for each in step.roles} - {str(role)})
    return replace(
        shares,
        exposed=median([part.exposed_ns / ns for part, ns in parts] or [0.0]),
        comm=median([part.comm_ns / ns for part, ns in parts] or [0.0]),
        overlap=1 - exposed / comm if comm else None,
        apart=f" without that of {' and '.join(others)} groups" if others else "",
    )


def role_rungs(shares: Shares, limits: Limits) -> list[Rung]:
    """Are the groups of experts, or those of a sequence, exposed by more than the limit?"""
    rungs = []
    for role, cause in _CAUSES.items():
        mine = of_role(shares, role)
        if mine.exposed <= limits.exposed_warn:
            continue
        rungs.append(
            Rung(
                cause,
                shares.whole > limits.exposed_fail,
                f"{mine.rank.name}: exposed communication of {role} groups is "
                f"{exposure(mine, limits)}; it takes {pct(mine.comm)} and "
                f"{pct(mine.overlap or 0.0)} of it overlaps",
                "certain",
                (),
                {
                    "exposed_percent_of_step": percent(mine.exposed),
                    "overlap_percent": percent(mine.overlap or 0.0),
                },
            )
        )
    return rungs


def tensor_rung(job: JobFacts, limits: Limits) -> list[Rung]:
    """Is the communication inside layers, which cannot hide, much of the step?"""
    exposed, rank = _most(job, "exposed_tensor_ns")
    if exposed <= limits.exposed_warn:
        return []
    return [
        Rung(
            causes.TENSOR_PARALLEL,
            False,  # exposed by nature: only a sweep can tell whether it is slow
            f"{rank.name}: exposed communication of tensor-parallel groups is {pct(exposed)} of "
            f"the step (limit {pct(limits.exposed_warn)})",
            "certain",
            (),
            {"exposed_percent_of_step": percent(exposed)},
        )
    ]


def bubble_rung(job: JobFacts, limits: Limits) -> list[Rung]:
    """Do pipeline stages wait for their neighbours?"""
    bubble, rank = _most(job, "bubble_ns")
    if bubble <= limits.bubble_warn:
        return []
    return [
        Rung(
            causes.PIPELINE_BUBBLE,
            False,
            f"{rank.name}: stages wait for each other for {pct(bubble)} of the step (limit "
            f"{pct(limits.bubble_warn)}): a pipeline bubble, not bandwidth",
            "likely",
            (),
            {"bubble_percent_of_step": percent(bubble)},
        )
    ]


def untold(job: JobFacts, limits: Limits) -> Verdict | None:
    """What is said of sends and receives that may be those of anything; None where they are few.

    Pipeline stages, ring attention and all-to-all look alike: NCCL runs all as SendRecv kernels.
    """
    exposed, rank = _most(job, "untold_ns")
    if exposed <= limits.exposed_warn:
        return None
    return undecidable(
        f"{rank.name}: send and receive are exposed for {pct(exposed)} of the step (limit "
        f"{pct(limits.exposed_warn)}), and nothing tells whether pipeline stages wait for each "
        "other, or ring attention or an all-to-all waits for the wire",
        turn_on=_ON_NPU if rank.layout == "ascend" else _ON_GPU,
    )


def _most(job: JobFacts, of: str) -> tuple[float, RankFacts]:
    return max(((rank.share(of) or 0.0, rank) for rank in job.ranks), key=lambda each: each[0])
