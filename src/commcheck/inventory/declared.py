"""What an inventory source declares: positioned statements, in the order in which they stand.

The readers of YAML, INI and JSON all answer with these; ``tree`` applies them. Nothing here does
I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from commcheck.errors import Position
from commcheck.lazy import dataclass

MAX_ERRORS = 20
"""Errors shown per file: enough to mend a file in one go, few enough to read."""


COMMAND_LINE = Position("-i", 1)
"""Stands for an inline list of hosts, which has no place in a file."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something wrong at a place; ``rule`` names the kind of it, stable for suppressions."""

    at: Position
    text: str
    rule: str

    def line(self, severity: str = "error") -> str:
        """The complete line a person (and an editor) reads."""
        return f"{self.at}: {severity}: {self.text} [{self.rule}]"


class Refused(Exception):
    """Reading this source cannot go on."""

    def __init__(self, at: Position, text: str, rule: str) -> None:
        self.problem = Problem(at, text, rule)
        super().__init__(text)


@dataclass(slots=True)
class Notes:
    """The errors and warnings of one source, collected while it is read."""

    errors: set[Problem] = field(default_factory=set)
    warnings: set[Problem] = field(default_factory=set)

    def error(self, at: Position, text: str, rule: str) -> None:
        """Note an error; the source is read on, so that all are shown at once."""
        self.errors.add(Problem(at, text, rule))

    def warning(self, at: Position, text: str, rule: str) -> None:
        """Note what works but is probably not meant."""
        self.warnings.add(Problem(at, text, rule))


class Opaque(str):
    """A value that is kept but not read: vaulted, of an unknown tag, or not resolvable.

    As text it says so, which makes it harmless in reports. ``why`` is what to tell the person
    where the value turns out to be needed.
    """

    __slots__ = ("rule", "why")

    why: str
    rule: str

    def __new__(cls, why: str, rule: str) -> Opaque:
        """An unread value with its reason."""
        opaque = super().__new__(cls, f"(not read: {rule})")
        opaque.why = why
        opaque.rule = rule
        return opaque


def opaque_in(value: object) -> Opaque | None:
    """The first unread value in a value, however deep."""
    if isinstance(value, Opaque):
        return value
    if isinstance(value, dict):
        return next(filter(None, map(opaque_in, value.values())), None)
    if isinstance(value, list):
        return next(filter(None, map(opaque_in, value)), None)
    return None


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable with its value (plain data or ``Opaque``) and where it was set."""

    name: str
    value: object
    at: Position


@dataclass(frozen=True, slots=True)
class AddGroup:
    """A group exists."""

    group: str
    at: Position


@dataclass(frozen=True, slots=True)
class AddHost:
    """A host exists and is in a group. ``port`` counts only where the host is new."""

    host: str
    group: str
    at: Position
    port: int | None = None


@dataclass(frozen=True, slots=True)
class AddChild:
    """A group is a child of another."""

    parent: str
    child: str
    at: Position


@dataclass(frozen=True, slots=True)
class SetGroup:
    """A variable of a group, written in the inventory itself."""

    group: str
    setting: Setting


@dataclass(frozen=True, slots=True)
class SetHost:
    """A variable of a host, written in the inventory itself."""

    host: str
    setting: Setting


Statement = AddGroup | AddHost | AddChild | SetGroup | SetHost


MOST_OF_RANGES: Final = 1 << 22
"""Hosts, and settings of theirs, that the ranges of a file may stand for: 50,000 hosts with eighty
variables each. A line of sixty letters stands for as many hosts as there are network ports."""


def add_hosts(
    statements: list[Statement],
    names: Sequence[str],
    group: str,
    at: Position,
    port: int | None,
    settings: Sequence[Setting] = (),
) -> None:
    """Append the hosts of a line. Raises ``ValueError`` where its range is one too many."""
    more = len(names) * (1 + len(settings))
    if len(names) > 1 and len(statements) + more > MOST_OF_RANGES:
        raise ValueError(f"makes more than {MOST_OF_RANGES:,} hosts and settings in one file")
    for name in names:
        statements.append(AddHost(name, group, at, port))
        statements.extend(SetHost(name, setting) for setting in settings)


@dataclass(frozen=True, slots=True)
class Declared:
    """One source, read: its statements in order, and what is wrong with it."""

    statements: tuple[Statement, ...]
    notes: Notes


def quoted(value: object, limit: int = 80) -> str:
    """A value as a person may see it in one line of a terminal: escaped and short."""
    text = repr(str(value))
    return text if len(text) <= limit else f"{text[: limit - 4]}...'"
