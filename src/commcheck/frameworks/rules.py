"""The rules over settings: each asks one question of one framework's settings.

A rule yields verdicts for what it finds wrong and nothing else. Settings alone do not prove that a
step is slow: what would only slow it is a warning, what cannot be meant or cannot start fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commcheck.frameworks import causes, causes_fsdp, zero
from commcheck.frameworks.command import BLOCKING
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.rule import Rule, finding
from commcheck.frameworks.settings import NOT_SET, OLD_NAME, Settings
from commcheck.model import Remedy, Verdict

MIB: Final = 1 << 20
CONNECTIONS: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
FEW_BUCKETS: Final = 4
"""The last bucket is always exposed: with fewer than these that is over a quarter."""


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
        yield finding(causes.UNIT, "BUCKET-001", reason, causes.DDP_BUCKET, fails=True, value=25)
    elif size > limits.large_mb:
        reason = f"{said}: a model below that size has one bucket, and nothing overlaps"
        yield finding(
            causes.TOO_LARGE, "BUCKET-003", reason, causes.DDP_BUCKET, causes.ADVISE, value=25
        )
    elif size < limits.small_mb:
        reason = (
            f"{said}: an all-reduce for each gradient above that size, and small ones are bound by "
            f"latency; want {limits.small_mb:g} or more"
        )
        yield finding(
            causes.TOO_SMALL, "BUCKET-002", reason, causes.DDP_BUCKET, causes.ADVISE, value=25
        )


_GATHERS: Final = "allgather_bucket_size"


def element_size(job: Settings, limits: Limits) -> Iterator[Verdict]:
    """Sizes that count elements: DeepSpeed's and Megatron's.

    DeepSpeed gathers parameters after the step at stages 1 and 2, where nothing computes: a large
    piece costs memory and no overlap (runtime/zero/stage_1_and_2.py).
    """
    stage = job.number("stage", 0)
    deepspeed_names = ("reduce_bucket_size", *((_GATHERS,) if stage in (1, 2) else ()))
    names = {"deepspeed": deepspeed_names if stage else (), "megatron": ("ddp_bucket_size",)}
    for name in names.get(job.framework, ()):
        size = job.number(name)
        if size is None:
            continue
        mend, value = _ELEMENTS[name]
        said = f"{job.at(name)}: {_flag(job, name)} {size:g}"
        if size < limits.unit_elements:
            reason = f"{said} is {2 * size:g} bytes in 16 bits: it counts elements"
            yield finding(causes.UNIT, "BUCKET-001", reason, mend, fails=True, value=value)
        elif size < limits.small_elements:
            reason = (
                f"{said} elements, {2 * size / 1e6:g} MB in 16 bits: bound by latency; want "
                f"{limits.small_elements:g} or more"
            )
            yield finding(causes.TOO_SMALL, "BUCKET-002", reason, mend, causes.ADVISE, value=value)
        elif size > limits.large_elements and name != _GATHERS:
            reason = f"{said} elements, {2 * size / 1e9:g} GB in 16 bits: most models fit into one"
            yield finding(causes.TOO_LARGE, "BUCKET-003", reason, mend, causes.ADVISE, value=value)


_ELEMENTS: Final[dict[str, tuple[Remedy, int]]] = {
    "reduce_bucket_size": (causes.DEEPSPEED_BUCKET, 50_000_000),
    _GATHERS: (causes.GATHER_BUCKET, 200_000_000),
    "ddp_bucket_size": (causes.MEGATRON_BUCKET, 40_000_000),
}
"""By setting: what to set, and a size that is neither small nor large."""


def _flag(job: Settings, name: str) -> str:
    if job.is_config:
        return name.removeprefix("ddp_")
    return f"--{name.replace('_', '-')}" if job.framework == "megatron" else name


def is_off(job: Settings, name: str) -> bool:
    """True where one of Megatron's flags is off; of a configuration where it says so."""
    return job.flag(name, None if job.is_config else False) is False


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
    yield finding(cause, "BUCKET-004", reason, causes.ADVISE)


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
    yield finding(causes.COPIES, "BUCKET-005", reason, causes.VIEW)


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
        yield finding(causes.OFF, "OVERLAP-001", reason, causes.DEEPSPEED_OVERLAP)
    elif overlap and _copies_apart(job, stage):
        reason = (
            f"{job.at('contiguous_gradients')}: contiguous_gradients is false: before each bucket "
            "DeepSpeed waits for all that the device does, and overlap_comm hides nothing"
        )
        yield finding(causes.NO_EFFECT, "OVERLAP-002", reason, causes.DEEPSPEED_OVERLAP)


