"""What a dynamic inventory prints: groups with hosts, vars and children, ``_meta.hostvars``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from commcheck.errors import Position
from commcheck.inventory.declared import (
    AddChild,
    AddGroup,
    AddHost,
    Declared,
    Notes,
    Opaque,
    Refused,
    SetGroup,
    SetHost,
    Setting,
    Statement,
    quoted,
)
from commcheck.inventory.yaml_nodes import VAULT_ADVICE


def parse(text: str, name: str) -> Declared:
    """The statements in a dynamic inventory's answer. ``name`` stands for it in messages."""
    notes = Notes()
    statements: list[Statement] = []
    try:
        statements.extend(_Answer(_load(text, name), Position(name, 1)).statements())
    except Refused as refused:
        notes.errors.add(refused.problem)
    return Declared(tuple(statements), notes)


def _load(text: str, name: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
        # Escaped lone surrogates pass json, but no report could be written with them.
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        at = Position(name, error.lineno, error.colno)
        raise Refused(at, f"its answer is not JSON: {error.msg}", "json") from error
    except (RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())[:120]
        raise Refused(Position(name, 1), f"its answer is unreadable: {reason}", "json") from error
    if not isinstance(data, dict):
        raise Refused(Position(name, 1), "its answer is no JSON object of groups", "json")
    return data


class _Answer:
    def __init__(self, data: dict[str, Any], at: Position) -> None:
        self._data = data
        self._at = at

    def statements(self) -> Iterator[Statement]:
        meta = self._mapping(self._data.get("_meta"), "_meta")
        hostvars = self._mapping(meta.get("hostvars"), "_meta.hostvars")
        for name in self._in_order():
            yield from self._group(name)
        for host, variables in hostvars.items():
            for key, value in self._mapping(variables, f"the variables of {quoted(host)}").items():
                yield SetHost(host, Setting(key, _plain(value), self._at))

    def _in_order(self) -> list[str]:
        """Group names from the top: the answer itself is sorted by name, children are not."""
        order = dict.fromkeys(name for name in ("all",) if name in self._data)
        waiting = list(order)
        while waiting:
            group = self._data.get(waiting.pop(0))
            for child in self._names(group, "children") if isinstance(group, dict) else ():
                if child not in order:
                    order[child] = None
                    waiting.append(child)
        order.update(dict.fromkeys(name for name in self._data if name != "_meta"))
        return list(order)

    def _group(self, name: str) -> Iterator[Statement]:
        yield AddGroup(name, self._at)
        group = self._data.get(name, {})
        if isinstance(group, list):  # the short form: only hosts
            group = {"hosts": group}
        group = self._mapping(group, f"group {quoted(name)}")
        for host in self._names(group, "hosts"):
            yield AddHost(host, name, self._at)
        for key, value in self._mapping(group.get("vars"), f"the vars of {quoted(name)}").items():
            yield SetGroup(name, Setting(key, _plain(value), self._at))
        for child in self._names(group, "children"):
            yield AddGroup(child, self._at)
            yield AddChild(name, child, self._at)

    def _mapping(self, value: object, what: str) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise Refused(self._at, f"in its answer {what} is no JSON object", "json")
        return value

    def _names(self, group: dict[str, Any], key: str) -> list[str]:
        names = group.get(key) or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Refused(self._at, f"in its answer {quoted(key)} is no list of names", "json")
        return names


def _plain(value: Any) -> Any:
    """The value, with Ansible's marks for vaulted and unsafe texts undone."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        if "__ansible_vault" in value:
            return Opaque(VAULT_ADVICE, "vault")
        if value.keys() == {"__ansible_unsafe"}:
            return value["__ansible_unsafe"]
        return {key: _plain(each) for key, each in value.items()}
    return value
