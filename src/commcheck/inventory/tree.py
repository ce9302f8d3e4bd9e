"""Groups and hosts as a tree: statements applied in order, then Ansible's orders over it.

The order of hosts: groups breadth first from the top (``ungrouped`` before the others), hosts of a
group as they first appear, a host only at its first place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import field

from commcheck.errors import Position
from commcheck.inventory.declared import (
    AddChild,
    AddGroup,
    AddHost,
    Notes,
    SetGroup,
    SetHost,
    Setting,
    Statement,
    quoted,
)
from commcheck.lazy import dataclass

BUILT_IN = Position("the inventory", 1)


@dataclass(slots=True)
class Group:
    """A group under construction; dicts serve as ordered sets."""

    name: str
    at: Position
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    parents: dict[str, None] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    priority: int = 1
    depth: int = 0


@dataclass(slots=True)
class Member:
    """A host under construction."""

    name: str
    at: Position
    settings: dict[str, Setting] = field(default_factory=dict)
    groups: dict[str, None] = field(default_factory=dict)


class Tree:
    """All groups and hosts. Apply statements, then ``finish``, then ask."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.groups: dict[str, Group] = {}
        self.hosts: dict[str, Member] = {}
        for name in ("all", "ungrouped"):
            self.groups[name] = Group(name, BUILT_IN)
        self._link("all", "ungrouped")

    def apply(self, statements: Iterable[Statement]) -> None:
        """Carry out what a source declares, in its order."""
        for statement in statements:
            if isinstance(statement, SetHost):
                if member := self.hosts.get(statement.host):
                    member.settings[statement.setting.name] = statement.setting
            elif isinstance(statement, AddHost):
                self._add_host(statement)
            elif isinstance(statement, SetGroup):
                self._set_group(statement)
            elif isinstance(statement, AddGroup):
                self._add_group(statement.group, statement.at)
            else:
                self._add_child(statement)

    def _add_group(self, name: str, at: Position) -> None:
        if name not in self.groups:
            if fault := name_fault(name):
                self._notes.error(at, f"group {quoted(name)} {fault}", "name")
            self.groups[name] = Group(name, at)

    def _add_host(self, statement: AddHost) -> None:
        name = statement.host
        if name not in self.hosts:
            if fault := name_fault(name):
                self._notes.error(statement.at, f"host {quoted(name)} {fault}", "name")
            self.hosts[name] = Member(name, statement.at)
            if statement.port is not None:
                port = Setting("ansible_port", statement.port, statement.at)
                self.hosts[name].settings[port.name] = port
        self._add_group(statement.group, statement.at)
        self.groups[statement.group].hosts[name] = None

    def _set_group(self, statement: SetGroup) -> None:
        setting = statement.setting
        group = self.groups[statement.group]
        if setting.name != "ansible_group_priority":
            group.settings[setting.name] = setting
            return
        try:
            group.priority = int(str(setting.value))
        except ValueError:
            self._notes.error(
                setting.at,
                f"ansible_group_priority is {quoted(setting.value)}; wanted a whole number",
                "number",
            )

    def _add_child(self, statement: AddChild) -> None:
        parent, child = statement.parent, statement.child
        if parent == child or child in self._above(parent):
            self._notes.error(
                statement.at,
                f"group {quoted(child)} would be inside itself, by way of {quoted(parent)}",
                "group-loop",
            )
        else:
            self._link(parent, child)

    def _link(self, parent: str, child: str) -> None:
        self.groups[parent].children[child] = None
        self.groups[child].parents[parent] = None

    def _above(self, name: str) -> dict[str, None]:
        """Every group above a group."""
        found: dict[str, None] = {}
        waiting = deque(self.groups[name].parents)
        while waiting:
            group = waiting.popleft()
            if group not in found:
                found[group] = None
                waiting.extend(self.groups[group].parents)
        return found

    def finish(self) -> None:
        """Hang what stands alone under ``all`` and ``ungrouped``, and find the depths."""
        for group in self.groups.values():
            if group.name != "all" and not group.parents:
                self._link("all", group.name)
        for group in self.groups.values():
            for host in group.hosts:
                self.hosts[host].groups[group.name] = None
        ungrouped = self.groups["ungrouped"]
        for member in self.hosts.values():
            if member.groups.keys() - {"all", "ungrouped"}:
                ungrouped.hosts.pop(member.name, None)
                member.groups.pop("ungrouped", None)
            elif "ungrouped" not in member.groups:
                ungrouped.hosts[member.name] = None
                member.groups["ungrouped"] = None
        self._measure()
        for both in self.groups.keys() & self.hosts.keys():
            self._notes.warning(
                self.hosts[both].at,
                f"{quoted(both)} is the name of a host and of a group; rename one",
                "name",
            )

    def _measure(self) -> None:
        """Depth: the longest way from ``all``, by taking groups whose parents are all done."""
        missing = {group.name: len(group.parents) for group in self.groups.values()}
        ready = deque(name for name, count in missing.items() if count == 0)
        while ready:
            group = self.groups[ready.popleft()]
            for name in group.children:
                child = self.groups[name]
                child.depth = max(child.depth, group.depth + 1)
                missing[name] -= 1
                if missing[name] == 0:
                    ready.append(name)

    def hosts_of(self, name: str) -> tuple[str, ...]:
        """The hosts of a group and of all below it, in Ansible's order."""
        seen = {name: None}
        waiting = deque([name])
        hosts: dict[str, None] = {}
        while waiting:
            group = self.groups[waiting.popleft()]
            hosts.update(group.hosts)
            for child in group.children:
                if child not in seen:
                    seen[child] = None
                    waiting.append(child)
        return tuple(hosts)

    def chain(self, direct: Iterable[str]) -> list[Group]:
        """The groups a host with these direct groups is in, weakest first; ``all`` leads."""
        names = {"all": None}
        for name in direct:
            names[name] = None
            names.update(self._above(name))
        return sorted(
            (self.groups[name] for name in names),
            key=lambda group: (group.depth, group.priority, group.name),
        )


def name_fault(name: str) -> str:
    """Why a host or group cannot have this name, "" where it can: names become file names."""
    if not name.isprintable() or " " in name:
        return "has a blank or an invisible character in its name"
    if "/" in name or "\\" in name:
        return "has a slash in its name"
    if name.startswith(("@", "-")):
        return f"begins with {name[0]!r}"
    if name in ("", ".", ".."):
        return "has no real name"
    if len(name.encode()) > 200:
        return "has a name of more than 200 bytes"
    return ""
