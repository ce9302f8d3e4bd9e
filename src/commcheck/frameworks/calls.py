"""Python sources: what their calls set of DDP, FSDP and DeepSpeed, and dicts that are DeepSpeed's
configuration. They are read and never run.

Sources: torch.nn.parallel.DistributedDataParallel, torch.distributed.fsdp (FullyShardedDataParallel
and fully_shard); Lightning's strategies and their names (``ddp_find_unused_parameters_true``);
Hugging Face Transformers' TrainingArguments and what inherits from it (TRL's SFTConfig).
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from commcheck.errors import UsageError
from commcheck.frameworks import command, deepspeed, huggingface, lightning, megatron_config
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
    {"ddp_bucket_cap_mb", "ddp_find_unused_parameters", "ddp_static_graph", "fsdp", "fsdp_config",
     "deepspeed", *huggingface.CHECKPOINTING}
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
_FSDP_PLUGIN: Final = "FullyShardedDataParallelPlugin"
_PLUGINS: Final = frozenset({_FSDP_PLUGIN, "DeepSpeedPlugin"})


def read(text: str, file: str, what: str) -> Iterator[Settings]:
    """The settings of each call. Raises ``UsageError``, one line, where the text is no Python."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of backslashes that mean nothing
            tree = ast.parse(text)
    except (RecursionError, MemoryError):  # each in its own version of Python
        raise UsageError(f"{file}:1: error: no Python: nested too deeply [{what}]") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UsageError(f"{file}:{line}: error: no Python: {error.args[0]} [{what}]") from None
    others = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("megatron.")
        for each in node.names
    }
    environ = {
        name: Setting(str(value.value), f"{file}:{value.lineno}")
        for name, value in _environ(tree)
        if name in command.ENVIRON and isinstance(value, ast.Constant)
    }
    for node in ast.walk(tree):
        found: Iterator[Settings] = iter(())
        if isinstance(node, ast.Call) and _name(node.func) == megatron_config.CLASS:
            fields = _settings(node, None, text, file)
            found = megatron_config.settings(fields, f"{file}:{node.lineno}", "ddp")
        elif isinstance(node, ast.Call) and _name(node.func) not in others:
            found = _call(node, text, file)
        elif isinstance(node, ast.Dict) and isinstance(_items(node).get(deepspeed.ZERO), ast.Dict):
            found = iter((_deepspeed(node, text, file),))
        elif isinstance(node, ast.Module | ast.FunctionDef):
            found = megatron_config.by_section(_assigned(node.body, text, file))
        yield from (replace(each, environ=environ or None) for each in found)


def _assigned(body: list[ast.stmt], text: str, file: str) -> Iterator[tuple[str, str, Setting]]:
    """``cfg.ddp.overlap_grad_reduce = True``, as recipes have it: section, field, and what it is.

    None of a branch.
    """
    for each in body:
        match each:
            case ast.Assign(targets=[ast.Attribute(value=ast.Attribute() as of, attr=name)]) if (
                name in megatron_config.NAMES
            ):
                yield _dotted(of), name, _setting(each.value, text, f"{file}:{each.lineno}")
            case _:
                pass


