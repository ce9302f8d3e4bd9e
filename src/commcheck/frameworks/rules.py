"""The rules over settings: each asks one question of one framework's settings.

A rule yields verdicts for what it finds wrong and nothing else. Settings alone do not prove that a
step is slow: what would only slow it is a warning, what cannot be meant or cannot start fails.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from commcheck.check import failed, warned
from commcheck.frameworks import causes, deepspeed
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.settings import Settings
from commcheck.model import Cause, Remedy, Verdict

Rule = Callable[[Settings, Limits], Iterator[Verdict]]

MIB: Final = 1 << 20
CONNECTIONS: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
FEW_BUCKETS: Final = 4
"""The last bucket is always exposed: with fewer than these that is over a quarter."""


def _said(
    cause: Cause,
    rule: str,
    reason: str,
    *remedies: Remedy,
    fails: bool = False,
    value: object = "",
) -> Verdict:
    """A finding with those of its cause's remedies that belong to the framework."""
    verdict = (failed if fails else warned)(cause, reason, rule=rule, value=value)
    effects = [each.effect for each in remedies]
    mine = tuple(each for each in verdict.remedies if each.effect in effects)
    return replace(verdict, remedies=mine)


# --- bucket sizes -------------------------------------------------------------------------------


def ddp_size(job: Settings, limits: Limits) -> Iterator[Verdict]:
    """DDP's bucket_cap_mb, in MiB."""
    size = job.number("bucket_cap_mb")
    if job.framework != "ddp" or size is None:
        return
    where = job.at("bucket_cap_mb")
    said = f"{where}: bucket_cap_mb={size:g}"
    if size >= limits.unit_mb:
        reason = f"{said} is {size * MIB / 1e9:.0f} GB: it counts MiB"
        yield _said(causes.UNIT, "BUCKET-001", reason, causes.DDP_BUCKET, fails=True, value=25)
    elif size > limits.large_mb:
        reason = f"{said}: a model below that size has one bucket, and nothing overlaps"
        yield _said(
            causes.TOO_LARGE, "BUCKET-003", reason, causes.DDP_BUCKET, causes.ADVISE, value=25
        )
    elif size < limits.small_mb:
        reason = (
            f"{said}: an all-reduce for each gradient above that size, and small ones are bound by "
            f"latency; want {limits.small_mb:g} or more"
        )
        yield _said(
            causes.TOO_SMALL, "BUCKET-002", reason, causes.DDP_BUCKET, causes.ADVISE, value=25
        )


def element_size(job: Settings, limits: Limits) -> Iterator[Verdict]:
    """Sizes that count elements: DeepSpeed's and Megatron's."""
    names = {"deepspeed": ("reduce_bucket_size", "allgather_bucket_size"),
             "megatron": ("ddp_bucket_size",)}  # fmt: skip
    for name in names.get(job.framework, ()):
        size = job.number(name)
        if size is None or (job.framework == "deepspeed" and not job.number("stage", 0)):
            continue
        mend, value = (
            (causes.DEEPSPEED_BUCKET, 50_000_000)
            if job.framework == "deepspeed"
            else (causes.MEGATRON_BUCKET, 40_000_000)
        )
        said = f"{job.at(name)}: {_flag(job, name)} {size:g}"
        if size < limits.unit_elements:
            reason = f"{said} is {2 * size:g} bytes in 16 bits: it counts elements"
            yield _said(causes.UNIT, "BUCKET-001", reason, mend, fails=True, value=value)
        elif size < limits.small_elements:
            reason = (
                f"{said} elements, {2 * size / 1e6:g} MB in 16 bits: bound by latency; want "
                f"{limits.small_elements:g} or more"
            )
            yield _said(causes.TOO_SMALL, "BUCKET-002", reason, mend, causes.ADVISE, value=value)
        elif size > limits.large_elements:
            reason = f"{said} elements, {2 * size / 1e9:g} GB in 16 bits: most models fit into one"
            yield _said(causes.TOO_LARGE, "BUCKET-003", reason, mend, causes.ADVISE, value=value)


def _flag(job: Settings, name: str) -> str:
    return f"--{name.replace('_', '-')}" if job.framework == "megatron" else name


