"""``commcheck lint``: playbooks, files of waivers and check files, read without any host.

An inventory is read, and judged, with the run it belongs to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from commcheck import discover
from commcheck.check import AnyCheck, Nothing, readings_of
from commcheck.command import IN_BRACES
from commcheck.discover import CheckBroken, FoundCheck, id_of, misplaced, no_layer
from commcheck.errors import Position
from commcheck.fields import near
from commcheck.inventory.declared import MAX_ERRORS, Notes, Refused, quoted
from commcheck.lazy import regex
from commcheck.model import Cause, Layer, Machine, Words
from commcheck.playbook import read_playbook
from commcheck.strict_yaml import Pairs, compose, read_file
from commcheck.waivers import read_file_of_waivers, warn_of_void

RULES: Final[Mapping[str, str]] = {
    # files and YAML
    "file": "the file cannot be read, or is none that lint knows",
    "size": "the file is over 1 MiB",
    "encoding": "the file is no UTF-8, or holds control characters",
    "yaml": "the text is no YAML",
    "tab": "a tab where YAML wants spaces",
    "document": "one file is one document",
    "tag": "tags (!x) are not allowed",
    "merge": "merge keys (<<) are not allowed",
    "alias": "an alias that stands for nothing, or for far too much",
    "depth": "nested too deep",
    "key": "a key is a word",
    "duplicate-key": "a key stands once",
    "number": "a number is written as it is meant: no leading zero, no lost digits",
    # values
    "type": "a value is of the kind that is wanted",
    "empty": "a list or mapping that must hold something",
    "range": "a number is within its limits",
    "unknown-key": "only the keys that there are",
    "missing-key": "the keys that there must be",
    # playbooks and waivers
    "layer": "one of the four layers, and checks of the play's own layer",
    "order": "plays climb: no play stands on a lower layer than the one before",
    "unknown-check": "a check is one that was found",
    "duplicate-check": "a check stands once in a play",
    "gate": "host, fleet or none",
    "severity": "blocking or advisory",
    "suspects": "exclude or include",
    "when": "conditions have few words to choose from",
    "params": "a threshold is one that the check has",
    "loads": "serial, max_fail and suspects belong to plays that load hosts",
    "allow": "a check that loads or writes wants the playbook's permission",
    "date": "a day of the calendar, 2026-12-15",
    "reason": "a waiver's reason says something",
    "void-waiver": "a waiver's last day has passed (warning)",
    "unused-waiver": "a waiver waived nothing in a run (warning, told by the run)",
    # check files
    "check": "the file can be loaded and ends in a CHECK",
    "check-doc": "the docstring has Why: and Reads:",
    "check-words": "titles, causes and remedies are in both languages",
    "check-id": "a check's id is its layer and its file's name, with hyphens",
    "check-place": "a place of a command, {netdev}, is one that something fills",
    "check-cause": "a cause's slug is lower-case words with hyphens, once in the check",
    "check-needs": "a needed check exists, in the same layer",
}
"""Every rule that a message may end in, with what it wants. The names are stable."""

_VOCABULARY: Final = ("commcheck.check", "commcheck.model")
_SLUG: Final = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_YAML: Final = (".yaml", ".yml")


def lint(paths: Sequence[Path], found: Sequence[FoundCheck], *, cwd: Path, today: date) -> Notes:
    """What is wrong, or will be, with files and folders; at most 20 errors a file.

    A folder stands for its playbooks and for the checks in its layers; no path at all for
    ``playbooks`` and ``checks`` here. Paths are relative to ``cwd``. Raises nothing.
    """
    all_notes = Notes()
    for path in paths or [Path(name) for name in ("playbooks", "checks") if (cwd / name).is_dir()]:
        try:
            files = list(_files(path, cwd)) if (cwd / path).is_dir() else [path]
            reason = "neither playbooks nor folders of checks are here"
        except OSError as error:
            files, reason = [], f"cannot be read: {error.strerror}"
        if not files:
            all_notes.error(Position(str(path), 1), reason, "file")
        for file in files:
            notes = _lint_file(file, found, cwd, today)
            all_notes.errors.update(sorted(notes.errors)[:MAX_ERRORS])
            all_notes.warnings.update(notes.warnings)
    return all_notes


def _files(folder: Path, cwd: Path) -> Iterator[Path]:
    names = sorted(each.name for each in (cwd / folder).iterdir() if each.suffix in _YAML)
    yield from (folder / name for name in names)
    layers = [folder] if folder.name in [*Layer] else [folder / layer.value for layer in Layer]
    for layer in layers:
        names = sorted(each.name for each in (cwd / layer).glob("*.py"))
        yield from (layer / name for name in names if not name.startswith("_"))
    # A check beside the layers is told: a run would pass it over.
    yield from (folder / each.relative_to(cwd / folder) for each in misplaced(cwd / folder))


def _lint_file(path: Path, found: Sequence[FoundCheck], cwd: Path, today: date) -> Notes:
    notes = Notes()
    try:
        if path.suffix == ".py":
            _lint_check(path, found, cwd, notes)
        elif path.suffix in _YAML:
            text = _text(path, cwd)
            _lint_yaml(text, str(path), found, notes, today)
        else:
            what = "neither a playbook or waivers (.yaml) nor a check (.py)"
            notes.error(Position(str(path), 1), what, "file")
    except Refused as refused:
        notes.errors.add(refused.problem)
    return notes


def _text(path: Path, cwd: Path) -> str:
    try:
        return read_file(cwd / path)
    except Refused as refused:
        # Told by the name that was given, not by where it was found.
        problem = refused.problem
        at = Position(str(path), problem.at.line, problem.at.column)
        raise Refused(at, problem.text, problem.rule) from refused


def _lint_yaml(
    text: str, path: str, found: Sequence[FoundCheck], notes: Notes, today: date
) -> None:
    root = compose(text, path, notes)  # the reader notes the same again, in the same places
    if isinstance(root, Pairs) and "waivers" in root.nodes and "plays" not in root.nodes:
        warn_of_void(read_file_of_waivers(text, path, found, notes), notes, today)
        return
    playbook = read_playbook(text, path, found, notes)
    if playbook is not None:
        warn_of_void(playbook.waivers, notes, today)


# --- check files --------------------------------------------------------------------------------


def _lint_check(path: Path, found: Sequence[FoundCheck], cwd: Path, notes: Notes) -> None:
    module = _parsed(_text(path, cwd), str(path))
    start = Position(str(path), 1)
    layer = (cwd / path).resolve().parent.name
    if layer not in [*Layer]:
        notes.error(start, no_layer(cwd / path), "layer")
        return
    one = _loaded(cwd / path, Layer(layer), found)
    reason = _why_broken(one.check)
    if reason:
        notes.errors.add(Refused(*_placed(reason, one.path, path), "check").problem)
        return
    missing = [word for word in ("Why:", "Reads:") if word not in one.doc]
    if missing:
        notes.error(start, f"the docstring has no {' and no '.join(missing)}", "check-doc")
    at = _place_of_check(module, str(path))
    _lint_id(one, at, notes)
    for name, words in _all_words(one.check):
        for language, said in (("en", words.en), ("zh", words.zh)):
            if not said.strip():
                notes.error(at, f"{name}: nothing in {language!r}", "check-words")
    _lint_causes(one.check.causes, at, notes)
    _lint_places(one.check, module, at, notes)
    _lint_needs(one.check, found, at, notes)


def _loaded(path: Path, layer: Layer, found: Sequence[FoundCheck]) -> FoundCheck:
    # A check that was found is not loaded again: its classes would exist twice.
    here = path.resolve()
    known = next((one for one in found if one.path.resolve() == here), None)
    return known or discover.load(path, layer)


def _why_broken(check: AnyCheck) -> str:
    """Why the file could not be loaded: then ``discover`` put a check there that says so."""
    if check.judge.__module__ != discover.__name__:
        return ""
    try:
        check.judge(Nothing(), Machine(""), Nothing(), Nothing())
    except CheckBroken as broken:
        return broken.reason
    return ""


def _placed(reason: str, loaded: Path, path: Path) -> tuple[Position, str]:
    """The line of the ``loaded`` file that a reason names, shown as in ``path``; and the rest."""
    file = re.escape(str(loaded))
    text = reason.removeprefix("the check cannot be loaded: ")
    text = re.sub(rf"^{file}: ", "", text)
    match = re.search(rf" \({file}(?::(\d+))?\)$", text)
    if match is None:
        return Position(str(path), 1), text
    return Position(str(path), int(match[1] or 1)), text[: match.start()]


def _parsed(text: str, path: str) -> ast.Module:
    """The file's syntax tree. Raises ``Refused``."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        at = Position(path, error.lineno or 1, error.offset or 1)
        raise Refused(at, f"SyntaxError: {error.msg}", "check") from error
    except ValueError as error:
        # Python before 3.11.4, for a NUL in it.
        raise Refused(Position(path, 1), f"SyntaxError: {error}", "check") from error


