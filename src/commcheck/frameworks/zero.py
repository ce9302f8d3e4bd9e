"""The rules over DeepSpeed's ZeRO settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from commcheck.frameworks import causes, deepspeed
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.rule import finding
from commcheck.frameworks.settings import Settings
from commcheck.model import Verdict


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
        yield finding(causes.GATHERS_SMALL, "ZERO-001", reason, causes.PREFETCH_MORE)
    whole = job.number("stage3_param_persistence_threshold", 1e5)
    if whole is not None and whole < limits.persistence:
        where = job.at("stage3_param_persistence_threshold")
        reason = (
            f"{where}: stage3_param_persistence_threshold {whole:g} elements: biases and norms are "
            f"gathered one by one; want {limits.persistence:g} or more"
        )
        yield finding(causes.GATHERS_SMALL, "ZERO-002", reason, causes.PERSIST)
    for name in ("stage3_max_live_parameters", "stage3_max_reuse_distance"):
        size = job.number(name, 1e9)
        if size is not None and size < limits.live:
            reason = f"{job.at(name)}: {name} {size:g} elements, want {limits.live:g} or more"
            yield finding(causes.REGATHER, "ZERO-003", reason, causes.LIVE)


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
        yield finding(causes.SCATTER_OFF, "ZERO-004", reason, causes.SCATTER)


def offload(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """Offload to the host without page-locked memory."""
    if job.framework != "deepspeed":
        return
    names = ["offload_optimizer"]
    if job.number("stage", 0) in (None, 3):  # elsewhere offload_param does nothing at all
        names.append("offload_param")
    for name in names:
        device = job.word(f"{name}.device")
        if device in ("cpu", "nvme") and job.flag(f"{name}.pin_memory", False) is False:
            key = f"{name}.pin_memory"
            where = job.at(key) if job.is_set(key) else job.at(f"{name}.device")
            has = "is false" if job.is_set(key) else "is not set, and off"
            reason = f"{where}: {name} to {device}, and pin_memory {has}"
            yield finding(causes.OFFLOAD_UNPINNED, "ZERO-005", reason, causes.PIN)


def other_stage(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """stage3_ settings at another stage."""
    stage = job.number("stage", 0)
    if job.framework != "deepspeed" or stage in (None, 3):
        return
    names = [name for name in job.values if name.startswith("stage3_") and "gather" not in name]
    names += [name for name in _STAGE_3 if job.flag(name)]
    names += [name for name in ("zero_hpz_partition_size",) if (job.number(name) or 0) > 1]
    if job.word("offload_param.device") in ("cpu", "nvme"):
        names.append("offload_param")
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        reason = (
            f"{job.at(names[0])}: {names[0]}{more} at stage {stage:g}: it counts at stage 3 alone"
        )
        yield finding(causes.OTHER_STAGE, "ZERO-006", reason, causes.STAGE)


_STAGE_3: Final = ("zero_quantized_weights", "zero_quantized_nontrainable_weights",
                   "zero_quantized_gradients")  # fmt: skip
"""Of ZeRO++; nothing but stage 3 reads them (DeepSpeed runtime/engine.py)."""


def misspelt(job: Settings, _limits: Limits) -> Iterator[Verdict]:
    """Keys of zero_optimization that are nearly a known one."""
    known = [*deepspeed.KEYS, *deepspeed.SECTIONS]
    for name, setting in job.values.items():
        if name.startswith(deepspeed.UNKNOWN) and job.framework == "deepspeed":
            key = name.removeprefix(deepspeed.UNKNOWN)
            near = difflib.get_close_matches(key, known, 1, 0.85)
            if near:
                reason = f"{setting.where}: no key {key[:60]!r} is known, {near[0]!r} is"
                yield finding(causes.MISSPELT, "ZERO-007", reason, causes.SPELL, value=near[0])
