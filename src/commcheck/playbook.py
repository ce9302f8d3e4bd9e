"""Playbooks: which checks, in what order, on which hosts, and how strictly.

No includes, no variables, no loops. Every value that is set on several levels (threshold,
timeout) is resolved here, so that an ``Entry`` says all there is to say of its check.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from commcheck.check import limits_of
from commcheck.check_fields import (
    EFFECTS,
    WILDCARDS,
    Params,
    check_name,
    params_of,
    read_params,
    thresholds_by_name,
)
from commcheck.discover import FoundCheck, bundled_folder
from commcheck.errors import PlaybookError, Position
from commcheck.fields import Count, Fields
from commcheck.inventory.declared import MAX_ERRORS, Notes, Refused, quoted
from commcheck.lazy import dataclass
from commcheck.model import Layer
from commcheck.plays import Entry, Gate, Play, Playbook, Severity, Suspects
from commcheck.strict_yaml import Node, Scalar, compose, read_file
from commcheck.waivers import read_waivers
from commcheck.when import When, read_when

__all__ = ["Entry", "Gate", "Play", "Playbook", "Severity", "Suspects", "load", "parse"]

PLAYBOOK_KEYS: Final = (
    "name",
    "description",
    "forks",
    "timeout_s",
    "allow",
    "thresholds",
    "plays",
    "waivers",
)
ONLY_WHERE_LOADED: Final = ("serial", "max_fail", "suspects")
"""Keys of plays that load hosts: plays that only look are all asked in one go."""

PLAY_KEYS: Final = (
    "name",
    "layer",
    "hosts",
    "gate",
    *ONLY_WHERE_LOADED,
    "forks",
    "timeout_s",
    "thresholds",
    "when",
    "checks",
)
ENTRY_KEYS: Final = ("check", "params", "when", "severity", "retries", "timeout_s")
MAX_RETRIES: Final = 5


def parse(text: str, path: str, found: Sequence[FoundCheck]) -> Playbook:
    """Read a playbook. Raises ``PlaybookError`` with its first 20 problems, sorted by position."""
    notes = Notes()
    playbook = None
    try:
        playbook = read_playbook(text, path, found, notes)
    except Refused as refused:
        notes.errors.add(refused.problem)
    if notes.errors or playbook is None:
        raise PlaybookError(*(each.line() for each in sorted(notes.errors)[:MAX_ERRORS]))
    return playbook


def locate(given: Path | None, *, cwd: Path) -> Path:
    """The file that an operator means by a path, or by a name; None: the climb of every day.

    A name without a folder means a file here, else a playbook in ``./playbooks``, else a bundled
    one; of the two latter it may leave out the ending. What is not found is for ``load`` to tell.
    """
    bundled = bundled_folder("playbooks")
    if given is None:
        return bundled / "default.yaml"
    if len(given.parts) > 1 or _is_file(cwd / given):
        return given
    for folder in (Path("playbooks"), bundled):
        for ending in ("", ".yaml", ".yml"):
            path = folder / f"{given.name}{ending}"
            if _is_file(cwd / path):
                return path
    return given


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that may not be read
        return False


def load(path: Path, found: Sequence[FoundCheck]) -> Playbook:
    """Read a playbook file. Raises ``PlaybookError``, with what is bundled where there is none."""
    try:
        text = read_file(path)
    except Refused as refused:
        problem = refused.problem
        if problem.rule == "file":
            names = sorted(each.stem for each in bundled_folder("playbooks").glob("*.yaml"))
            problem = replace(problem, text=f"{problem.text}; bundled: {', '.join(names)}")
        raise PlaybookError(problem.line()) from None
    return parse(text, str(path), found)


def read_playbook(
    text: str, path: str, found: Sequence[FoundCheck], notes: Notes
) -> Playbook | None:
    """Read a playbook; what is wrong is noted. Raises ``Refused`` where reading cannot go on."""
    root = compose(text, path, notes)
    fields = Fields(notes)
    if root is None:
        fields.wrong(Position(path, 1), "wanted a playbook, found an empty file", "type")
        return None
    return _Reader(fields, found).playbook(root)


@dataclass(frozen=True, slots=True)
class _Above:
    """What the playbook, then the play, sets for the entries in it."""

    timeout_s: float | None = None
    thresholds: tuple[Params, ...] = ()
    when: tuple[When, ...] = ()


class _Reader:
    """Reads one playbook against the checks that were found."""

    def __init__(self, fields: Fields, found: Sequence[FoundCheck]) -> None:
        self.fields = fields
        self.checks = {one.id: one.check for one in found}
        self.thresholds = thresholds_by_name(found)

    def playbook(self, root: Node) -> Playbook | None:
        keys = self.fields.mapping(root, "a playbook", PLAYBOOK_KEYS, ("name", "plays"))
        if keys is None:
            return None
        above = self._above(keys, _Above())
        name = self._text(keys, "name")
        self._text(keys, "description")  # for who reads the file
        allow = frozenset(self._allow(keys["allow"])) if "allow" in keys else frozenset()
        nodes = self.fields.items(keys["plays"], "plays", "plays") if "plays" in keys else ()
        plays = [play for node in nodes if (play := self._play(node, above, allow)) is not None]
        self._climbs(plays)
        return Playbook(
            name=name or "",
            plays=tuple(plays),
            forks=self.fields.whole(keys["forks"], "forks", 1) if "forks" in keys else None,
            allow=allow,
            waivers=read_waivers(self.fields, keys["waivers"], self.checks)
            if "waivers" in keys
            else (),
        )

    def _above(self, keys: Mapping[str, Node], outer: _Above) -> _Above:
        thresholds = outer.thresholds
        if "thresholds" in keys:
            given = read_params(
                self.fields, keys["thresholds"], "thresholds", self.thresholds, "no check has"
            )
            thresholds = (*thresholds, given)
        return _Above(
            self._timeout(keys) or outer.timeout_s, thresholds, (*outer.when, *self._when(keys))
        )

    def _timeout(self, keys: Mapping[str, Node]) -> float | None:
        name = "timeout_s"
        return self.fields.seconds(keys[name], name) if name in keys else None

    def _when(self, keys: Mapping[str, Node]) -> tuple[When, ...]:
        when = read_when(self.fields, keys["when"]) if "when" in keys else None
        return () if when is None else (when,)

    def _text(self, keys: Mapping[str, Node], name: str) -> str | None:
        return self.fields.text(keys[name], name) if name in keys else None

    def _choice(self, keys: Mapping[str, Node], name: str, words: Sequence[str]) -> str | None:
        return self.fields.choice(keys[name], name, words) if name in keys else None

    def _count(self, keys: Mapping[str, Node], name: str, low: int) -> Count | None:
        return self.fields.count(keys[name], name, low) if name in keys else None

    def _allow(self, node: Node) -> Iterator[str]:
        seen: set[str] = set()
        for each in self.fields.items(node, "allow", "words", may_be_empty=True):
            word = self.fields.choice(each, "allow", EFFECTS)
            if word in seen:
                self.fields.wrong(each.at, f"allow: {word!r} again", "allow")
            if word is not None:
                seen.add(word)
                yield word

    def _climbs(self, plays: Sequence[Play]) -> None:
        for before, after in itertools.pairwise(plays):
            if after.layer.height < before.layer.height:
                self.fields.wrong(
                    after.position,
                    f"layer {after.layer.value!r} after {before.layer.value!r} "
                    f"(line {before.position.line}): plays climb, they do not descend",
                    "order",
                )

    def _play(self, node: Node, outer: _Above, allow: frozenset[str]) -> Play | None:
        keys = self.fields.mapping(node, "a play", PLAY_KEYS, ("layer", "checks"))
        if keys is None:
            return None
        layer = self._choice(keys, "layer", [*Layer])
        above = self._above(keys, outer)
        checks = self._entries(keys["checks"], layer, above) if "checks" in keys else None
        if checks is not None:
            self._needs_loading(keys, checks)
            self._permitted(checks, allow)
        texts = {name: self._text(keys, name) for name in ("name", "hosts")}
        gate = self._choice(keys, "gate", [*Gate])
        suspects = self._choice(keys, "suspects", [*Suspects])
        counts = {
            name: self._count(keys, name, low) for name, low in (("serial", 1), ("max_fail", 0))
        }
        forks = self.fields.whole(keys["forks"], "forks", 1) if "forks" in keys else None
        if layer is None:
            return None
        return Play(
            name=texts["name"] or layer,
            layer=Layer(layer),
            checks=checks or (),
            position=node.at,
            hosts=texts["hosts"] or "all",
            gate=Gate(gate or "host"),
            suspects=Suspects(suspects or "exclude"),
            serial=counts["serial"],
            max_fail=counts["max_fail"],
            forks=forks,
        )

    # --- the checks of a play -------------------------------------------------------------------

    def _entries(self, node: Node, layer: str | None, above: _Above) -> tuple[Entry, ...] | None:
        """The entries, ``<layer>.*`` unfolded; None where one of them is wrong."""
        nodes = self.fields.items(node, "checks", "check ids")
        read = [self._entry(each, layer, above) for each in nodes]
        entries = [each for each in read if each is not None]
        seen: set[str] = set()
        for each in entries:
            if each.check in seen:
                self.fields.wrong(
                    each.position, f"{each.check} again in this play", "duplicate-check"
                )
            seen.add(each.check)
        if len(entries) < len(read):
            return None
        return tuple(one for each in entries for one in self._unfold(each, seen, above))

    def _unfold(self, entry: Entry, named: set[str], above: _Above) -> Iterator[Entry]:
        if entry.check not in WILDCARDS:
            yield entry
            return
        for check_id, check in sorted(self.checks.items()):
            is_meant = f"{check.layer.value}.*" == entry.check and not check.effects
            if is_meant and check_id not in named:
                params = params_of(check, *above.thresholds)
                yield replace(entry, check=check_id, params=params)

    def _entry(self, node: Node, layer: str | None, above: _Above) -> Entry | None:
        """An id alone, or a mapping. ``layer``: the play's, None where that is wrong itself."""
        if isinstance(node, Scalar):
            keys: Mapping[str, Node] | None = {"check": node}
        else:
            keys = self.fields.mapping(node, "an entry", ENTRY_KEYS, ("check",))
        if keys is None or "check" not in keys:
            return None
        check_id = check_name(self.fields, keys["check"], self.checks, "check")
        when = self._when(keys)
        severity = self._choice(keys, "severity", [*Severity])
        retries = (
            self.fields.whole(keys["retries"], "retries", 0, MAX_RETRIES)
            if "retries" in keys
            else None
        )
        timeout_s = self._timeout(keys)
        if check_id is None:
            return None
        if layer is not None and Layer.of(check_id).value != layer:
            self.fields.wrong(
                keys["check"].at, f"{quoted(check_id)} is no check of layer {layer}", "layer"
            )
            return None
        return Entry(
            check=check_id,
            position=node.at,
            params=self._params(check_id, keys, above),
            when=(*above.when, *when),
            severity=Severity(severity or "blocking"),
            retries=retries or 0,
            timeout_s=timeout_s or above.timeout_s,
        )

    def _params(self, check_id: str, keys: Mapping[str, Node], above: _Above) -> Params:
        check = self.checks.get(check_id)
        specs = {} if check is None else limits_of(check.limits)
        given: Params = {}
        if "params" in keys:
            by_name = {name: [spec] for name, spec in specs.items()}
            given = read_params(
                self.fields, keys["params"], "params", by_name, f"{check_id} has not"
            )
        return {} if check is None else params_of(check, *above.thresholds, given)

    def _needs_loading(self, keys: Mapping[str, Node], checks: Sequence[Entry]) -> None:
        if any("load" in self.checks[each.check].effects for each in checks):
            return
        for name in ONLY_WHERE_LOADED:
            if name in keys:
                self.fields.wrong(
                    keys[name].at,
                    f"{name}: only for a play that loads hosts, and no check of this one does",
                    "loads",
                )

    def _permitted(self, checks: Sequence[Entry], allow: frozenset[str]) -> None:
        for each in checks:
            for effect in sorted(self.checks[each.check].effects - allow):
                self.fields.wrong(
                    each.position,
                    f"{each.check} would {effect}, and this playbook does not allow it; "
                    f"write allow: [{effect}] at its top",
                    "allow",
                )