def _place_of_check(module: ast.Module, path: str) -> Position:
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == "CHECK" for each in targets):
            return Position(path, node.lineno, node.col_offset + 1)
    return Position(path, 1)


def _all_words(check: AnyCheck) -> Iterator[tuple[str, Words]]:
    yield "title", check.title
    for cause in check.causes:
        yield f"cause {cause.slug}, title", cause.title
        yield f"cause {cause.slug}, meaning", cause.meaning
        for number, remedy in enumerate(cause.remedies, 1):
            yield f"cause {cause.slug}, remedy {number}, effect", remedy.effect
            yield f"cause {cause.slug}, remedy {number}, precondition", remedy.precondition


def _lint_causes(causes: Sequence[Cause], at: Position, notes: Notes) -> None:
    seen: set[str] = set()
    for cause in causes:
        if not _SLUG.fullmatch(cause.slug):
            what = f"cause {quoted(cause.slug)} is not lower-case words with hyphens"
            notes.error(at, what, "check-cause")
        if cause.slug in seen:
            notes.error(at, f"cause {quoted(cause.slug)} twice", "check-cause")
        if not cause.remedies:
            notes.error(at, f"cause {quoted(cause.slug)} has no remedy", "check-cause")
        seen.add(cause.slug)


def _lint_id(one: FoundCheck, at: Position, notes: Notes) -> None:
    named = id_of(one.check.layer, one.path)
    if one.id != named:
        what = f"its id {quoted(one.id)} is not the file's name, which says {quoted(named)}"
        notes.error(at, what, "check-id")


