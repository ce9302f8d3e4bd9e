"""Words of a YAML file as the frameworks' own readers take them: PyYAML and OmegaConf.

Both read YAML 1.1, where ``True``, ``yes`` and ``off`` are truth values and ``40_000_000`` is a
number; our own files are stricter. ``${model.size}`` is OmegaConf's to fill in.
Source: PyYAML resolver.py; OmegaConf, variable interpolation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commcheck.frameworks.settings import Setting
from commcheck.lazy import regex
from commcheck.strict_yaml import Items, Node, Pairs, Scalar

_TRUTH: Final = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_CASES: Final = (str.lower, str.upper, str.capitalize)
_GROUPED: Final = regex(r"[-+]?[0-9]{1,3}(?:_[0-9]{3})+")


def sections(root: Node) -> Iterator[tuple[str, Pairs]]:
    """Every mapping of a document that is not switched off (``enabled: false``), in its order.

    Each with the key that it stands under, "" where there is none.
    """
    left = [("", root)]
    while left:
        name, node = left.pop()
        if isinstance(node, Items):
            left += [("", each) for each in reversed(node.nodes)]
        elif isinstance(node, Pairs) and not _is_disabled(node):
            yield name, node
            left += reversed([(key, each) for key, (_, each) in node.nodes.items()])


def _is_disabled(node: Pairs) -> bool:
    return "enabled" in node.nodes and value(node.nodes["enabled"][1]) is False


def nested(pairs: Pairs, prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """The words of a mapping and of those in it, by dotted path; none whose name has a dot."""
    for name, each in settings(pairs).items():
        if "." not in name:
            yield prefix + name, each
    for name, (_, node) in pairs.nodes.items():
        if isinstance(node, Pairs) and "." not in name:
            yield from nested(node, f"{prefix}{name}.")


def value(node: Node) -> object:
    """What a word is, or the words of a list (``fsdp: [full_shard, auto_wrap]``); None: neither."""
    if isinstance(node, Items):
        return " ".join(each.written for each in node.nodes if isinstance(each, Scalar))
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return node.value if isinstance(node, Scalar) else None
    text = node.value
    if text in ("Null", "NULL"):
        return None
    if any(text == case(text) for case in _CASES) and text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    return int(text.replace("_", "")) if _GROUPED.fullmatch(text) else text


def settings(pairs: Pairs) -> dict[str, Setting]:
    """The words of a mapping by their keys, each with its place; none for what is null."""
    return {
        key: Setting(found, f"{at.path}:{at.line}", "${" not in str(found))
        for key, (at, node) in pairs.nodes.items()
        if (found := value(node)) is not None
    }