def _environ(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What is always set: ``os.environ["NAME"] = "1"``, and by ``setdefault``.

    What stands in a branch may be for profiling; under ``__name__`` it is the program itself.
    """
    left = [tree]
    while left:
        node = left.pop()
        match node:
            case ast.If(test=test) if "__name__" not in {_name(each) for each in ast.walk(test)}:
                continue
            case ast.Assign(targets=[ast.Subscript(value=of, slice=ast.Constant(value=str(name)))]):
                if _name(of) == "environ":
                    yield name, node.value
            case ast.Call(
                func=ast.Attribute(value=of, attr="setdefault"),
                args=[ast.Constant(value=str(name)), value],
            ):
                if _name(of) == "environ":
                    yield name, value
            case _:
                pass
        left += reversed(list(ast.iter_child_nodes(node)))


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
            elif (number := _number(value)) is not None:
                found[key] = number
            elif isinstance(value, ast.Constant):
                found[key] = value.value
            else:
                computed[path + key] = value
        return found

    placed = Placed(file, plain(node, ""), lines)
    unknown = {
        path: _setting(value, text, f"{file}:{value.lineno}") for path, value in computed.items()
    }
    return replace(deepspeed.settings(placed, unknown), where=f"{file}:{node.lineno}")


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
    elif name in _PLUGINS:
        yield from _plugin(name, _settings(node, None, text, file), where)
    elif name in _LIGHTNING:
        yield from lightning.by_name(_settings(node, frozenset({"strategy"}), text, file))
    elif name == lightning.DEEPSPEED:
        if all(each.arg for each in node.keywords):  # what **kwargs hold nobody knows
            yield from lightning.of_class(name, _settings(node, None, text, file), where)
    elif name.endswith(("Arguments", "Config")):
        yield from _trainer(node, text, file)


def _plugin(name: str, given: Mapping[str, Setting], where: str) -> Iterator[Settings]:
    """Accelerate's plugins: what they leave open its launcher sets."""
    if name == _FSDP_PLUGIN:
        values = {key.removeprefix("fsdp_"): each for key, each in given.items()}
        yield Settings("fsdp", where, huggingface.launched_by_accelerate(values, where))
    elif file := given.get("hf_ds_config"):
        if str(file.value).endswith(".json"):
            yield Settings("deepspeed", where, elsewhere=str(file.value))
    elif "zero_stage" in given:
        names = huggingface.ACCELERATE_ZERO
        values = {names[key]: each for key, each in given.items() if key in names}
        yield Settings("deepspeed", where, values)


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


def _dotted(node: ast.expr) -> str:
    """``cfg.ddp``."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join(reversed([*names, _name(node)]))


def _name(node: ast.AST) -> str:
    """The last name of what is called."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _settings(
    node: ast.Call, keys: frozenset[str] | None, text: str, file: str
) -> dict[str, Setting]:
    """Of those names, or of all."""
    return {
        each.arg: _setting(each.value, text, f"{file}:{each.value.lineno}")
        for each in node.keywords
        if each.arg and (keys is None or each.arg in keys)
    }


_OF_CONSTANTS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
_MOST: Final = 1e15
"""No size is larger, and nothing is raised to a power or shifted that could become so."""


def _number(node: ast.expr, depth: int = 10) -> float | None:
    """``25 * 1024 * 1024``, ``2**20``, ``int(5e8)``; None where it is not made of constants.

    ``depth``: of brackets; nobody writes a size with more.
    """
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]) if depth:
            whole = _number(inner, depth - 1)
            return math.floor(whole) if whole is not None and abs(whole) <= _MOST else None
        case ast.BinOp(left=left, op=op, right=right) if depth and type(op) in _OF_CONSTANTS:
            one, other = _number(left, depth - 1), _number(right, depth - 1)
            if one is None or other is None:
                return None
            if isinstance(op, ast.Pow | ast.LShift) and not (0 <= one <= 1024 and 0 <= other <= 50):
                return None
            try:
                found = _OF_CONSTANTS[type(op)](one, other)
            except (ArithmeticError, TypeError):
                return None
            return found if abs(found) <= _MOST else None
        case _:
            return None


def _setting(node: ast.expr, text: str, where: str) -> Setting:
    """A constant, or the last name of an enumeration's value; its text where it is computed."""
    number = _number(node)
    if number is not None:
        return Setting(number, where)
    if isinstance(node, ast.Constant):
        return Setting("none" if node.value is None else node.value, where)
    if isinstance(node, ast.Attribute) and node.attr.isupper():
        return Setting(node.attr, where)
    return Setting(ast.get_source_segment(text, node) or "computed", where, is_known=False)
