"""What Hugging Face's Accelerate and Transformers set by themselves where nobody does.

Sources: accelerate commands/launch.py and utils/dataclasses.py; transformers training_args.py and
trainer.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commcheck.frameworks.settings import NOT_SET, OLD_NAME, Setting

CHECKPOINTING: Final[Mapping[str, str]] = {
    "gradient_checkpointing": "flag",
    "activation_checkpointing": "flag",
}
"""Of Transformers' arguments those on which it depends whether unused parameters are searched."""


ACCELERATE: Final[Mapping[str, str]] = {
    "use_fsdp": "flag",
    "fsdp_version": "word",
    "fsdp_auto_wrap_policy": "word",
    "use_deepspeed": "flag",
    "zero_stage": "number",
    "offload_optimizer_device": "word",
    "offload_param_device": "word",
    "deepspeed_config_file": "word",
    "config_file": "word",
}
"""Flags of ``accelerate launch``; the ranks that it starts do not have them."""

ACCELERATE_ZERO: Final[Mapping[str, str]] = {
    "zero_stage": "stage",
    "offload_optimizer_device": "offload_optimizer.device",
    "offload_param_device": "offload_param.device",
    "offload_optimizer_pin_memory": "offload_optimizer.pin_memory",
    "offload_param_pin_memory": "offload_param.pin_memory",
}
"""Accelerate's names of DeepSpeed's settings, in its YAML and as flags."""


def searched_by_transformers(
    values: Mapping[str, Setting], where: str, given: Mapping[str, Setting]
) -> dict[str, Setting]:
    """With the search for unused parameters, which Transformers' trainer turns on by itself.

    It does unless activations are checkpointed. Source: transformers src/transformers/trainer.py.
    """
    checkpoints = [given[name].value for name in CHECKPOINTING if name in given]
    if "find_unused_parameters" in values or True in checkpoints:
        return dict(values)
    text = "left to Transformers (on without gradient checkpointing)"
    return {**values, "find_unused_parameters": Setting(text, where, is_known=False)}


def under_accelerate(values: Mapping[str, Setting], where: str) -> dict[str, Setting]:
    """FSDP's settings as Accelerate takes them.

    FSDP2 gathers ahead by itself; FSDP1 only where it is told to, under the one name that
    Accelerate reads since 1.0. Source: accelerate commands/launch.py, utils/dataclasses.py.
    """
    version = values.get("version")
    others = {name: each for name, each in values.items() if "backward_prefetch" not in name}
    if version and str(version.value) == "2":
        return others
    old = values.get(OLD_NAME)
    told = values.get("backward_prefetch")
    if told is None and old is not None and "NO_" not in str(old.value).upper():
        told = Setting(OLD_NAME, old.where)
    return {**others, "backward_prefetch": told or Setting(NOT_SET, where)}


def launched_by_accelerate(values: Mapping[str, Setting], where: str) -> dict[str, Setting]:
    """FSDP's settings as flags of ``accelerate launch``, or as its plugin's arguments.

    What they leave open, the file that ``accelerate config`` wrote may set, and for a plugin the
    launcher. Source: commands/launch.py; utils/dataclasses.py.
    """
    text = "left to Accelerate's own configuration (off without it)"
    unset = {"backward_prefetch": Setting(text, where, is_known=False)}
    return under_accelerate({**unset, **values}, where)


def left_to_transformers(values: Mapping[str, Setting], where: str) -> dict[str, Setting]:
    """With the prefetch that Transformers' trainer sets by itself where nobody does.

    Before version 5 it is NO_PREFETCH, since then FSDP2, which gathers ahead, as ms-swift's
    ``--fsdp fsdp2`` does. Source: transformers src/transformers/training_args.py; swift/config.
    """
    version, named = values.get("version"), values.get("fsdp")
    if (version and str(version.value) == "2") or (named and named.value == "fsdp2"):
        return {name: each for name, each in values.items() if name != "backward_prefetch"}
    if "backward_prefetch" in values:
        return dict(values)
    text = "off" if version else "left to Transformers (off before version 5)"
    return {**values, "backward_prefetch": Setting(text, where, is_known=bool(version))}
