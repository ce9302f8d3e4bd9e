"""YAML text to positioned nodes, and nodes to plain values as YAML 1.1, and so Ansible, reads them.

Values are what ``json`` can write; what cannot be (vaults, unknown tags, sets) is ``Opaque``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final, NoReturn

import yaml

from commcheck.errors import Position
from commcheck.inventory.declared import Notes, Opaque, Refused, Setting, quoted
from commcheck.lazy import regex

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_MAX_DEPTH: Final = 100
_MAX_REPEATS: Final = 250_000
"""Nodes looked at again by way of an alias: above it, the file is an alias bomb."""

_BIG: Final = 1 << 64
_VAULT: Final = "it is vaulted, and commcheck does not open vaults; "
VAULT_ADVICE: Final = _VAULT + "write the value plainly, or keep it in ~/.ssh/config"
_CONSTRUCTOR: Final = yaml.constructor.SafeConstructor()
_RESOLVER: Final[Any] = yaml.resolver.Resolver()
# PyYAML 6.0.4 turned round which of several merged mappings wins (for names of more than one
# letter); read as the Ansible beside us does.
_FIRST_WINS: Final[bool] = yaml.safe_load("{<<: [{mtu: true}, {mtu: false}]}")["mtu"]
_DECIMAL: Final = regex(r"[-+]?[0-9]+\.[0-9]+")


class Nodes:
    """Reads the nodes of one file."""

    def __init__(self, path: str, notes: Notes) -> None:
        self.path = path
        self.notes = notes
        self._repeats = 0
        self._seen: set[int] = set()
        self._open: set[int] = set()

    def compose(self, text: str) -> yaml.Node | None:
        """The root node, None for an empty file. Raises ``Refused`` where it is no YAML."""
        try:
            root: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            self._refuse(error, text)
        except (yaml.YAMLError, RecursionError) as error:
            reason = " ".join(str(error).split())[:200]
            raise Refused(Position(self.path, 1), f"not YAML: {reason}", "yaml") from error
        return root

    def _refuse(self, error: yaml.MarkedYAMLError, text: str) -> NoReturn:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        lines = text.splitlines()
        here = lines[line] if line < len(lines) else ""
        indent = here[: len(here) - len(here.lstrip())]
        if "\t" in indent or here[column : column + 1] == "\t":
            tab = here.index("\t")
            raise Refused(
                Position(self.path, line + 1, tab + 1),
                "a tab; YAML wants spaces here",
                "tab",
            ) from error
        problem = error.problem or error.context or "unreadable"
        raise Refused(Position(self.path, line + 1, column + 1), problem, "yaml") from error

    def at(self, node: yaml.Node) -> Position:
        """Where a node begins."""
        mark = node.start_mark
        return Position(self.path, mark.line + 1, mark.column + 1)

    def enter(self, node: yaml.Node) -> None:
        """Go into a node that holds others; pair with ``leave``. Raises ``Refused``."""
        if id(node) in self._open:
            raise Refused(self.at(node), "an alias that contains itself", "alias")
        if len(self._open) >= _MAX_DEPTH:
            raise Refused(self.at(node), f"nested deeper than {_MAX_DEPTH} levels", "depth")
        self._open.add(id(node))

    def _count(self, node: yaml.Node) -> None:
        if id(node) not in self._seen:
            self._seen.add(id(node))
            return
        self._repeats += 1
        if self._repeats > _MAX_REPEATS:
            raise Refused(self.at(node), "its aliases unfold to far too much", "alias")

    def leave(self, node: yaml.Node) -> None:
        """The counterpart of ``enter``."""
        self._open.discard(id(node))

    def pairs(self, node: yaml.MappingNode) -> dict[Any, tuple[yaml.Node, yaml.Node]]:
        """Key to its key and value nodes, merge keys unfolded, doubled keys noted as errors."""
        self.enter(node)
        merged: dict[Any, tuple[yaml.Node, yaml.Node]] = {}
        own: dict[Any, tuple[yaml.Node, yaml.Node]] = {}
        for key_node, value_node in node.value:
            self._count(value_node)
            if key_node.tag == _TAG + "merge":
                merged.update(self._merged(value_node))
                continue
            key = self._key(key_node)
            if key in own:
                first = self.at(own[key][0])
                self.notes.error(
                    self.at(key_node),
                    f"{quoted(key)} again (first on line {first.line})",
                    "duplicate-key",
                )
                continue
            own[key] = (key_node, value_node)
        self.leave(node)
        return merged | own if merged else own

    def _merged(self, node: yaml.Node) -> dict[Any, tuple[yaml.Node, yaml.Node]]:
        """What a merge key brings in: the pairs of one mapping, or of a list of them."""
        nodes = list(node.value) if isinstance(node, yaml.SequenceNode) else [node]
        found: dict[Any, tuple[yaml.Node, yaml.Node]] = {}
        for each in reversed(nodes) if _FIRST_WINS else nodes:
            if not isinstance(each, yaml.MappingNode):
                raise Refused(self.at(each), "'<<' wants a mapping, or a list of them", "merge")
            pairs = self.pairs(each)
            for key in found.keys() & pairs.keys():
                if found[key][1].value != pairs[key][1].value:
                    self.notes.warning(
                        self.at(node),
                        f"{quoted(key)} is in two of the merged mappings, and it depends on the "
                        "version of PyYAML which of them wins",
                        "merge",
                    )
            found |= pairs
        return found

    def _key(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise Refused(self.at(node), "a key must be a word, not a list or mapping", "key")
        return self.value(node)

    def value(self, node: yaml.Node, within: str = "") -> Any:
        """The plain value of a node. ``within``: the variable it belongs to."""
        if node.tag in ("!vault", "!vault-encrypted"):
            return Opaque(VAULT_ADVICE, "vault")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, within)
        if not isinstance(node, yaml.CollectionNode):
            raise Refused(self.at(node), "unreadable", "yaml")
        if node.tag not in (_TAG + "map", _TAG + "seq", "!unsafe"):
            return _unknown_tag(node)
        if isinstance(node, yaml.MappingNode):
            pairs = self.pairs(node)
            self.enter(node)
            plain: Any = {key: self.value(value, within) for key, (_, value) in pairs.items()}
        else:
            self.enter(node)
            plain = []
            for each in node.value:
                self._count(each)
                plain.append(self.value(each, within))
        self.leave(node)
        return plain

    def _scalar(self, node: yaml.ScalarNode, within: str) -> Any:
        text: str = node.value
        tag = node.tag
        if tag == "!unsafe":
            tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
        if tag in (_TAG + "str", _TAG + "timestamp", _TAG + "value", _TAG + "merge"):
            return text
        if tag == _TAG + "null":
            return None
        try:
            if tag == _TAG + "bool":
                return _CONSTRUCTOR.construct_yaml_bool(node)
            if tag == _TAG + "int":
                number: int | float = _CONSTRUCTOR.construct_yaml_int(node)
            elif tag == _TAG + "float":
                number = _CONSTRUCTOR.construct_yaml_float(node)
            else:
                return _unknown_tag(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            return text
        if isinstance(number, int) and abs(number) >= _BIG:
            return text
        note_changed_number(self.notes, self.at(node), within, text, number)
        return number

    def setting(self, key: object, key_node: yaml.Node, node: yaml.Node) -> Setting | None:
        """A variable; None, and an error noted, where its name is none."""
        if not isinstance(key, str) or not key:
            self.notes.error(
                self.at(key_node), f"the variable name {quoted(key)} is no word", "variable-name"
            )
            return None
        where = node if isinstance(node, yaml.ScalarNode) else key_node
        return Setting(key, self.value(node, key), self.at(where))


def note_changed_number(
    notes: Notes, at: Position, within: str, text: str, number: float | int
) -> None:
    """Note a number that is not what was written: ``2.20`` is 2.2, ``010`` is 8 in YAML 1.1.

    An error for our own variables; for others a warning, since nobody may ever read them.
    """
    plain = text.lstrip("+")
    if plain == repr(number):
        return
    if isinstance(number, float):
        lost = bool(_DECIMAL.fullmatch(text)) and _loses(text, number, within)
    else:
        lost = ":" in plain or (plain.lstrip("-").startswith("0") and plain[1:].isdigit())
    if not lost:
        return
    name = f"{within}: " if within else ""
    note = notes.error if within.startswith("commcheck_") else notes.warning
    note(at, f"{name}{text} is read as the number {number!r}; if it is a text, quote it", "number")


def _loses(text: str, number: float, within: str) -> bool:
    # A threshold is a number whatever zeros end it; a version is not.
    return within != "commcheck_thresholds" or Decimal(text) != Decimal(repr(number))


def _unknown_tag(node: yaml.Node) -> Opaque:
    shown = node.tag.replace(_TAG, "!!")
    return Opaque(f"it has the tag {quoted(shown)}, which commcheck does not read", "tag")
