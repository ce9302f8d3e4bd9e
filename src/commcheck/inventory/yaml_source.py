"""The YAML inventory: groups with hosts, vars and children, and the YAML files of variables."""

from __future__ import annotations

from typing import Any

import yaml

from commcheck.errors import Position
from commcheck.inventory.declared import (
    AddChild,
    AddGroup,
    Declared,
    Notes,
    Refused,
    SetGroup,
    Setting,
    Statement,
    add_hosts,
    quoted,
)
from commcheck.inventory.ranges import expand, split_port
from commcheck.inventory.yaml_nodes import Nodes

SECTIONS = ("hosts", "vars", "children")


def plugin_of(text: str, path: str) -> str | None:
    """The inventory plugin a YAML file configures, None where it is an inventory itself."""
    try:
        root = Nodes(path, Notes()).compose(text)
    except Refused:
        return None
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if key.value == "plugin" and isinstance(value, yaml.ScalarNode) and value.value:
                return str(value.value)
    return None


def parse(text: str, path: str) -> Declared:
    """The statements of a YAML inventory; never raises, errors are in the notes."""
    notes = Notes()
    source = _Source(path, notes)
    try:
        source.read(text)
    except Refused as refused:
        notes.errors.add(refused.problem)
    return Declared(tuple(source.statements), notes)


def parse_variables(text: str, path: str) -> tuple[dict[str, Setting], Notes]:
    """The variables of a ``group_vars`` or ``host_vars`` file; an empty file has none."""
    notes = Notes()
    nodes = Nodes(path, notes)
    settings: dict[str, Setting] = {}
    try:
        root = nodes.compose(text)
        if root is None or _is_null(root):
            return {}, notes
        if not isinstance(root, yaml.MappingNode):
            raise Refused(nodes.at(root), "wanted 'name: value' lines", "variables")
        for key, (key_node, value_node) in nodes.pairs(root).items():
            if setting := nodes.setting(key, key_node, value_node):
                settings[setting.name] = setting
    except Refused as refused:
        notes.errors.add(refused.problem)
    return settings, notes


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


class _Source:
    """The walk over one file."""

    def __init__(self, path: str, notes: Notes) -> None:
        self._nodes = Nodes(path, notes)
        self._notes = notes
        self._start = Position(path, 1)
        self.statements: list[Statement] = []

    def read(self, text: str) -> None:
        root = self._nodes.compose(text)
        if root is None or _is_null(root):
            raise Refused(self._start, "the inventory is empty", "empty")
        if not isinstance(root, yaml.MappingNode):
            raise Refused(
                self._nodes.at(root),
                "wanted groups, such as 'all:' with 'hosts:' below it",
                "structure",
            )
        pairs = self._nodes.pairs(root)
        if not pairs:
            raise Refused(self._start, "the inventory is empty", "empty")
        for key, (key_node, node) in pairs.items():
            self._group(key, key_node, node)

    def _group(self, key: Any, key_node: yaml.Node, node: yaml.Node) -> str | None:
        at = self._nodes.at(key_node)
        if not isinstance(key, str) or not key:
            self._notes.error(at, f"the group name {quoted(key)} is no text; quote it", "name")
            return None
        if not (_is_null(node) or isinstance(node, yaml.MappingNode)):
            self._notes.warning(at, f"{quoted(key)} is no group: it has a plain value", "structure")
            return None
        self.statements.append(AddGroup(key, at))
        if isinstance(node, yaml.MappingNode):
            self._sections(key, node)
        return key

    def _sections(self, group: str, node: yaml.MappingNode) -> None:
        pairs = self._nodes.pairs(node)
        self._nodes.enter(node)
        for key, (key_node, section) in pairs.items():
            if key not in SECTIONS:
                self._notes.warning(
                    self._nodes.at(key_node),
                    f"group {quoted(group)}: {quoted(key)} is ignored; "
                    "a group has hosts, vars and children",
                    "structure",
                )
            elif not _is_null(section):
                self._section(group, key, section)
        self._nodes.leave(node)

    def _section(self, group: str, name: str, node: yaml.Node) -> None:
        pairs: dict[Any, tuple[yaml.Node, yaml.Node | None]]
        if isinstance(node, yaml.MappingNode):
            pairs = dict(self._nodes.pairs(node))
        elif isinstance(node, yaml.ScalarNode) and isinstance(self._nodes.value(node), str):
            # Ansible takes "hosts: one-name" for a mapping with that one key.
            pairs = {node.value: (node, None)}
        else:
            kind = "list" if isinstance(node, yaml.SequenceNode) else "plain value"
            self._notes.error(
                self._nodes.at(node),
                f"{name} of group {quoted(group)} is a {kind}; wanted a mapping, "
                f"one {'name: value' if name == 'vars' else 'name with a colon'} a line",
                "structure",
            )
            return
        self._nodes.enter(node)
        for key, (key_node, value) in pairs.items():
            self._entry(group, name, key, key_node, value)
        self._nodes.leave(node)

    def _entry(
        self, group: str, section: str, key: Any, key_node: yaml.Node, value: yaml.Node | None
    ) -> None:
        nothing = yaml.ScalarNode("tag:yaml.org,2002:null", "", key_node.start_mark)
        if section == "vars":
            if setting := self._nodes.setting(key, key_node, value or nothing):
                self.statements.append(SetGroup(group, setting))
        elif section == "children":
            at = self._nodes.at(key_node)
            if (child := self._group(key, key_node, value or nothing)) is not None:
                self.statements.append(AddChild(group, child, at))
        else:
            self._hosts(group, key, key_node, value or nothing)

    def _hosts(self, group: str, key: Any, key_node: yaml.Node, node: yaml.Node) -> None:
        at = self._nodes.at(key_node)
        if not isinstance(key, str) or not key:
            self._notes.error(at, f"the host name {quoted(key)} is no text; quote it", "name")
            return
        pattern, port = split_port(key)
        settings = self._host_settings(key, node)
        try:
            add_hosts(self.statements, expand(pattern), group, at, port, settings)
        except ValueError as error:
            self._notes.error(at, f"host {quoted(key)} {error}", "range")

    def _host_settings(self, host: str, node: yaml.Node) -> list[Setting]:
        if isinstance(node, yaml.MappingNode):
            pairs = self._nodes.pairs(node).items()
            found = (self._nodes.setting(key, knode, value) for key, (knode, value) in pairs)
            return [setting for setting in found if setting]
        if not _is_null(node):
            self._notes.error(
                self._nodes.at(node),
                f"host {quoted(host)} has a plain value; its variables are a mapping below it",
                "structure",
            )
        return []
