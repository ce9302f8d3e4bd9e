"""Files that hold settings: which kind each is, its content tells.

JSON of DeepSpeed (with comments, as it takes them), FSDP (Hugging Face, accelerate), DDP arguments
and DDP's logging data; YAML of accelerate; manifests of Kubernetes, for the commands of containers
and the files in ConfigMaps; Python with calls of DDP, FSDP, fully_shard, Lightning and
TrainingArguments; anything else is a command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from commcheck.errors import UsageError
from commcheck.frameworks import calls, command, deepspeed, manifests
from commcheck.frameworks.calls import DDP_KEYS, FSDP_KEYS, fsdp
from commcheck.frameworks.placed import Placed, read_json
from commcheck.frameworks.settings import Framework, Setting, Settings
from commcheck.inventory.declared import Notes, Refused
from commcheck.kube import manifest
from commcheck.strict_yaml import Node, Pairs, Scalar, compose

WHAT: Final = "config"

FSDP_MARKS: Final = FSDP_KEYS | {
    "transformer_layer_cls_to_wrap", "min_num_params", "use_orig_params", "sync_module_states",
    "cpu_ram_efficient_loading",
}  # fmt: skip
"""Keys by which a JSON object is one of FSDP: Transformers' fsdp_config among others."""

LOG_KEYS: Final = frozenset({"rebuilt_bucket_sizes", "bucket_sizes", "bucket_cap_bytes"})
"""Of ``DistributedDataParallel._get_ddp_logging_data()``, saved as JSON."""


def read(text: str, file: str) -> tuple[Settings, ...]:
    """The settings in a file. Raises ``UsageError``, a line a mistake, also where it has none."""
    if file.endswith((".yaml", ".yml", ".json")) and (docs := manifest.of_kubernetes(text)):
        return manifests.read(docs, file, read)
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("{") or file.endswith(".json"):
        return (_json(text, file),)
    if file.endswith((".yaml", ".yml")):
        found = _yaml(text, file)
    elif file.endswith(".py"):
        found = tuple(calls.read(text, file, WHAT))
    else:
        found = command.read_text(text, file)
    if not found:
        raise UsageError(
            f"{file}: error: no setting of DeepSpeed, DDP, FSDP or Megatron in it [{WHAT}]"
        )
    return found


def _json(text: str, file: str) -> Settings:
    placed = read_json(text, file, WHAT)
    if deepspeed.is_deepspeed(placed.value):
        return deepspeed.settings(placed)
    if placed.value.keys() & LOG_KEYS:
        return _flat(placed, "ddp", dict.fromkeys(placed.value, ""))
    bare = {key: key.removeprefix("ddp_") for key in placed.value}
    if not DDP_KEYS.isdisjoint(bare.values()):
        return _flat(placed, "ddp", {key: bare[key] for key in bare if bare[key] in DDP_KEYS})
    bare = {key: key.removeprefix("fsdp_") for key in placed.value}
    if not FSDP_MARKS.isdisjoint(bare.values()):
        found = _flat(placed, "fsdp", bare)
        return replace(found, values=command.left_to_transformers(fsdp(found.values), file))
    raise UsageError(
        f"{file}:1: error: neither DeepSpeed's configuration (zero_optimization), nor arguments of "
        f"DDP or FSDP, nor DDP's logging data [{WHAT}]"
    )


def _flat(placed: Placed, framework: Framework, names: Mapping[str, str]) -> Settings:
    values = {
        name or key: Setting(placed.value[key], placed.at(key))
        for key, name in names.items()
        if placed.value.get(key) is not None
    }
    ranks = placed.value.get("world_size")
    return Settings(framework, placed.file, values, ranks=ranks if isinstance(ranks, int) else None)


# --- accelerate ---------------------------------------------------------------------------------

_ACCELERATE_ZERO: Final = {
    "zero_stage": "stage",
    "offload_optimizer_device": "offload_optimizer.device",
    "offload_param_device": "offload_param.device",
    "offload_optimizer_pin_memory": "offload_optimizer.pin_memory",
    "offload_param_pin_memory": "offload_param.pin_memory",
}


def _yaml(text: str, file: str) -> tuple[Settings, ...]:
    notes = Notes()
    try:
        root = compose(text, file, notes)
    except Refused as error:
        raise UsageError(f"{error.problem.at}: error: {error} [{WHAT}]") from None
    if notes.errors:
        raise UsageError(
            *(f"{each.at}: error: {each.text} [{WHAT}]" for each in sorted(notes.errors))
        )
    if not isinstance(root, Pairs):
        return ()
    found = []
    section = _section(root, "fsdp_config")
    if section:
        bare = {key.removeprefix("fsdp_"): each for key, each in section.items()}
        found.append(Settings("fsdp", file, fsdp(bare)))
    zero = _section(root, "deepspeed_config")
    if zero:
        other = zero.get("deepspeed_config_file")
        values = {_ACCELERATE_ZERO.get(key, key): each for key, each in zero.items()}
        elsewhere = str(other.value) if other else ""
        found.append(Settings("deepspeed", file, values, elsewhere=elsewhere))
    kind = root.nodes["distributed_type"][1] if "distributed_type" in root.nodes else None
    if not found and isinstance(kind, Scalar) and str(kind.value).startswith("MULTI_"):
        found.append(Settings("ddp", file))  # DDP, one process for each accelerator
    return tuple(found)


def _section(root: Pairs, name: str) -> dict[str, Setting]:
    node: Node | None = root.nodes[name][1] if name in root.nodes else None
    if not isinstance(node, Pairs):
        return {}
    return {
        key: Setting(each.value, f"{at.path}:{at.line}")
        for key, (at, each) in node.nodes.items()
        if isinstance(each, Scalar) and each.value is not None
    }