def ddp_log(job: Settings, limits: Limits) -> Iterator[Verdict]:
    """What DDP itself logged: its buckets, and how much of their time was hidden."""
    sizes = [int(each) for each in job.word("rebuilt_bucket_sizes").replace(" ", "").split(",")
             if each.isdecimal()]  # fmt: skip
    if job.framework != "ddp" or not sizes:
        return
    where, total = job.at("rebuilt_bucket_sizes"), sum(sizes)
    overlap = _overlap(job)
    hidden = "" if overlap is None else f"; {overlap:.0%} of communication overlaps the backward"
    if overlap is not None and overlap >= limits.overlap:
        return
    cause = causes.TOO_LARGE
    if len(sizes) == 1 and total > limits.small_mb * MIB:
        reason = f"{where}: all {total / 1e6:.1f} MB of gradients are in one bucket{hidden}"
    elif overlap is None or len(sizes) == 1:
        return
    elif total / len(sizes) < limits.small_mb * MIB:
        cause = causes.TOO_SMALL
        reason = f"{where}: {len(sizes)} buckets of {total / len(sizes) / 1e6:.2g} MB{hidden}"
    elif len(sizes) < FEW_BUCKETS:
        largest = max(sizes) / 1e6
        reason = f"{where}: {len(sizes)} buckets of up to {largest:.1f} MB{hidden}"
    else:
        return  # neither few nor small: what is exposed has other reasons
    yield _said(cause, "BUCKET-004", reason, causes.ADVISE)


def _overlap(job: Settings) -> float | None:
    both = job.number("avg_backward_compute_comm_overlap_time")
    comm = job.number("avg_backward_comm_time")
    return both / comm if both is not None and comm else None


