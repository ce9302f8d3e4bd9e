"""From the settings of one job to the verdicts of a check. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from commcheck.check import not_applicable, passed, undecidable
from commcheck.frameworks.causes import BUCKETS, OVERLAP, ZERO
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.rules import (
    CONNECTIONS,
    RULES,
    data_parallel,
    keeps_parameters,
    splits,
    without_prefetch,
)
from commcheck.frameworks.settings import TITLES, Framework, Settings
from commcheck.model import Verdict

_CONCERNS: Final[dict[str, frozenset[Framework]]] = {
    BUCKETS: frozenset({"deepspeed", "ddp", "megatron"}),
    OVERLAP: frozenset({"deepspeed", "ddp", "megatron", "fsdp"}),
    ZERO: frozenset({"deepspeed"}),
}
_TOLD: Final[dict[str, tuple[str, ...]]] = {
    BUCKETS: ("bucket_cap_mb", "rebuilt_bucket_sizes", "reduce_bucket_size",
              "allgather_bucket_size", "ddp_bucket_size", "ddp_num_buckets"),
    OVERLAP: ("overlap_comm", "contiguous_gradients", "overlap_grad_reduce", "overlap_param_gather",
              "backward_prefetch", "find_unused_parameters", "static_graph"),
    ZERO: ("stage", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
           "stage3_max_live_parameters", "reduce_scatter", "offload_param.device",
           "offload_optimizer.device"),
}  # fmt: skip
"""What is named where nothing is wrong."""
_SIZES: Final = (
    "tensor_model_parallel_size",
    "context_parallel_size",
    "pipeline_model_parallel_size",
)


_STRATEGY: Final = ("sharding_strategy", "fsdp")
"""Where FSDP1's strategy stands: without it nobody knows what a prefetch is for."""


def judge(check: str, jobs: Sequence[Settings], limits: Limits) -> tuple[Verdict, ...]:
    """The verdicts of one of the three checks on the settings of one or several jobs."""
    mine = [job for job in jobs if job.framework in _CONCERNS[check]]
    if not mine:
        return (not_applicable(f"no setting of {_names(_CONCERNS[check])}"),)
    found: list[Verdict] = []
    for job in mine:
        wrong = [verdict for rule in RULES[check] for verdict in rule(job, limits)]
        found += wrong or [_nothing_wrong(check, job)]
        if wrong and check == OVERLAP and _is_unknown_megatron(job):
            found.append(_no_overlap(job))  # what is wrong besides does not tell it
    return tuple(found)


def _nothing_wrong(check: str, job: Settings) -> Verdict:
    """Right as it stands, not known, or none of the check's business."""
    title = TITLES[job.framework]
    if job.elsewhere:
        return undecidable(
            f"{job.where}: the settings of {title} stand in {job.elsewhere}",
            turn_on=f"commcheck analyze config {job.elsewhere}",
        )
    if job.framework == "deepspeed" and not job.number("stage", 0):
        if job.is_set("stage") and job.number("stage") is None:
            told = f"{job.at('stage')}: stage is {job.word('stage')[:60]}"
            return undecidable(told, turn_on="give its number")
        return not_applicable(f"{job.where}: DeepSpeed without ZeRO: stage 0")
    unknown = _unknown(check, job)
    if unknown is not None:
        return unknown
    if check == OVERLAP and _is_unknown_megatron(job):
        return _no_overlap(job)
    told = _told(check, job)
    if job.is_config and not told:
        return not_applicable(f"{job.where}: {title}: {check.rpartition('.')[2]} left to a recipe")
    told = told or f"{check.rpartition('.')[2]} as by default"
    if job.framework == "fsdp" and keeps_parameters(job):
        told += ": nothing is gathered in the backward"
    return passed(f"{job.where}: {title}: {told}")


def _no_overlap(job: Settings) -> Verdict:
    return undecidable(
        f"{job.where}: no --overlap-grad-reduce, which matters where gradients are reduced over "
        "several data-parallel ranks",
        turn_on="give the launcher's command, or WORLD_SIZE",
    )


def _unknown(check: str, job: Settings) -> Verdict | None:
    """A setting on which the verdict rests, and whose value nobody knows."""
    asked = {name: job.values.get(name) for name in _TOLD[check]}
    if check == OVERLAP and job.framework in ("megatron", "fsdp") and not job.runs:
        connections = (job.environ or {}).get(CONNECTIONS)
        is_one = connections is not None and connections.value == "1"
        if job.framework == "megatron" and not (job.flag("overlap_grad_reduce") and is_one):
            asked |= {name: job.values.get(name) for name in _SIZES}
        if job.framework == "fsdp" or splits(job):
            asked[CONNECTIONS] = connections
    if job.framework == "fsdp":
        if keeps_parameters(job):
            del asked["backward_prefetch"]
        elif without_prefetch(job):
            asked |= {name: job.values.get(name) for name in _STRATEGY}
    for name, setting in asked.items():
        if setting is not None and not setting.is_known:
            return undecidable(
                f"{setting.where}: {name} is {str(setting.value)[:60]}, which is not known here",
                turn_on="write its value there, or give the command with it filled in",
            )
    return None


def _is_unknown_megatron(job: Settings) -> bool:
    is_off = job.framework == "megatron" and not job.flag("overlap_grad_reduce")
    is_off = is_off and not job.is_config
    is_fsdp = any(job.flag(each) for each in ("use_torch_fsdp2", "use_megatron_fsdp"))
    return is_off and not is_fsdp and data_parallel(job) is None


def _told(check: str, job: Settings) -> str:
    parts = []
    for name in (*_TOLD[check], *(_STRATEGY if job.framework == "fsdp" else ())):
        setting = job.values.get(name)
        if setting is not None and setting.is_known:
            value = setting.value
            text = f"{value:g}" if isinstance(value, float) else str(value)
            parts.append(f"{name} {text[:60]}")
    return ", ".join(parts)


def _names(frameworks: Iterable[Framework]) -> str:
    return ", ".join(sorted(TITLES[each] for each in frameworks))
