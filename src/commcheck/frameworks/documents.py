"""Files that hold settings: which kind each is, its content tells.

JSON of DeepSpeed, FSDP (Hugging Face, accelerate), DDP arguments and DDP's logging data; YAML of
accelerate; Python with calls of DDP, FSDP and fully_shard; anything else is a command line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from commcheck.errors import UsageError
from commcheck.frameworks import command, deepspeed
from commcheck.frameworks.placed import Placed, read_json
from commcheck.frameworks.settings import Framework, Setting, Settings
from commcheck.inventory.declared import Notes, Refused
from commcheck.strict_yaml import Node, Pairs, Scalar, compose

WHAT: Final = "config"

FSDP_KEYS: Final = frozenset(
    {"backward_prefetch", "backward_prefetch_policy", "forward_prefetch", "limit_all_gathers",
     "sharding_strategy", "reshard_after_forward"}
)  # fmt: skip
DDP_KEYS: Final = frozenset(
    {"bucket_cap_mb", "find_unused_parameters", "gradient_as_bucket_view", "static_graph"}
)
LOG_KEYS: Final = frozenset({"rebuilt_bucket_sizes", "bucket_sizes", "bucket_cap_bytes"})
"""Of ``DistributedDataParallel._get_ddp_logging_data()``, saved as JSON."""

_CALLS: Final[Mapping[str, Framework]] = {
    "DistributedDataParallel": "ddp",
    "DDP": "ddp",
    "DDPStrategy": "ddp",
    "DistributedDataParallelKwargs": "ddp",
    "FullyShardedDataParallel": "fsdp",
    "FSDP": "fsdp",
    "FSDPStrategy": "fsdp",
}


def read(text: str, file: str) -> tuple[Settings, ...]:
    """The settings in a file. Raises ``UsageError``, a line a mistake, also where it has none."""
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("{") or file.endswith(".json"):
        return (_json(text, file),)
    if file.endswith((".yaml", ".yml")):
        found = _yaml(text, file)
    elif file.endswith(".py"):
        found = tuple(_python(text, file))
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
    if placed.value.keys() & DDP_KEYS:
        return _flat(placed, "ddp", dict.fromkeys(DDP_KEYS, ""))
    bare = {key: key.removeprefix("fsdp_") for key in placed.value}
    if any(name in FSDP_KEYS for name in bare.values()):
        return _flat(placed, "fsdp", bare)
    raise UsageError(
        f"{file}:1: error: neither DeepSpeed's configuration (zero_optimization), nor arguments of "
        f"DDP or FSDP, nor DDP's logging data [{WHAT}]"
    )


def _flat(placed: Placed, framework: Framework, names: Mapping[str, str]) -> Settings:
    values = {
        _policy(name or key): Setting(placed.value[key], placed.at(key))
        for key, name in names.items()
        if placed.value.get(key) is not None
    }
    ranks = placed.value.get("world_size")
    return Settings(framework, placed.file, values, ranks=ranks if isinstance(ranks, int) else None)


def _policy(name: str) -> str:
    return "backward_prefetch" if name == "backward_prefetch_policy" else name


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
    fsdp = _section(root, "fsdp_config")
    if fsdp:
        bare = {_policy(key.removeprefix("fsdp_")): each for key, each in fsdp.items()}
        found.append(Settings("fsdp", file, bare))
    zero = _section(root, "deepspeed_config")
    if zero:
        other = zero.get("deepspeed_config_file")
        values = {_ACCELERATE_ZERO.get(key, key): each for key, each in zero.items()}
        elsewhere = str(other.value) if other else ""
        found.append(Settings("deepspeed", file, values, elsewhere=elsewhere))
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


# --- Python -------------------------------------------------------------------------------------


def _python(text: str, file: str) -> Iterator[Settings]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UsageError(f"{file}:{line}: error: no Python: {error.args[0]} [{WHAT}]") from None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else _name(node.func)
        framework = _CALLS.get(name)
        if framework is None:
            continue
        values = {
            each.arg: _setting(each.value, text, f"{file}:{each.value.lineno}")
            for each in node.keywords
            if each.arg in DDP_KEYS | FSDP_KEYS
        }
        yield Settings(framework, f"{file}:{node.lineno}", values)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _setting(node: ast.expr, text: str, where: str) -> Setting:
    """A constant, or the last name of an enumeration's value; its text where it is computed."""
    if isinstance(node, ast.Constant):
        return Setting("none" if node.value is None else node.value, where)
    if isinstance(node, ast.Attribute) and node.attr.isupper():
        return Setting(node.attr, where)
    return Setting(ast.get_source_segment(text, node) or "computed", where, is_known=False)
