"""Files that hold settings: which kind each is, its content tells.

JSON of DeepSpeed (with comments, as it takes them), FSDP (Hugging Face, accelerate), DDP arguments
and DDP's logging data; YAML of accelerate, Composer, Lightning and of Transformers' arguments
(LLaMA-Factory, Axolotl), and with DeepSpeed's configuration or Megatron's
DistributedDataParallelConfig in it (NeMo RL, Megatron-Bridge, veRL); manifests of Kubernetes, for
the commands of containers and the files in ConfigMaps; Python with calls of DDP, FSDP, fully_shard,
Lightning, Megatron and TrainingArguments, or with DeepSpeed's configuration as a dict; anything
else is a command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from commcheck.errors import UsageError
from commcheck.frameworks import (
    calls,
    command,
    deepspeed,
    huggingface,
    lightning,
    manifests,
    megatron_config,
    yaml_words,
)
from commcheck.frameworks.calls import DDP_KEYS, FSDP_KEYS, TRAINER_KEYS
from commcheck.frameworks.placed import Placed, read_json
from commcheck.frameworks.settings import Framework, Setting, Settings
from commcheck.inventory.declared import Notes, Refused
from commcheck.kube import manifest
from commcheck.lazy import regex
from commcheck.strict_yaml import Items, Node, Pairs, Scalar, compose

WHAT: Final = "config"

_ACCELERATE_FILE: Final = regex(r"accelerate\s+launch\b[\s\S]{0,500}?--config_file[= ]+(\S{1,300})")

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
        return _json(text, file)
    if file.endswith((".yaml", ".yml")):
        found = _yaml(text, file)
    elif file.endswith(".py"):
        found = tuple(calls.read(text, file, WHAT))
    else:
        found = command.read_text(text, file)
    if not found:
        other = _ACCELERATE_FILE.search(text)
        hint = f": they stand in {other[1]}" if other else ""
        raise UsageError(
            f"{file}: error: no setting of DeepSpeed, DDP, FSDP or Megatron in it{hint} [{WHAT}]"
        )
    return found


def _json(text: str, file: str) -> tuple[Settings, ...]:
    placed = read_json(text, file, WHAT)
    if deepspeed.is_deepspeed(placed.value):
        return (deepspeed.settings(placed),)
    inline = placed.value.get("deepspeed")
    if isinstance(inline, Mapping) and deepspeed.is_deepspeed(inline):
        lines = {path.removeprefix("deepspeed."): line for path, line in placed.lines.items()}
        return (deepspeed.settings(Placed(file, inline, lines)),)
    if placed.value.keys() & LOG_KEYS:
        return (_flat(placed, "ddp", dict.fromkeys(placed.value, "")),)
    if not DDP_KEYS.isdisjoint(placed.value):
        return (_flat(placed, "ddp", {key: key for key in placed.value if key in DDP_KEYS}),)
    given = {
        key: Setting(_joined(value), placed.at(key))
        for key, value in placed.value.items()
        if key in TRAINER_KEYS and isinstance(value, str | int | float | list)
    }
    section = placed.value.get("fsdp_config") if placed.value.get("fsdp") else None
    fsdp = None
    if isinstance(section, Mapping):
        fsdp = {
            key.removeprefix("fsdp_"): Setting(value, placed.at(f"fsdp_config.{key}"))
            for key, value in section.items()
            if value is not None
        }
    if found := tuple(calls.trainer(given, file, fsdp)):
        return found
    bare = {key: key.removeprefix("fsdp_") for key in placed.value}
    if not FSDP_MARKS.isdisjoint(bare.values()):
        settings = _flat(placed, "fsdp", bare)
        return (replace(settings, values=huggingface.left_to_transformers(settings.values, file)),)
    raise UsageError(
        f"{file}:1: error: neither DeepSpeed's configuration (zero_optimization), nor arguments of "
        f"DDP, FSDP or Transformers, nor DDP's logging data [{WHAT}]"
    )


def _lightning_class(root: Pairs) -> Iterator[Settings]:
    """``strategy: {class_path: ..., init_args: {...}}`` of LightningCLI's trainer."""
    match root.nodes.get("trainer"):
        case (
            _,
            Pairs(
                nodes={"strategy": (at, Pairs(nodes={"class_path": (_, Scalar() as name)}) as node)}
            ),
        ):
            path = str(name.value).rpartition(".")[2]
            yield from lightning.of_class(path, _section(node, "init_args"), f"{at.path}:{at.line}")
        case _:
            pass