def _copies_apart(job: Settings, stage: float) -> bool:
    """Gradients without a buffer of their own, which an offloaded optimizer has in any case.

    Source: DeepSpeed runtime/zero/stage_1_and_2.py, allreduce_and_copy (and issue 6685).
    """
    is_off = job.flag("contiguous_gradients", True) is False and stage < 3
    return is_off and job.word("offload_optimizer.device") not in ("cpu", "nvme")


def comms_logger(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """DeepSpeed's communication logger, which times every collective by waiting for it."""
    if job.framework == "deepspeed" and job.flag("comms_logger"):
        reason = (
            f"{job.at('comms_logger')}: comms_logger is enabled: every collective is waited for"
        )
        yield finding(causes.SYNCHRONOUS, "OVERLAP-003", reason, causes.NO_LOGGER)


def blocking(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """Launches that the host waits for."""
    for name in BLOCKING:
        found = (job.environ or {}).get(name)
        if found and found.is_known and str(found.value) == "1":
            reason = f"{found.where}: {name}=1: every kernel is waited for, and nothing overlaps"
            remedy = causes.NO_BLOCKING
            yield finding(causes.SYNCHRONOUS, "OVERLAP-003", reason, remedy, value=name)


def _is_certain(job: Settings) -> bool:
    """True where the flags will stand together: Megatron then ends at its start."""
    return not (job.runs or job.branches or job.is_config)


def megatron_overlap(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """Megatron's overlap flags, and what each of them needs."""
    if job.framework != "megatron" or _is_fsdp(job):
        return
    reduces, gathers = job.flag("overlap_grad_reduce"), job.flag("overlap_param_gather")
    shards = job.flag("use_distributed_optimizer")
    mend = causes.MEGATRON_FIELDS if job.is_config else causes.MEGATRON_OVERLAP
    one = causes.MEGATRON_FIELD if job.is_config else causes.MEGATRON_REDUCE
    needed = ("overlap_grad_reduce", "use_distributed_optimizer")
    if gathers and (lacks := [_flag(job, name) for name in needed if is_off(job, name)]):
        reason = (
            f"{job.at('overlap_param_gather')}: {_flag(job, 'overlap_param_gather')} needs "
            f"{' and '.join(lacks)}"
        )
        yield finding(causes.NO_EFFECT, "OVERLAP-004", reason, mend, fails=_is_certain(job))
    if job.flag("tp_comm_overlap") and job.flag("sequence_parallel", False) is False:
        reason = f"{job.at('tp_comm_overlap')}: --tp-comm-overlap needs --sequence-parallel"
        more = causes.MEGATRON_SEQUENCE
        yield finding(causes.NO_EFFECT, "OVERLAP-004", reason, more, fails=_is_certain(job))
    sizes = [name for name in ("ddp_bucket_size", "ddp_num_buckets") if job.is_set(name)]
    if len(sizes) == 2:
        reason = f"{job.at(sizes[0])}: --ddp-bucket-size and --ddp-num-buckets exclude each other"
        yield finding(
            causes.NO_EFFECT, "OVERLAP-004", reason, causes.ONE_SIZE, fails=_is_certain(job)
        )
    if sizes and is_off(job, "overlap_grad_reduce"):
        needs = _flag(job, "overlap_grad_reduce")
        reason = f"{job.at(sizes[0])}: {_flag(job, sizes[0])} needs {needs}"
        yield finding(causes.NO_EFFECT, "OVERLAP-004", reason, one)
    copies_of = data_parallel(job)
    if job.is_config and is_off(job, "overlap_grad_reduce"):
        where = job.at("overlap_grad_reduce")
        reason = f"{where}: overlap_grad_reduce is false: gradients are reduced after the backward"
        yield finding(causes.OFF, "OVERLAP-001", reason, one)
    elif not reduces and copies_of is not None and copies_of > 1:
        reason = (
            f"{job.where}: no --overlap-grad-reduce, with {copies_of:g} ranks that share their "
            "gradients (data and context parallel): they are reduced after the backward pass"
        )
        yield finding(causes.OFF, "OVERLAP-001", reason, mend if shards else one)
    elif reduces and shards and is_off(job, "overlap_param_gather") and copies_of != 1:
        reason = (
            f"{job.at('use_distributed_optimizer')}: no {_flag(job, 'overlap_param_gather')}: "
            "parameters are gathered before the forward pass begins"
        )
        yield finding(causes.OFF, "OVERLAP-001", reason, mend)


def data_parallel(job: Settings) -> float | None:
    """Ranks that hold the same part of a Megatron model; None where the world is not known.

    Ranks of context parallelism hold the same weights and reduce gradients with the others
    (Megatron-LM core/distributed/distributed_data_parallel.py, dp_cp_group).
    """
    ranks = job.ranks
    if job.environ is not None and "WORLD_SIZE" in job.environ:
        told = str(job.environ["WORLD_SIZE"].value)
        ranks = int(told) if told.isdecimal() else ranks
    if not ranks:
        return None
    parts = 1.0
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size"):
        size = job.number(name, 1.0)
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
            yield finding(causes.CONNECTIONS, "OVERLAP-005", reason, causes.CONNECTIONS_MORE)
        return
    # The all-to-all of experts wants more connections: 1 and 32 are both right there.
    if job.flag("overlap_moe_expert_parallel_comm", False) is not False:
        return
    # A running job has passed Megatron's own test: it is on Blackwell, or a version without it.
    if (split := splits(job)) and value != "1" and not job.runs:
        has = f"is {value}" if value else "is not set"
        reason = (
            f"{where}: CUDA_DEVICE_MAX_CONNECTIONS {has} with {split[0]}; before Blackwell it is 1"
        )
        yield finding(causes.CONNECTIONS, "OVERLAP-005", reason, causes.CONNECTIONS_ONE)


def splits(job: Settings) -> list[str]:
    """The flags by which a layer of a Megatron model lies on several ranks."""
    return [
        f"--{name.replace('_', '-')} {size:g}"
        for name in ("tensor_model_parallel_size", "context_parallel_size")
        if (size := job.number(name)) and size > 1
    ]


_KEPT: Final = frozenset(
    {"shard_grad_op", "no_shard", "hybrid_shard_zero2", "_hybrid_shard_zero2", "2", "3", "5"}
)
"""Strategies of FSDP1, Accelerate's numbers of them too, that keep parameters after the forward."""


def keeps_parameters(job: Settings) -> bool | None:
    """True where FSDP1 has nothing to gather in the backward; None where nobody knows.

    Source: torch.distributed.fsdp.ShardingStrategy; _runtime_utils.py, _post_forward_reshard.
    """
    # Transformers names it among other options of ``fsdp``.
    told = [job.values[name] for name in ("sharding_strategy", "fsdp") if job.is_set(name)]
    words = {word.rpartition(".")[2] for each in told for word in str(each.value).lower().split()}
    if words & _KEPT:
        return True
    return False if all(each.is_known for each in told) else None


_NO_PREFETCH: Final = {
    **dict.fromkeys(("none", "no_prefetch", "false", "off"), "is off"),
    NOT_SET: "is not set, and off under Accelerate",
    OLD_NAME: "stands under fsdp_backward_prefetch_policy, which Accelerate ignores since 1.0",
}


def without_prefetch(job: Settings) -> str:
    """How FSDP's backward prefetch is off; "" where it is not."""
    return _NO_PREFETCH.get(job.word("backward_prefetch").replace("backwardprefetch.", ""), "")


def fsdp_prefetch(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """FSDP's backward prefetch, which PyTorch has on by default and Accelerate off."""
    how = "" if _is_one_unit(job) else without_prefetch(job)
    if job.framework == "fsdp" and how and keeps_parameters(job) is False:
        reason = f"{job.at('backward_prefetch')}: backward_prefetch {how}: each unit is waited for"
        yield finding(causes_fsdp.PREFETCH_OFF, "OVERLAP-006", reason, causes_fsdp.FSDP_PREFETCH)


def _is_one_unit(job: Settings) -> bool:
    """True where the whole model is told to be one."""
    return job.framework == "fsdp" and job.word("auto_wrap_policy") == "no_wrap"


def fsdp_wrap(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """FSDP with one unit, before and after which there is nothing to compute."""
    if _is_one_unit(job):
        reason = f"{job.at('auto_wrap_policy')}: auto_wrap_policy is NO_WRAP: the model is one unit"
        yield finding(causes_fsdp.ONE_UNIT, "OVERLAP-008", reason, causes_fsdp.WRAP)


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
        yield finding(causes.UNUSED, "OVERLAP-007", reason, causes.NO_UNUSED)


RULES: Final[dict[str, tuple[Rule, ...]]] = {
    causes.BUCKETS: (ddp_size, element_size, ddp_log, copies),
    causes.OVERLAP: (
        deepspeed_overlap,
        comms_logger,
        blocking,
        megatron_overlap,
        connections,
        fsdp_prefetch,
        fsdp_wrap,
        ddp_unused,
    ),
    causes.ZERO: (zero.gathers, zero.scatter, zero.offload, zero.other_stage, zero.misspelt),
}
