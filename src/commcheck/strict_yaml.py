"""YAML text to positioned nodes, strictly: one document, no tags, no merge keys, no surprises.

What YAML 1.1 readers turn into something else stays text (``no``, ``on``, ``22:30``, dates) or is
refused (``010``, a key twice). Built from parser events, so that no nesting can exhaust the stack
and an alias bomb is counted, never unfolded.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, Final

import yaml

from commcheck.errors import Position
from commcheck.files import opened
from commcheck.inventory.declared import Notes, Refused, quoted
from commcheck.lazy import dataclass, regex

MAX_BYTES: Final = 1 << 20
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 50
"""What a person writes stays far below these; what does not is some other file, or an attack."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LINE_END: Final = regex("\r\n|[\r\n\x85\u2028\u2029]")
_COMMENT: Final = regex(r"(?:^|(?<=\s))#")
_PRINTABLE: Final = "\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff"
_NOT_PRINTABLE: Final = regex(f"[^{_PRINTABLE}]")  # YAML 1.1, section 5.1

_WHOLE: Final = regex(r"[-+]?[0-9]+")
_FRACTION: Final = r"(?:[0-9]+\.[0-9]*|\.[0-9]+)"
_FLOAT: Final = regex(rf"[-+]?(?:{_FRACTION}(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_LEADING_ZERO: Final = regex(r"[-+]?0[0-9]")
_MAX_DIGITS: Final = 15
"""Digits that a JSON number, and so an editor, carries without loss (2^53)."""

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word: its value, and how it was written."""

    at: Position
    value: Plain
    written: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    at: Position
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A mapping; keys are text as written, each with its own place."""

    at: Position
    nodes: dict[str, tuple[Position, Node]]


Node = Scalar | Items | Pairs


def read_file(path: Path) -> str:
    """The text of a file of at most 1 MiB. Raises ``Refused``."""
    start = Position(str(path), 1)
    try:
        with opened(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Refused(start, f"cannot be read: {error.strerror}", "file") from error
    if len(data) > MAX_BYTES:
        raise Refused(start, "is over 1 MiB, so it is some other file", "size")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        lines = _LINE_END.split(data[: error.start].decode())
        at = Position(str(path), len(lines), len(lines[-1]) + 1)
        raise Refused(at, f"byte {data[error.start]:#04x} is no UTF-8", "encoding") from error


def compose(text: str, path: str, notes: Notes) -> Node | None:
    """The one document of a text, None where there is none. Raises ``Refused``; notes the rest."""
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    _refuse_odd_characters(lines, path, notes)
    builder = _Builder(path, notes)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = _place(path, mark) if mark else Position(path, 1)
        reason = error.problem or error.context or "cannot be read"
        raise Refused(at, f"not YAML: {' '.join(reason.split())}", "yaml") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise Refused(Position(path, 1), f"not YAML: {reason}", "yaml") from error
    return builder.root


def _refuse_odd_characters(lines: list[str], path: str, notes: Notes) -> None:
    tabs = [
        Position(path, number, line.index("\t") + 1)
        for number, line in enumerate(lines, 1)
        if "\t" in line and "\t" in _COMMENT.split(line, maxsplit=1)[0]
    ]
    for at in tabs:
        notes.error(at, "a tab; write spaces", "tab")
    for number, line in enumerate(lines, 1):
        if odd := _NOT_PRINTABLE.search(line):
            at = Position(path, number, odd.start() + 1)
            raise Refused(at, f"character U+{ord(odd[0]):04X} does not belong here", "encoding")
    if tabs:
        raise Refused(tabs[0], "a tab; write spaces", "tab")


def _place(path: str, mark: Any) -> Position:
    return Position(path, mark.line + 1, mark.column + 1)


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end was not yet seen. ``nodes`` counts what is in it, unfolded."""

    at: Position
    is_mapping: bool
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    pairs: dict[str, tuple[Position, Node]] = field(default_factory=dict)
    wants_key: bool = True
    key: Scalar | None = None  # None while a value is expected: it belongs to a refused key
    nodes: int = 1


class _Builder:
    """Takes the events of one document, and holds its root in the end."""

    def __init__(self, path: str, notes: Notes) -> None:
        self.path = path
        self.notes = notes
        self.root: Node | None = None
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._documents = 0
        self._total = 0

    def take(self, event: Any) -> None:
        """One more event."""
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    at = _place(self.path, event.start_mark)
                    raise Refused(at, "a second document; one file is one document", "document")
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.ScalarEvent():
                self._no_tag(event)
                self._add(self._scalar(event), 1, event.anchor, is_plain=_is_plain(event))
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._no_tag(event)
                at = _place(self.path, event.start_mark)
                if len(self._open) >= MAX_DEPTH:
                    raise Refused(at, f"nested deeper than {MAX_DEPTH} levels", "depth")
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                self._open.append(_Open(at, is_mapping, event.anchor))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                done = self._open.pop()
                node = (
                    Pairs(done.at, done.pairs)
                    if done.is_mapping
                    else Items(done.at, tuple(done.items))
                )
                self._add(node, done.nodes, done.anchor, counted=done.nodes - 1)
            case _:
                pass  # the ends of stream and document say nothing more

    def _no_tag(self, event: Any) -> None:
        if event.tag is not None:
            shown = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            self.notes.error(
                _place(self.path, event.start_mark),
                f"{quoted(shown)} is a tag, and tags are not allowed; a text that begins with "
                "'!' wants quotes",
                "tag",
            )

    def _alias(self, event: Any) -> None:
        at = _place(self.path, event.start_mark)
        if event.anchor not in self._anchors:
            raise Refused(
                at, f"alias {quoted('*' + event.anchor)} stands for nothing before it", "alias"
            )
        node, nodes = self._anchors[event.anchor]
        self._add(node, nodes, None)

    def _scalar(self, event: Any) -> Scalar:
        at = _place(self.path, event.start_mark)
        value: Plain = event.value
        if _is_plain(event) and event.tag is None:
            try:
                value = _value(event.value)
            except ValueError as error:
                # As a value only: a key is text whatever it looks like.
                if not self._wants_key():
                    self.notes.error(at, f"{quoted(event.value)}: {error}", "number")
        return Scalar(at, value, event.value)

    def _wants_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_mapping and self._open[-1].wants_key

    def _add(
        self,
        node: Node,
        nodes: int,
        anchor: str | None,
        *,
        is_plain: bool = False,
        counted: int = 0,
    ) -> None:
        """Hang a node in; of its ``nodes`` some were ``counted`` when they came."""
        if anchor is not None:
            self._anchors[anchor] = (node, nodes)
        self._total += nodes - counted
        if self._total > MAX_NODES:
            raise Refused(node.at, f"over {MAX_NODES:,} values, aliases unfolded", "alias")
        if not self._open:
            self.root = node
            return
        top = self._open[-1]
        top.nodes += nodes
        if not top.is_mapping:
            top.items.append(node)
        elif top.wants_key:
            top.key = self._key(node, top, is_plain=is_plain)
            top.wants_key = False
        else:
            if top.key is not None:
                top.pairs[top.key.written] = (top.key.at, node)
            top.wants_key = True

    def _key(self, node: Node, top: _Open, *, is_plain: bool) -> Scalar | None:
        """The key, or None where it is refused, and its value with it."""
        if not isinstance(node, Scalar):
            self.notes.error(node.at, "a key must be a word, not a list or mapping", "key")
            return None
        if node.written == "<<" and is_plain:
            self.notes.error(node.at, "merge keys are not allowed; write it out", "merge")
            return None
        if node.written in top.pairs:
            first = top.pairs[node.written][0].line
            what = f"{quoted(node.written)} again (first on line {first})"
            self.notes.error(node.at, what, "duplicate-key")
            return None
        return node


def _is_plain(event: Any) -> bool:
    return event.style in (None, "")


def _value(text: str) -> Plain:
    """A plain word's value. Raises ``ValueError`` for a number that is not what it looks like."""
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    is_whole = _WHOLE.fullmatch(text)
    if not is_whole and not _FLOAT.fullmatch(text):
        return text
    if _LEADING_ZERO.match(text):
        raise ValueError("a number with a leading zero; write it without, or quote a text")
    if is_whole and len(text.lstrip("+-")) > _MAX_DIGITS:
        raise ValueError(f"a number of over {_MAX_DIGITS} digits; quote it if it is a text")
    if is_whole:
        return int(text)
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number too large to be one")
    return number
