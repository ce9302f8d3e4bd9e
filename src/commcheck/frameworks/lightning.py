"""Lightning's strategies: by name, in a call, and as a class in the YAML of its command line.

Source: lightning/pytorch/strategies (ddp.py, fsdp.py, deepspeed.py), 1.5 to 2.6; Fabric's alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from commcheck.frameworks.settings import Framework, Setting, Settings
from commcheck.lazy import regex

DEEPSPEED: Final = "DeepSpeedStrategy"
_CLASSES: Final[Mapping[str, Framework]] = {
    "DDPStrategy": "ddp",
    "FSDPStrategy": "fsdp",
    DEEPSPEED: "deepspeed",
}
_STAGE: Final = regex(r"deepspeed_stage_([123])(_offload(_nvme)?)?")
"""Names of DeepSpeed's: ``deepspeed_stage_3_offload_nvme``."""

_DEFAULTS: Final[Mapping[str, object]] = {
    "stage": 2,
    "overlap_comm": True,
    "contiguous_gradients": True,
    "reduce_scatter": True,
    "allgather_bucket_size": 200_000_000,
    "reduce_bucket_size": 200_000_000,
}
"""Of DeepSpeedStrategy, which are not DeepSpeed's own."""


def by_name(given: Mapping[str, Setting]) -> Iterator[Settings]:
    """What the name of a strategy stands for."""
    named = given.get("strategy")
    if named is None or not named.is_known:
        return
    said, where = str(named.value), named.where
    if said.startswith("ddp"):
        _, found, value = said.partition("_find_unused_parameters_")
        searches = {"find_unused_parameters": Setting(value == "true", where)}
        yield Settings("ddp", where, searches if found else {})
    elif said.startswith("fsdp"):
        yield Settings("fsdp", where)
    elif stage := _STAGE.fullmatch(said):
        device = Setting("nvme" if stage[3] else "cpu", where)
        told = {"stage": Setting(int(stage[1]), where)}
        if stage[2]:
            told |= {"offload_optimizer": Setting(True, where), "offload_optimizer_device": device}
        yield from _deepspeed(told, where)


def of_class(name: str, given: Mapping[str, Setting], where: str) -> Iterator[Settings]:
    """What a strategy's class sets; ``given``: its arguments."""
    framework = _CLASSES.get(name)
    if framework == "deepspeed":
        yield from _deepspeed(given, where)
    elif framework:
        yield Settings(framework, where, given)


def _deepspeed(given: Mapping[str, Setting], where: str) -> Iterator[Settings]:
    config = given.get("config")
    if config and config.value != "none":  # a file, or a dict that is read where it stands
        if str(config.value).endswith(".json"):
            yield Settings("deepspeed", where, elsewhere=str(config.value))
        return
    values = {name: given.get(name, Setting(value, where)) for name, value in _DEFAULTS.items()}
    offloads = given.get("offload_optimizer")
    if offloads and offloads.value is True:
        cpu = Setting("cpu", offloads.where)
        values["offload_optimizer.device"] = given.get("offload_optimizer_device", cpu)
        if "pin_memory" in given:
            values["offload_optimizer.pin_memory"] = given["pin_memory"]
    yield Settings("deepspeed", where, values)