def _lint_places(check: AnyCheck, module: ast.Module, at: Position, notes: Notes) -> None:
    """A place that nothing can fill: a typing error would show only once something is wrong."""
    for reading in readings_of(check.seen).values():
        for reader in reading.reader.readers:
            used = {name for each in reader.commands for name in IN_BRACES.findall(str(each.argv))}
            for name in sorted(each for each in used if not hasattr(reader.per, each)):
                hint = near(name, [each.name for each in fields(reader.per)])
                what = f"reader {reader.tool}: a {reader.per.__name__.lower()} has no {name}{hint}"
                notes.error(at, what, "check-place")
    own = _texts_in(module)
    given = {each for part in (module, *_helpers(module)) for each in _texts_in(part)}
    given = {each for each in given if each.isidentifier()}
    for cause in dict.fromkeys((*check.causes, *(trait.cause for trait in check.peers))):
        if cause.slug not in own:
            continue  # made elsewhere, and so may be what fills it
        for place in dict.fromkeys(
            name for remedy in cause.remedies for name in IN_BRACES.findall(remedy.command)
        ):
            if place not in given:
                hint = near(place, given)
                what = f"cause {cause.slug}: nothing in the file fills {{{place}}}{hint}"
                notes.error(at, what, "check-place")


def _helpers(module: ast.Module) -> Iterator[ast.Module]:
    """The modules of commcheck that may fill places for a check; the vocabulary fills none."""
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("commcheck."):
            spec = find_spec(str(node.module))
            if node.module not in _VOCABULARY and spec is not None and spec.origin is not None:
                yield ast.parse(Path(spec.origin).read_bytes())


def _texts_in(module: ast.Module) -> frozenset[str]:
    """What a file can fill places by: named arguments, keys of mappings, fields of classes."""
    names: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.keyword(arg=str(name)) | ast.Constant(value=str(name)):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return frozenset(names)


def _lint_needs(check: AnyCheck, found: Sequence[FoundCheck], at: Position, notes: Notes) -> None:
    known = {one.id for one in found if one.check.layer is check.layer} - {check.id}
    for need in check.needs:
        if need not in known:
            hint = near(need, known)
            what = f"needs {quoted(need)}, which is no other check of its layer{hint}"
            notes.error(at, what, "check-needs")
