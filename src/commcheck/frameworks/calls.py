"""Python sources: what their calls set of DDP, FSDP and DeepSpeed, and dicts that are DeepSpeed's
configuration. They are read and never run.

Sources: torch.nn.parallel.DistributedDataParallel, torch.distributed.fsdp (FullyShardedDataParallel
and fully_shard); Lightning's strategies and their names (``ddp_find_unused_parameters_true``);
Hugging Face Transformers' TrainingArguments and what inherits from it (TRL's SFTConfig).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from commcheck.errors import UsageError
from commcheck.frameworks import command, deepspeed, huggingface
from commcheck.frameworks.placed import Placed
from commcheck.frameworks.settings import Framework, Setting, Settings

FSDP_KEYS: Final = frozenset(
    {"backward_prefetch", "forward_prefetch", "limit_all_gathers", "sharding_strategy",
     "reshard_after_forward"}
)  # fmt: skip
DDP_KEYS: Final = frozenset(
    {"bucket_cap_mb", "find_unused_parameters", "gradient_as_bucket_view", "static_graph"}
)
TRAINER_KEYS: Final = frozenset(
    {"ddp_bucket_cap_mb", "ddp_find_unused_parameters", "fsdp", "fsdp_config", "deepspeed",
     *huggingface.CHECKPOINTING}
)  # fmt: skip
"""Fields of TrainingArguments."""

_CALLS: Final[Mapping[str, Framework]] = {
    "DistributedDataParallel": "ddp",
    "DDP": "ddp",
    "DDPStrategy": "ddp",
    "DistributedDataParallelKwargs": "ddp",
    "FullyShardedDataParallel": "fsdp",
    "FSDP": "fsdp",
    "FSDPStrategy": "fsdp",
    "fully_shard": "fsdp",
}
_ASKED: Final[Mapping[str, tuple[str, ...]]] = {
    "ddp": ("bucket_cap_mb", "find_unused_parameters"),
    "fsdp": ("backward_prefetch",),
}
_LIGHTNING: Final = frozenset({"Trainer", "Fabric"})


def read(text: str, file: str, what: str) -> Iterator[Settings]:
    """The settings of each call. Raises ``UsageError``, one line, where the text is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UsageError(f"{file}:{line}: error: no Python: {error.args[0]} [{what}]") from None
    others = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("megatron.")
        for each in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) not in others:
            yield from _call(node, text, file)
        elif isinstance(node, ast.Dict) and isinstance(_items(node).get(deepspeed.ZERO), ast.Dict):
            yield _deepspeed(node, text, file)


def _items(node: ast.Dict) -> dict[str, ast.expr]:
    """What stands under plain text keys."""
    return {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _deepspeed(node: ast.Dict, text: str, file: str) -> Settings:
    """DeepSpeed's configuration; what is computed in it is set, and not known."""
    lines: dict[str, int] = {}
    computed: dict[str, ast.expr] = {}

    def plain(node: ast.Dict, path: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in _items(node).items():
            lines[path + key] = value.lineno
            if isinstance(value, ast.Dict):
                found[key] = plain(value, f"{path}{key}.")
            elif isinstance(value, ast.Constant):
                found[key] = value.value
            else:
                computed[path + key] = value
        return found

    found = deepspeed.settings(Placed(file, plain(node, ""), lines))
    values = dict(found.values)
    for path, value in computed.items():
        section, _, key = path.partition(".")
        if section == deepspeed.ZERO:
            setting = _setting(value, text, f"{file}:{value.lineno}")
            values[deepspeed.ALIASES.get(key, key)] = replace(setting, is_known=False)
    return replace(found, where=f"{file}:{node.lineno}", values=values)


def _call(node: ast.Call, text: str, file: str) -> Iterator[Settings]:
    name, where = _name(node.func), f"{file}:{node.lineno}"
    framework = _CALLS.get(name)
    if framework is not None:
        values = _settings(node, DDP_KEYS | FSDP_KEYS, text, file)
        more = [each.value for each in node.keywords if each.arg is None]
        asked = () if name == "fully_shard" or not more else _ASKED[framework]
        for key in asked:  # what **kwargs hold is not the default either
            values.setdefault(key, replace(_setting(more[0], text, where), is_known=False))
        yield Settings(framework, where, values)
    elif name in _LIGHTNING:
        yield from strategy(_settings(node, frozenset({"strategy"}), text, file), where)
    elif name.endswith(("Arguments", "Config")):
        yield from _trainer(node, text, file)


def _trainer(node: ast.Call, text: str, file: str) -> Iterator[Settings]:
    """TrainingArguments: the same fields as on a command line."""
    where = f"{file}:{node.lineno}"
    given = _settings(node, TRAINER_KEYS, text, file)
    for each in node.keywords:
        if each.arg == "fsdp_config" and isinstance(each.value, ast.Dict):
            values = {
                str(key.value).removeprefix("fsdp_"): _setting(value, text, f"{file}:{key.lineno}")
                for key, value in zip(each.value.keys, each.value.values, strict=True)
                if isinstance(key, ast.Constant)
            }
            yield from trainer(given, where, values)
            return
    yield from trainer(given, where)


def trainer(
    given: Mapping[str, Setting], where: str, fsdp: Mapping[str, Setting] | None = None
) -> Iterator[Settings]:
    """What Transformers' arguments set; ``fsdp``: their fsdp_config, names without ``fsdp_``."""
    told = {
        key: each
        for key, each in given.items()
        if key in TRAINER_KEYS
        and each.value not in ("none", "")
        and (each.value is not False or key.startswith("ddp_"))
    }
    if fsdp is not None:
        strategy = {name: each for name, each in told.items() if name == "fsdp"}
        told = {name: each for name, each in told.items() if not name.startswith(("fsdp", "ddp"))}
        values = {**strategy, **huggingface.left_to_transformers(fsdp, where)}
        yield Settings("fsdp", where, values)
    flags = command.Flags(told, frozenset(told), ())
    yield from command.settings_of(flags, where, None)


def strategy(given: Mapping[str, Setting], where: str) -> Iterator[Settings]:
    """What the name of one of Lightning's strategies stands for."""
    named = given.get("strategy")
    said = str(named.value) if named and named.is_known else ""
    if named and said.startswith("ddp"):
        _, found, value = said.partition("_find_unused_parameters_")
        searches = {"find_unused_parameters": Setting(value == "true", named.where)}
        yield Settings("ddp", where, searches if found else {})
    elif said.startswith("fsdp"):
        yield Settings("fsdp", where)


def _name(node: ast.expr) -> str:
    """The last name of what is called."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _settings(node: ast.Call, keys: frozenset[str], text: str, file: str) -> dict[str, Setting]:
    return {
        each.arg: _setting(each.value, text, f"{file}:{each.value.lineno}")
        for each in node.keywords
        if each.arg in keys
    }


def _setting(node: ast.expr, text: str, where: str) -> Setting:
    """A constant, or the last name of an enumeration's value; its text where it is computed."""
    if isinstance(node, ast.Constant):
        return Setting("none" if node.value is None else node.value, where)
    if isinstance(node, ast.Attribute) and node.attr.isupper():
        return Setting(node.attr, where)
    return Setting(ast.get_source_segment(text, node) or "computed", where, is_known=False)