def _joined(value: object) -> object:
    """The words of a list (``"fsdp": ["full_shard", "auto_wrap"]``)."""
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _flat(placed: Placed, framework: Framework, names: Mapping[str, str]) -> Settings:
    values = {
        name or key: Setting(placed.value[key], placed.at(key))
        for key, name in names.items()
        if placed.value.get(key) is not None
    }
    ranks = placed.value.get("world_size")
    return Settings(framework, placed.file, values, ranks=ranks if isinstance(ranks, int) else None)


# --- accelerate ---------------------------------------------------------------------------------

_ACCELERATE: Final = frozenset({"distributed_type", "compute_environment"})
"""Keys of which Accelerate's own file has one or the other."""

_COMPOSER: Final = "max_duration"
"""Composer's Trainer wants it (LLM Foundry's YAML); it prefetches in the backward by default, as
BACKWARD_POST. Source: composer/utils/parallelism.py, FSDPConfig."""


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
    section = {
        key.removeprefix("fsdp_"): each for key, each in _section(root, "fsdp_config").items()
    }
    is_accelerate = not root.nodes.keys().isdisjoint(_ACCELERATE)
    if section and is_accelerate:
        where = f"{file}:{root.nodes['fsdp_config'][0].line}"
        found.append(Settings("fsdp", file, huggingface.under_accelerate(section, where)))
    elif section and _COMPOSER in root.nodes:
        found.append(Settings("fsdp", file, section))
    elif not is_accelerate:
        given = yaml_words.settings(root)
        if section and "fsdp_version" in given:  # Axolotl's place for it
            section = {"version": given["fsdp_version"], **section}
        for each in (given, _section(root, "trainer")):
            found.extend(lightning.by_name(each))
        found.extend(_lightning_class(root))
        found.extend(
            calls.trainer(given, file, None if _is_empty(root, "fsdp") else section or None)
        )
    zero = _section(root, "deepspeed_config")
    if zero:
        other = zero.get("deepspeed_config_file")
        values = {huggingface.ACCELERATE_ZERO.get(key, key): each for key, each in zero.items()}
        elsewhere = str(other.value) if other else ""
        found.append(Settings("deepspeed", file, values, elsewhere=elsewhere))
    kind = root.nodes["distributed_type"][1] if "distributed_type" in root.nodes else None
    if not found and isinstance(kind, Scalar) and str(kind.value).startswith("MULTI_"):
        found.append(Settings("ddp", file))  # DDP, one process for each accelerator
    return (*found, *_inline(root, file), *megatron_config.in_yaml(root))


def _inline(root: Pairs, file: str) -> Iterator[Settings]:
    """DeepSpeed's configuration written out in another file, or as YAML itself."""
    for _, node in yaml_words.sections(root):
        if not isinstance(node.nodes.get(deepspeed.ZERO, (None, None))[1], Pairs):
            continue
        value: dict[str, Any] = {}
        lines: dict[str, int] = {}
        computed: dict[str, Setting] = {}
        for path, each in yaml_words.nested(node):
            if not each.is_known:
                computed[path] = each
                continue
            *sections, key = path.split(".")
            within = value
            for name in sections:
                within = within.setdefault(name, {})
            within[key] = each.value
            lines[path] = int(each.where.rpartition(":")[2])
        at = node.nodes[deepspeed.ZERO][0]
        found = deepspeed.settings(Placed(file, value, lines), computed)
        yield replace(found, where=f"{at.path}:{at.line}")


def _is_empty(root: Pairs, name: str) -> bool:
    """True where it is written down as nothing: Transformers then ignores fsdp_config."""
    node = root.nodes[name][1] if name in root.nodes else None
    return isinstance(node, Scalar | Items) and not yaml_words.value(node)


def _section(root: Pairs, name: str) -> dict[str, Setting]:
    node: Node | None = root.nodes[name][1] if name in root.nodes else None
    return yaml_words.settings(node) if isinstance(node, Pairs) else {}
