"""The INI inventory: ``[group]``, ``[group:children]``, ``[group:vars]``, values as literals."""

from __future__ import annotations

import ast
import contextlib
import difflib
import ipaddress
import shlex
import warnings
from collections.abc import Iterable
from typing import Final

from commcheck.errors import Position
from commcheck.inventory.declared import (
    AddChild,
    AddGroup,
    Declared,
    Notes,
    SetGroup,
    Setting,
    Statement,
    add_hosts,
    quoted,
)
from commcheck.inventory.ranges import expand, split_port
from commcheck.inventory.yaml_nodes import note_changed_number
from commcheck.lazy import regex

_SECTION: Final = regex(r"\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?")
_GROUP: Final = regex(r"([^:\]\s]+)\s*(?:#.*)?")
_KINDS: Final = ("hosts", "children", "vars")


def parse(text: str, path: str, known: Iterable[str] = ()) -> Declared:
    """The statements of an INI inventory; never raises, errors are in the notes.

    ``known``: groups of the sources before it, which its sections may speak of.
    """
    source = _Source(path, known)
    for number, raw in enumerate(text.splitlines(), 1):
        source.line(number, raw)
    source.finish()
    return Declared(tuple(source.statements), source.notes)


def literal(text: str) -> object:
    """A value as Ansible reads it: a Python literal where it is one, else the text itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
        return _plain(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return text


def _plain(value: object) -> object:
    """The literal as JSON can hold it; raises ``ValueError`` for what it cannot."""
    if isinstance(value, str):
        value.encode()  # a lone surrogate could be written to no report
        return value
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and abs(value) < 1 << 64:
        return value
    if isinstance(value, list | tuple | set):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    raise ValueError(f"no plain value: {type(value).__name__}")


class _Source:
    """The pass over the lines; begins as if in ``[ungrouped]``."""

    def __init__(self, path: str, known: Iterable[str]) -> None:
        self._path = path
        self.notes = Notes()
        self.statements: list[Statement] = []
        self._group = "ungrouped"
        self._kind = "hosts"
        self._known = {"all", "ungrouped", *known}
        # Groups spoken of before they are declared: as a child (of whom), or by their vars.
        self._children: dict[str, list[tuple[str, Position]]] = {}
        self._vars: dict[str, Position] = {}

    def line(self, number: int, raw: str) -> None:
        """Read one line."""
        text = raw.strip()
        if not text or text[0] in ";#":
            return
        at = Position(self._path, number, raw.index(text[0]) + 1)
        if match := _SECTION.fullmatch(text):
            self._section(match[1], match[2] or "hosts", at)
        elif text.startswith("[") and text.endswith("]"):
            self.notes.error(at, f"{quoted(text)} is no section; is a blank in it?", "section")
        elif self._kind == "vars":
            self._variable(text, at)
        elif self._kind == "children":
            self._child(text, at)
        else:
            self._host(text, raw, at)

    def finish(self) -> None:
        """Note the groups that were spoken of and never declared."""
        for group, parents in self._children.items():
            for parent, at in parents:
                near = difflib.get_close_matches(group, self._known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                self.notes.error(
                    at, f"[{parent}:children] names the unknown group {group}{hint}", "group"
                )
        for group, at in self._vars.items():
            near = difflib.get_close_matches(group, self._known - {group}, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            self.notes.error(at, f"[{group}:vars] is for the unknown group {group}{hint}", "group")

    def _section(self, group: str, kind: str, at: Position) -> None:
        self._group, self._kind = group, kind
        if kind not in _KINDS:
            self.notes.error(at, f"[{group}:{kind}]: wanted :children, :vars or nothing", "section")
            self._kind = "hosts"
        if group not in self._known:
            if kind == "vars" and group not in self._children:
                self._vars[group] = at
            self._known.add(group)
            self.statements.append(AddGroup(group, at))
        if kind != "vars":
            self._vars.pop(group, None)
            self._adopt(group)

    def _adopt(self, group: str) -> None:
        # A child that was named before its own section joins its parents at that section: it is
        # then that Ansible fixes the order of children.
        for parent, at in self._children.pop(group, ()):
            self.statements.append(AddChild(parent, group, at))
            self._adopt(parent)

    def _child(self, text: str, at: Position) -> None:
        match = _GROUP.fullmatch(text)
        if match is None:
            self.notes.error(at, f"wanted the name of a group, found {quoted(text)}", "group")
            return
        child = match[1]
        if child in self._known:
            self.statements.append(AddChild(self._group, child, at))
        else:
            self._children.setdefault(child, []).append((self._group, at))

    def _variable(self, text: str, at: Position) -> None:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name:
            self.notes.error(at, f"wanted name=value, found {quoted(text)}", "variable")
            return
        column = at.column + text.index(value, text.index("=") + 1)
        setting = self._setting(name, value, Position(self._path, at.line, column))
        self.statements.append(SetGroup(self._group, setting))

    def _host(self, text: str, raw: str, at: Position) -> None:
        try:
            words = shlex.split(text, comments=True)
        except ValueError as error:
            self.notes.error(at, f"{str(error).lower()} in {quoted(text)}", "host-line")
            return
        if not words or not words[0]:
            self.notes.error(at, f"no host name in {quoted(text)}", "name")
            return
        pattern, port = split_port(words[0])
        if words[0].endswith(":") or words[0] == "---":
            self.notes.error(
                at, f"{quoted(words[0])} is no host name; a YAML inventory is named .yml", "name"
            )
            return
        if _is_ip(words[0]) and words[1:] and "=" not in text:
            told = f"a line of /etc/hosts; an inventory says {words[1]} ansible_host={words[0]}"
            self.notes.error(at, told, "hosts-file")
            return
        settings = self._host_settings(words[1:], raw, at)
        try:
            add_hosts(self.statements, expand(pattern), self._group, at, port, settings)
        except ValueError as error:
            self.notes.error(at, f"host {quoted(words[0])} {error}", "range")

    def _host_settings(self, words: list[str], raw: str, at: Position) -> list[Setting]:
        settings: dict[str, Setting] = {}
        start = 0
        for word in words:
            name, sign, value = word.partition("=")
            found = raw.find(name + sign, start)
            start = found + len(name + sign) if found >= 0 else start
            here = Position(self._path, at.line, found + 1 if found >= 0 else at.column)
            if not sign or not name:
                self.notes.error(here, f"wanted name=value, found {quoted(word)}", "variable")
                continue
            if name in settings:
                self.notes.error(here, f"{quoted(name)} again on this line", "duplicate-key")
                continue
            settings[name] = self._setting(name, value, Position(self._path, at.line, start + 1))
        return list(settings.values())

    def _setting(self, name: str, text: str, at: Position) -> Setting:
        value = literal(text)
        if isinstance(value, int | float) and not isinstance(value, bool):
            note_changed_number(self.notes, at, name, text.strip(), value)
        return Setting(name, value, at)


def _is_ip(word: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(word))
    return False
