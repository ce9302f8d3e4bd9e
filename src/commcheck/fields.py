"""From strict YAML nodes to typed values: what is wrong is noted, at its place, and read on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final

from commcheck.errors import Position
from commcheck.inventory.declared import Notes, Refused, quoted
from commcheck.lazy import dataclass, regex
from commcheck.strict_yaml import Items, Node, Pairs, Plain, Scalar

_DATE: Final = regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ENOUGH: Final = 200
_PERCENT: Final = regex(r"(100|[1-9]?[0-9])%")


@dataclass(frozen=True, slots=True)
class Count:
    """A number of hosts: ``value`` of them, or ``value`` percent of the play's."""

    value: int
    is_percent: bool = False


def near(given: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)``, or nothing where no known word is near."""
    words = difflib.get_close_matches(given, list(known), 1, 0.6)
    return f" (did you mean {str(words[0])!r}?)" if words else ""


def found(node: Node) -> str:
    """What stands there, in words."""
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Pairs):
        return "a mapping"
    value = node.value
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return node.written
    return f"text {quoted(value)}" if isinstance(value, str) else f"the number {node.written}"


class Fields:
    """Reads nodes of one file. A method that answers None, or nothing, has noted why."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self._told = {problem.at for problem in notes.errors}

    def wrong(self, at: Position, text: str, rule: str) -> None:
        """Note an error. Raises ``Refused`` where there are so many that none will be read."""
        if len(self._told) >= _ENOUGH:
            raise Refused(at, text, rule)
        self._told.add(at)
        self.notes.error(at, text, rule)

    def mistyped(self, node: Node, name: str, wanted: str) -> None:
        """Note that a value is of another kind than ``wanted``."""
        # A place where the text itself was already refused (010, a tag) is told once.
        if node.at not in self._told:
            self.wrong(node.at, f"{name}: wanted {wanted}, found {found(node)}", "type")

    def mapping(
        self,
        node: Node,
        what: str,
        allowed: Sequence[str],
        required: Sequence[str] = (),
        *,
        may_be_empty: bool = True,
    ) -> Mapping[str, Node] | None:
        """The values of a mapping with fixed keys. Unknown and missing keys are noted."""
        if not isinstance(node, Pairs):
            self.mistyped(node, what, f"a mapping with {', '.join(allowed)}")
            return None
        if not node.nodes and not may_be_empty:
            self.wrong(node.at, f"{what}: an empty mapping, wanted {', '.join(allowed)}", "empty")
        known: dict[str, Node] = {}
        meant: set[str] = set()
        for key, (at, value) in node.nodes.items():
            if key in allowed:
                known[key] = value
                continue
            free = [each for each in allowed if each not in node.nodes]
            meant.update(difflib.get_close_matches(key, free, 1, 0.6))
            none_of = f"key: {quoted(key)} is none of {', '.join(allowed)}{near(key, free)}"
            self.wrong(at, none_of, "unknown-key")
        for key in required:
            if key not in known and key not in meant:
                self.wrong(node.at, f"{what} wants a key {key!r}", "missing-key")
        return known

    def free_mapping(
        self, node: Node, name: str, *, may_be_empty: bool = True
    ) -> Mapping[str, tuple[Position, Node]]:
        """A mapping whose keys are not fixed: each with its place and value."""
        if not isinstance(node, Pairs):
            self.mistyped(node, name, "a mapping")
            return {}
        if not node.nodes and not may_be_empty:
            self.wrong(node.at, f"{name}: an empty mapping", "empty")
        return node.nodes

    def items(
        self, node: Node, name: str, of: str, *, may_be_empty: bool = False
    ) -> Sequence[Node]:
        """The nodes of a list."""
        if not isinstance(node, Items):
            self.mistyped(node, name, f"a list of {of}")
            return ()
        if not node.nodes and not may_be_empty:
            self.wrong(node.at, f"{name}: an empty list, wanted {of}", "empty")
        return node.nodes

    def text(self, node: Node, name: str) -> str | None:
        """A text that is not blank."""
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            more = "" if not isinstance(node, Scalar) or node.value is None else " in quotes"
            self.mistyped(node, name, f"a text{more}")
            return None
        if not node.value.strip():
            self.mistyped(node, name, "a text that is not blank")
            return None
        return node.value

    def texts(self, node: Node, name: str) -> tuple[str, ...]:
        """One text, or a list of some."""
        nodes = self.items(node, name, "texts") if isinstance(node, Items) else (node,)
        return tuple(text for each in nodes if (text := self.text(each, name)) is not None)

    def choice(self, node: Node, name: str, allowed: Sequence[str], rule: str = "") -> str | None:
        """One of a few words."""
        if isinstance(node, Scalar) and node.value in allowed and isinstance(node.value, str):
            return node.value
        words = ", ".join(allowed)
        if isinstance(node, Scalar) and isinstance(node.value, str):
            hint = near(node.value, allowed)
            self.wrong(
                node.at, f"{name}: {quoted(node.value)} is none of {words}{hint}", rule or name
            )
        else:
            self.mistyped(node, name, f"one of {words}")
        return None

    def choices(self, node: Node, name: str, allowed: Sequence[str], rule: str) -> tuple[str, ...]:
        """One of a few words, or a list of some."""
        nodes = self.items(node, name, "words") if isinstance(node, Items) else (node,)
        return tuple(
            word for each in nodes if (word := self.choice(each, name, allowed, rule)) is not None
        )

    def whole(self, node: Node, name: str, low: int, high: int | None = None) -> int | None:
        """A whole number from ``low`` to ``high``."""
        value = whole_number(node.value) if isinstance(node, Scalar) else None
        limits = f"of {low} or more" if high is None else f"from {low} to {high}"
        if value is None:
            self.mistyped(node, name, f"a whole number {limits}")
        elif value < low or (high is not None and value > high):
            self.wrong(node.at, f"{name}: {value} is no whole number {limits}", "range")
            return None
        return value

    def seconds(self, node: Node, name: str) -> float | None:
        """A number of seconds above 0."""
        value = number(node.value) if isinstance(node, Scalar) else None
        if value is None:
            self.mistyped(node, name, "a number of seconds")
        elif value <= 0:
            self.wrong(node.at, f"{name}: {value:g} is not above 0", "range")
            return None
        return value

    def count(self, node: Node, name: str, low: int) -> Count | None:
        """A number of hosts, or a percentage like ``25%``; at least ``low``."""
        value = node.value if isinstance(node, Scalar) else None
        percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
        count = int(percent[1]) if percent else whole_number(value)
        if count is not None and count >= low:
            return Count(count, is_percent=percent is not None)
        wanted = f"a whole number of {low} or more, or {low}% to 100%"
        if count is None:
            self.mistyped(node, name, wanted)
        else:
            self.wrong(node.at, f"{name}: wanted {wanted}, found {found(node)}", "range")
        return None

    def day(self, node: Node, name: str) -> date | None:
        """A date of the calendar, ``2026-12-15``."""
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            self.mistyped(node, name, "a date like 2026-12-15")
            return None
        try:
            if _DATE.fullmatch(node.value):
                return date.fromisoformat(node.value)
        except ValueError:
            pass
        self.wrong(node.at, f"{name}: {quoted(node.value)} is no date like 2026-12-15", "date")
        return None


def number(value: Plain) -> float | None:
    """The value as a float where it is a number, else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value is not None else None


def whole_number(value: Plain) -> int | None:
    """The value as an int where it is a whole number (``3``, ``3.0``, ``1e3``), else None."""
    as_float = number(value)
    return int(as_float) if as_float is not None and as_float.is_integer() else None
