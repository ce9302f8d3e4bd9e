"""DeepSpeed's configuration JSON: the settings that decide about communication.

Sources: DeepSpeed runtime/zero/config.py, runtime/config.py and its configuration documentation;
Hugging Face Transformers' DeepSpeed integration for ``auto``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Literal

from commcheck.errors import UsageError
from commcheck.frameworks.placed import Placed
from commcheck.frameworks.settings import AUTO, Setting, Settings

WHAT: Final = "config"
ZERO: Final = "zero_optimization"
ACCUMULATION: Final = "gradient_accumulation_steps"

Form = Literal["number", "signed", "flag", "word"]

KEYS: Final[Mapping[str, Form]] = {
    "stage": "number",
    "allgather_partitions": "flag",
    "allgather_bucket_size": "number",
    "overlap_comm": "flag",
    "reduce_scatter": "flag",
    "reduce_bucket_size": "number",
    "contiguous_gradients": "flag",
    "round_robin_gradients": "flag",
    "sub_group_size": "number",
    "stage3_prefetch_bucket_size": "number",
    "stage3_param_persistence_threshold": "number",
    "stage3_model_persistence_threshold": "number",
    "stage3_max_live_parameters": "number",
    "stage3_max_reuse_distance": "number",
    "stage3_module_granularity_threshold": "number",
    "stage3_use_all_reduce_for_fetch_params": "flag",
    "stage3_allgather_sequential": "flag",
    "stage3_gather_16bit_weights_on_model_save": "flag",
    "stage3_gather_fp16_weights_on_model_save": "flag",
    "zero_hpz_partition_size": "number",
    "zero_quantized_weights": "flag",
    "zero_quantized_nontrainable_weights": "flag",
    "zero_quantized_gradients": "flag",
    "use_multi_rank_bucket_allreduce": "flag",
    "load_from_fp32_weights": "flag",
    "elastic_checkpoint": "flag",
    "ignore_unused_parameters": "flag",
    "legacy_stage1": "flag",
    "cpu_offload": "flag",
    "cpu_offload_param": "flag",
    "cpu_offload_use_pin_memory": "flag",
    "memory_efficient_linear": "flag",
    "override_module_apply": "flag",
    "log_trace_cache_warnings": "flag",
    "enable_sanity_checks": "flag",
    "parameter_alignment": "flag",
    "pipeline_loading_checkpoint": "flag",
    "compute_grad_norm": "flag",
    "save_muon_momentum_buffer_in_memory": "flag",
    "mics_shard_size": "signed",
    "mics_hierarchical_params_gather": "flag",
    "param_persistence_threshold": "number",
    "model_persistence_threshold": "number",
    "max_live_parameters": "number",
    "max_reuse_distance": "number",
    "prefetch_bucket_size": "number",
    "gather_16bit_weights_on_model_save": "flag",
    "module_granularity_threshold": "number",
    "use_all_reduce_for_fetch_params": "flag",
    "allgather_sequential": "flag",
}
"""Keys of ``zero_optimization``, by what is written there."""

SECTIONS: Final = (
    "offload_param", "offload_optimizer", "zenflow", "zeropp_loco_param", "leaf_module",
)  # fmt: skip
_OFFLOAD: Final[Mapping[str, Form]] = {"device": "word", "pin_memory": "flag"}
ALIASES: Final[Mapping[str, str]] = {
    name.removeprefix("stage3_"): name
    for name in KEYS
    if name.startswith("stage3_") and name.removeprefix("stage3_") in KEYS
}
"""DeepSpeed takes these names with and without ``stage3_``."""

UNKNOWN: Final = "?"
"""Beginning of the names under which keys that are not known are kept."""


def is_deepspeed(value: Mapping[str, object]) -> bool:
    """True for an object that is DeepSpeed's configuration."""
    return bool(
        value.keys() & {ZERO, "train_batch_size", "train_micro_batch_size_per_gpu", "comms_logger"}
    )


def settings(placed: Placed, computed: Mapping[str, Setting] = MappingProxyType({})) -> Settings:
    """The settings of a configuration. Raises ``UsageError``, a line for each wrong value.

    ``computed``: by dotted path, what is set and not known; none of it stands in ``placed``.
    """
    problems: list[str] = []
    values = dict(_zero(placed, problems))
    for path, setting in computed.items():
        section, _, key = path.partition(".")
        if section == ZERO:
            values[ALIASES.get(key, key)] = replace(setting, is_known=False)
    logger = placed.value.get("comms_logger")
    if isinstance(logger, Mapping) and isinstance(logger.get("enabled"), bool):
        values["comms_logger"] = Setting(logger["enabled"], placed.at("comms_logger.enabled"))
    steps = placed.value.get(ACCUMULATION)
    if isinstance(steps, int):
        values[ACCUMULATION] = Setting(steps, placed.at(ACCUMULATION))
    if problems:
        raise UsageError(*problems)
    return Settings("deepspeed", placed.file, values)


def _zero(placed: Placed, problems: list[str]) -> Iterator[tuple[str, Setting]]:
    zero = placed.value.get(ZERO, {})
    if isinstance(zero, bool):  # once: stage 1
        yield "stage", Setting(1 if zero else 0, placed.at(ZERO))
        return
    if not isinstance(zero, Mapping):
        problems.append(f"{placed.at(ZERO)}: error: {ZERO}: wanted an object [{WHAT}]")
        return
    for key, value in zero.items():
        path = f"{ZERO}.{key}"
        if key in SECTIONS:
            yield from _section(placed, key, value, problems)
        elif key in KEYS:
            found = _value(placed, path, value, KEYS[key], problems)
            if found is not None:
                yield ALIASES.get(key, key), Setting(found, placed.at(path))
        else:
            yield UNKNOWN + str(key), Setting(key, placed.at(path))


def _section(
    placed: Placed, name: str, value: object, problems: list[str]
) -> Iterator[tuple[str, Setting]]:
    if not isinstance(value, Mapping):
        if value is not None:
            where = placed.at(f"{ZERO}.{name}")
            problems.append(f"{where}: error: {name}: wanted an object [{WHAT}]")
        return
    yield name, Setting(True, placed.at(f"{ZERO}.{name}"))
    for key, form in _OFFLOAD.items():
        if key in value:
            path = f"{ZERO}.{name}.{key}"
            found = _value(placed, path, value[key], form, problems)
            if found is not None:
                yield f"{name}.{key}", Setting(found, placed.at(path))


def _value(
    placed: Placed, path: str, value: object, form: Form, problems: list[str]
) -> object | None:
    """The value where it is of its kind, or ``auto``; None where it is not set."""
    if value is None or value == AUTO:
        return value
    is_flag = isinstance(value, bool)
    is_number = not is_flag and isinstance(value, int | float) and math.isfinite(value)
    if form == "number" and is_number and value >= 0:  # type: ignore[operator] # a number
        return value
    if form == "signed" and is_number:  # -1: off
        return value
    if (form == "flag" and is_flag) or (form == "word" and isinstance(value, str)):
        return value
    wanted = {"number": "a number from 0 on", "signed": "a number", "flag": "true or false",
              "word": "a text"}[form]  # fmt: skip
    name = path.rpartition(".")[2]
    problems.append(f"{placed.at(path)}: error: {name}: {_short(value)} is not {wanted} [{WHAT}]")
    return None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
