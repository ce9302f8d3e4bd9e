"""Playbooks: which checks, in what order, on which hosts. A strict reader with positions."""

from __future__ import annotations

import difflib
import fnmatch
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from commcheck.discover import FoundCheck
from commcheck.errors import PlaybookError, Position
from commcheck.model import Layer

MAX_BYTES = 1 << 20
"""A playbook fits on a screen; anything of this size is some other file."""

_PLAYBOOK_KEYS = ("name", "description", "plays")
_PLAY_KEYS = ("name", "layer", "hosts", "checks")


@dataclass(frozen=True, slots=True)
class Play:
    """Checks of one layer for the hosts of one pattern. ``checks`` are ids in the order given."""

    name: str
    layer: Layer
    hosts: str
    checks: tuple[str, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Playbook:
    """A named list of plays; the layer may stay or rise from play to play, never fall."""

    name: str
    plays: tuple[Play, ...]
    description: str = ""


def parse(text: str, path: str, found: Sequence[FoundCheck]) -> Playbook:
    """Read a playbook. Raises ``PlaybookError`` with every problem, sorted by position."""
    reader = _Reader(path, {one.id for one in found})
    playbook = reader.playbook(text)
    if reader.problems or playbook is None:
        ordered = sorted(reader.problems, key=lambda problem: problem[0])
        raise PlaybookError(*(f"{at}: error: {what}" for at, what in ordered[:20]))
    return playbook


def load(path: Path, found: Sequence[FoundCheck]) -> Playbook:
    """Read a playbook file. Raises ``PlaybookError``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PlaybookError(f"{path}: error: cannot be read: {error.strerror} [playbook]") from None
    if len(data) > MAX_BYTES:
        raise PlaybookError(f"{path}: error: over 1 MiB, this is no playbook [playbook]")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PlaybookError(f"{path}: error: no UTF-8 at byte {error.start} [encoding]") from None
    return parse(text, str(path), found)


class _Reader:
    """Walks yaml nodes, which keep their positions, and gathers problems."""

    def __init__(self, path: str, ids: set[str]) -> None:
        self.path = path
        self.ids = ids
        self.problems: list[tuple[Position, str]] = []

    def wrong(self, node: yaml.Node | None, what: str) -> None:
        mark = node.start_mark if node else None
        at = Position(self.path, mark.line + 1, mark.column + 1) if mark else Position(self.path, 1)
        self.problems.append((at, what))

    def at(self, node: yaml.Node) -> Position:
        return Position(self.path, node.start_mark.line + 1, node.start_mark.column + 1)

    def playbook(self, text: str) -> Playbook | None:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = Position(self.path, mark.line + 1, mark.column + 1) if mark else None
            self.problems.append((at or Position(self.path, 1), f"{error.problem} [yaml]"))
            return None
        except (yaml.YAMLError, RecursionError) as error:
            self.problems.append((Position(self.path, 1), f"{error} [yaml]"))
            return None
        top = self.mapping(root, _PLAYBOOK_KEYS, "a playbook")
        if top is None:
            return None
        name = self.text(top.get("name"), root, "name")
        plays_node = top.get("plays")
        if not isinstance(plays_node, yaml.SequenceNode) or not plays_node.value:
            self.wrong(plays_node or root, "plays: wanted a list of plays [plays]")
            return None
        plays = [play for node in plays_node.value if (play := self.play(node)) is not None]
        for before, after in itertools.pairwise(plays):
            if after.layer.height < before.layer.height:
                self.problems.append(
                    (
                        after.position,
                        f"layer {after.layer.value!r} after {before.layer.value!r} "
                        f"(line {before.position.line}): plays climb, they do not descend [order]",
                    )
                )
        description = top.get("description")
        return Playbook(
            name,
            tuple(plays),
            self.text(description, root, "description") if description else "",
        )

    def play(self, node: yaml.Node) -> Play | None:
        keys = self.mapping(node, _PLAY_KEYS, "a play")
        if keys is None:
            return None
        layer_node = keys.get("layer")
        layer_text = self.text(layer_node, node, "layer")
        if layer_text not in set(Layer):
            if layer_text:
                self.wrong(layer_node, self.none_of("layer", layer_text, [*Layer]) + " [layer]")
            return None
        layer = Layer(layer_text)
        hosts = self.text(keys["hosts"], node, "hosts") if "hosts" in keys else "all"
        name = self.text(keys["name"], node, "name") if "name" in keys else layer.value
        checks_node = keys.get("checks")
        if not isinstance(checks_node, yaml.SequenceNode) or not checks_node.value:
            self.wrong(checks_node or node, "checks: wanted a list of check ids [checks]")
            return None
        checks: dict[str, None] = {}
        for each in checks_node.value:
            for check_id in self.check_ids(each, layer):
                if check_id in checks and "*" not in each.value:
                    self.wrong(each, f"{check_id} again in this play [duplicate-check]")
                checks[check_id] = None
        return Play(name, layer, hosts, tuple(checks), self.at(node))

    def check_ids(self, node: yaml.Node, layer: Layer) -> tuple[str, ...]:
        given = self.text(node, node, "check")
        if not given:
            return ()
        if given.partition(".")[0] != layer.value:
            self.wrong(node, f"{given!r} is no check of layer {layer.value} [layer]")
            return ()
        if given == f"{layer.value}.*":
            return tuple(sorted(fnmatch.filter(self.ids, given)))
        if given not in self.ids:
            near = difflib.get_close_matches(given, self.ids, 1, 0.6)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            self.wrong(node, f"no check {given!r}{hint} [unknown-check]")
            return ()
        return (given,)

    def mapping(
        self, node: yaml.Node | None, allowed: Sequence[str], what: str
    ) -> Mapping[str, yaml.Node] | None:
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, f"wanted {what}: a mapping with {', '.join(allowed)} [type]")
            return None
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if name not in allowed:
                self.wrong(key, self.none_of("key", name, allowed) + " [unknown-key]")
            elif name in found:
                first = found[name].start_mark.line + 1
                self.wrong(key, f"{name!r} again (first on line {first}) [duplicate-key]")
            else:
                found[name] = value
        return found

    def text(self, node: yaml.Node | None, parent: yaml.Node | None, key: str) -> str:
        if isinstance(node, yaml.ScalarNode) and node.value.strip():
            return str(node.value)
        self.wrong(node or parent, f"{key}: wanted a text [type]")
        return ""

    @staticmethod
    def none_of(what: str, given: str, allowed: Sequence[str]) -> str:
        near = difflib.get_close_matches(given, allowed, 1, 0.6)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return f"{what}: {given!r} is none of {', '.join(allowed)}{hint}"
