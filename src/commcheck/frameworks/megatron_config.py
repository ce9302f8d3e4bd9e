"""Megatron's DistributedDataParallelConfig, wherever its fields stand: YAML, Python, Hydra.

Megatron-Bridge and NeMo 2 (``ddp``), NeMo RL (``distributed_data_parallel_config``), veRL
(``override_ddp_config``) and AReaL fill it in: what it does not name, a recipe of theirs does.
Source: Megatron-LM megatron/core/distributed/distributed_data_parallel_config.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from commcheck.frameworks import yaml_words
from commcheck.frameworks.settings import Setting, Settings
from commcheck.lazy import regex
from commcheck.strict_yaml import Node

CLASS: Final = "DistributedDataParallelConfig"
_FIELDS: Final[Mapping[str, str]] = {
    "overlap_grad_reduce": "overlap_grad_reduce",
    "overlap_param_gather": "overlap_param_gather",
    "use_distributed_optimizer": "use_distributed_optimizer",
    "bucket_size": "ddp_bucket_size",
    "use_megatron_fsdp": "use_megatron_fsdp",
    "use_custom_fsdp": "use_custom_fsdp",
}
"""By field: the flag of the same meaning, with underscores."""

_MARK: Final = "overlap_grad_reduce"
_BESIDE: Final = _FIELDS.keys() - {_MARK} | {
    "grad_reduce_in_fp32", "average_in_collective", "check_for_nan_in_grad",
    "data_parallel_sharding_strategy", "align_param_gather",
}  # fmt: skip
"""One of them stands beside the mark, or it stands in a section of a known name: others, too, have
a setting called so."""

NAMES: Final = _BESIDE | {_MARK}
_SECTIONS: Final = frozenset(
    {"ddp", "ddp_config", "override_ddp_config", "distributed_data_parallel_config"}
)
"""Names under which the frameworks keep it."""

_OVERRIDE: Final = regex(r"\+{0,2}([A-Za-z_][\w.]*)\.(\w+)=(\S{1,200})")
"""``+actor.megatron.override_ddp_config.overlap_grad_reduce=True``, as Hydra takes it."""


def settings(fields: Mapping[str, Setting], where: str, section: str) -> Iterator[Settings]:
    """The settings of one such configuration; none where it does not say whether it overlaps.

    ``section``: the name that the fields stand under.
    """
    if _MARK in fields and (section in _SECTIONS or not _BESIDE.isdisjoint(fields)):
        told = {name: each for name, each in fields.items() if each.value != "none"}
        values = {_FIELDS[name]: each for name, each in told.items() if name in _FIELDS}
        yield Settings("megatron", where, values, is_config=True)


def in_yaml(root: Node) -> Iterator[Settings]:
    """Those of every section of a document that is not switched off."""
    for name, node in yaml_words.sections(root):
        fields = yaml_words.settings(node)
        if _MARK in fields:
            yield from settings(fields, fields[_MARK].where, name)


def in_overrides(words: Iterable[tuple[str, str]]) -> Iterator[Settings]:
    """Those of a command's overrides: words, each with its place."""
    matches = ((_OVERRIDE.fullmatch(text), where) for text, where in words)
    yield from by_section((m[1], m[2], _setting(m[3], where)) for m, where in matches if m)


def by_section(told: Iterable[tuple[str, str, Setting]]) -> Iterator[Settings]:
    """Those of fields that are given one by one: section, dotted; field; and what it is."""
    sections: dict[str, dict[str, Setting]] = {}
    for section, name, setting in told:
        sections.setdefault(section, {})[name] = setting
    for section, fields in sections.items():
        if _MARK in fields:
            yield from settings(fields, fields[_MARK].where, section.rpartition(".")[2])


def _setting(text: str, where: str) -> Setting:
    """A word as Hydra takes it; not known where a shell has still something to fill in."""
    try:
        return Setting(float(text), where)
    except ValueError:
        truth = {"true": True, "false": False}
        return Setting(truth.get(text.lower(), text), where, not set("$`") & set(text))