def copies(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """DDP that copies gradients out of its buckets, where its log shows what that means."""
    view = job.values.get("gradient_as_bucket_view")
    total = job.number("total_parameter_size_bytes")
    if job.framework != "ddp" or view is None or view.value or not total:
        return
    reason = (
        f"{view.where}: gradient_as_bucket_view is off: {total / 1e6:.1f} MB of gradients are kept "
        "twice and copied at each step"
    )
    yield _said(causes.COPIES, "BUCKET-005", reason, causes.VIEW)


# --- overlap ------------------------------------------------------------------------------------


def deepspeed_overlap(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """overlap_comm, whose default is true at stage 3 alone."""
    stage = job.number("stage", 0)
    if job.framework != "deepspeed" or job.elsewhere or not stage:
        return
    overlap = job.flag("overlap_comm", stage == 3)
    if overlap is False:
        how = (
            "is false" if job.is_set("overlap_comm") else f"is not set, and off at stage {stage:g}"
        )
        where = job.at("overlap_comm")
        reason = f"{where}: overlap_comm {how}: gradients are reduced while nothing computes"
        yield _said(causes.OFF, "OVERLAP-001", reason, causes.DEEPSPEED_OVERLAP)
    elif overlap and job.flag("contiguous_gradients", True) is False and stage < 3:
        reason = (
            f"{job.at('contiguous_gradients')}: contiguous_gradients is false: overlap_comm needs "
            "its second buffer"
        )
        yield _said(causes.NO_EFFECT, "OVERLAP-002", reason, causes.DEEPSPEED_OVERLAP)


def comms_logger(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """DeepSpeed's communication logger, which times every collective by waiting for it."""
    if job.framework == "deepspeed" and job.flag("comms_logger"):
        reason = (
            f"{job.at('comms_logger')}: comms_logger is enabled: every collective is waited for"
        )
        yield _said(causes.SYNCHRONOUS, "OVERLAP-003", reason, causes.NO_LOGGER)


def megatron_overlap(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """Megatron's overlap flags, and what each of them needs."""
    if job.framework != "megatron" or _is_fsdp(job):
        return
    reduces, gathers = job.flag("overlap_grad_reduce"), job.flag("overlap_param_gather")
    shards = job.flag("use_distributed_optimizer")
    mend = causes.MEGATRON_OVERLAP
    if gathers and not (reduces and shards):
        lacks = [
            flag
            for flag, has in (
                ("--overlap-grad-reduce", reduces),
                ("--use-distributed-optimizer", shards),
            )
            if not has
        ]
        reason = (
            f"{job.at('overlap_param_gather')}: --overlap-param-gather needs {' and '.join(lacks)}"
        )
        yield _said(causes.NO_EFFECT, "OVERLAP-004", reason, mend, fails=not job.runs)
    sizes = [name for name in ("ddp_bucket_size", "ddp_num_buckets") if job.is_set(name)]
    if sizes and not reduces:
        reason = f"{job.at(sizes[0])}: {_flag(job, sizes[0])} needs --overlap-grad-reduce"
        yield _said(causes.NO_EFFECT, "OVERLAP-004", reason, mend)
    copies_of = data_parallel(job)
    if not reduces and copies_of is not None and copies_of > 1:
        reason = (
            f"{job.where}: no --overlap-grad-reduce, with {copies_of:g} data-parallel ranks: "
            "gradients are reduced after the backward pass"
        )
        yield _said(causes.OFF, "OVERLAP-001", reason, mend)
    elif reduces and shards and not gathers and copies_of != 1:
        reason = (
            f"{job.at('use_distributed_optimizer')}: no --overlap-param-gather: parameters are "
            "gathered before the forward pass begins"
        )
        yield _said(causes.OFF, "OVERLAP-001", reason, mend)


def data_parallel(job: Settings) -> float | None:
    """Ranks that hold the same part of a Megatron model; None where the world is not known."""
    ranks = job.ranks
    if job.environ is not None and "WORLD_SIZE" in job.environ:
        told = str(job.environ["WORLD_SIZE"].value)
        ranks = int(told) if told.isdecimal() else ranks
    if not ranks:
        return None
    parts = 1.0
    for name in ("tensor", "pipeline", "context"):
        key = "context_parallel_size" if name == "context" else f"{name}_model_parallel_size"
        size = job.number(key, 1.0)
        if not size:
            return None
        parts *= size
    return ranks / parts


def _is_fsdp(job: Settings) -> bool:
    names = ("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp")
    return any(job.flag(name) for name in names)


def connections(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """CUDA_DEVICE_MAX_CONNECTIONS against what the job does."""
    if job.environ is None or job.framework not in ("megatron", "fsdp"):
        return
    found = job.environ.get(CONNECTIONS)
    if found and not found.is_known:
        return
    value = str(found.value) if found else None
    where = found.where if found else job.where
    if job.framework == "fsdp" or _is_fsdp(job):
        if value == "1":
            reason = (
                f"{where}: CUDA_DEVICE_MAX_CONNECTIONS=1 under FSDP: gathers queue behind computing"
            )
            yield _said(causes.CONNECTIONS, "OVERLAP-005", reason, causes.CONNECTIONS_MORE)
        return
    # A running job has passed Megatron's own test: it is on Blackwell, or a version without it.
    if (split := splits(job)) and value != "1" and not job.runs:
        has = f"is {value}" if value else "is not set"
        reason = (
            f"{where}: CUDA_DEVICE_MAX_CONNECTIONS {has} with {split[0]}; before Blackwell it is 1"
        )
        yield _said(causes.CONNECTIONS, "OVERLAP-005", reason, causes.CONNECTIONS_ONE)


def splits(job: Settings) -> list[str]:
    """The flags by which a layer of a Megatron model lies on several ranks."""
    return [
        f"--{name.replace('_', '-')} {size:g}"
        for name in ("tensor_model_parallel_size", "context_parallel_size")
        if (size := job.number(name)) and size > 1
    ]


def fsdp_prefetch(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """FSDP's backward prefetch, which is on by default."""
    word = job.word("backward_prefetch").replace("backwardprefetch.", "")
    if job.framework == "fsdp" and word in ("none", "no_prefetch", "false", "off"):
        reason = f"{job.at('backward_prefetch')}: backward_prefetch is off: each unit is waited for"
        yield _said(causes.PREFETCH_OFF, "OVERLAP-006", reason, causes.FSDP_PREFETCH)


def ddp_unused(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """find_unused_parameters without a static graph."""
    if job.framework != "ddp" or not job.flag("find_unused_parameters"):
        return
    if job.flag("static_graph", False) is False:
        where = job.at("find_unused_parameters")
        reason = (
            f"{where}: find_unused_parameters is on: the graph is searched at each step, and "
            "buckets are never put in the order in which gradients get ready"
        )
        yield _said(causes.UNUSED, "OVERLAP-007", reason, causes.NO_UNUSED)


# --- ZeRO ---------------------------------------------------------------------------------------


def gathers(job: Settings, limits: Limits) -> Iterator[Verdict]:
    """How far ahead, and in how small pieces, ZeRO-3 gathers; and how long it keeps them."""
    if job.framework != "deepspeed" or job.number("stage", 0) != 3:
        return
    ahead = job.number("stage3_prefetch_bucket_size", 5e7)
    if ahead is not None and ahead < limits.prefetch:
        where = job.at("stage3_prefetch_bucket_size")
        reason = (
            f"{where}: stage3_prefetch_bucket_size {ahead:g} elements: next to nothing is gathered "
            f"ahead; want {limits.prefetch:g} or more"
        )
        yield _said(causes.GATHERS_SMALL, "ZERO-001", reason, causes.PREFETCH_MORE)
    whole = job.number("stage3_param_persistence_threshold", 1e5)
    if whole is not None and whole < limits.persistence:
        where = job.at("stage3_param_persistence_threshold")
        reason = (
            f"{where}: stage3_param_persistence_threshold {whole:g} elements: biases and norms are "
            f"gathered one by one; want {limits.persistence:g} or more"
        )
        yield _said(causes.GATHERS_SMALL, "ZERO-002", reason, causes.PERSIST)
    for name in ("stage3_max_live_parameters", "stage3_max_reuse_distance"):
        size = job.number(name, 1e9)
        if size is not None and size < limits.live:
            reason = f"{job.at(name)}: {name} {size:g} elements, want {limits.live:g} or more"
            yield _said(causes.REGATHER, "ZERO-003", reason, causes.LIVE)


def scatter(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """reduce_scatter off at the stages where gradients are sharded, and where that costs anything.

    With use_multi_rank_bucket_allreduce, the default, DeepSpeed calls all_reduce either way.
    Source: DeepSpeed runtime/zero/stage_1_and_2.py, average_tensor.
    """
    stage = job.number("stage", 0)
    if job.framework != "deepspeed" or stage not in (1, 2):
        return
    by_rank = job.flag("use_multi_rank_bucket_allreduce", True) is False
    if by_rank and job.flag("reduce_scatter") is False:
        where = job.at("reduce_scatter")
        reason = f"{where}: reduce_scatter is false at stage {stage:g}: twice the bytes"
        yield _said(causes.SCATTER_OFF, "ZERO-004", reason, causes.SCATTER)


def offload(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """Offload to the host without page-locked memory."""
    if job.framework != "deepspeed":
        return
    for name in ("offload_optimizer", "offload_param"):
        device = job.word(f"{name}.device")
        if device in ("cpu", "nvme") and job.flag(f"{name}.pin_memory", False) is False:
            key = f"{name}.pin_memory"
            where = job.at(key) if job.is_set(key) else job.at(f"{name}.device")
            has = "is false" if job.is_set(key) else "is not set, and off"
            reason = f"{where}: {name} to {device}, and pin_memory {has}"
            yield _said(causes.OFFLOAD_UNPINNED, "ZERO-005", reason, causes.PIN)


def other_stage(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """stage3_ settings at another stage."""
    stage = job.number("stage", 0)
    if job.framework != "deepspeed" or stage in (None, 3):
        return
    names = [name for name in job.values if name.startswith("stage3_") and "gather" not in name]
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        reason = (
            f"{job.at(names[0])}: {names[0]}{more} at stage {stage:g}: it counts at stage 3 alone"
        )
        yield _said(causes.OTHER_STAGE, "ZERO-006", reason, causes.STAGE)


def misspelt(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """Keys of zero_optimization that are nearly a known one."""
    known = [*deepspeed.KEYS, *deepspeed.SECTIONS]
    for name, setting in job.values.items():
        if name.startswith(deepspeed.UNKNOWN) and job.framework == "deepspeed":
            key = name.removeprefix(deepspeed.UNKNOWN)
            near = difflib.get_close_matches(key, known, 1, 0.85)
            if near:
                reason = f"{setting.where}: no key {key[:60]!r} is known, {near[0]!r} is"
                yield _said(causes.MISSPELT, "ZERO-007", reason, causes.SPELL, value=near[0])


RULES: Final[dict[str, tuple[Rule, ...]]] = {
    causes.BUCKETS: (ddp_size, element_size, ddp_log, copies),
    causes.OVERLAP: (
        deepspeed_overlap,
        comms_logger,
        megatron_overlap,
        connections,
        fsdp_prefetch,
        ddp_unused,
    ),
    causes.ZERO: (gathers, scatter, offload, other_stage, misspelt),
}
