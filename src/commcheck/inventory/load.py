"""An inventory from its sources: what is read, in which order, and what is beside it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from commcheck.errors import InventoryError, Position
from commcheck.inventory import (
    dynamic,
    hostlist,
    ini_source,
    json_source,
    merge,
    selected,
    slurm,
    yaml_source,
)
from commcheck.inventory.declared import (
    COMMAND_LINE,
    AddHost,
    Declared,
    Notes,
    Problem,
    Refused,
    Setting,
    Statement,
    add_hosts,
    quoted,
)
from commcheck.inventory.merge import VariableFiles
from commcheck.inventory.ranges import expand, split_port
from commcheck.inventory.reader import Reader
from commcheck.inventory.tree import Tree
from commcheck.lazy import dataclass, regex
from commcheck.model import Host

_YAML: Final = (".yml", ".yaml", ".json")
_VAULT: Final = "$ANSIBLE_VAULT;"
_YAML_LINE: Final = regex(r"""---|%YAML|\{|(?:"[^"]*"|'[^']*'|[^\s:=\[#]+)\s*:(?:\s|$)""")


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory, read: hosts in Ansible's order, and every group's hosts in that order.

    ``groups`` holds "all" and "ungrouped" too. ``warnings`` are complete lines. ``digest``: the
    first 12 hex digits of the SHA-256 over all bytes that were read.
    """

    hosts: tuple[Host, ...]
    groups: Mapping[str, tuple[str, ...]]
    warnings: tuple[str, ...]
    sources: tuple[str, ...]
    digest: str


def load(
    sources: Sequence[str], *, cwd: Path, environment: Mapping[str, str] = os.environ
) -> Inventory:
    """Read inventories and merge them in the order given.

    A source is a YAML or INI file, a folder, an inline list (``gpu-01,gpu-[03-07],``), ``exec:CMD``
    whose output is a dynamic inventory, ``slurm:PARTITION`` or ``slurm:gpu-[01-16]``, or an
    executable or plugin file, which is read by ``ansible-inventory``. A group that names a label
    of Kubernetes gets the pods or nodes that have it now. ``environment``: what templates may ask.

    Raises ``InventoryError`` with complete lines.
    """
    if not sources or not all(source.strip() for source in sources):
        raise InventoryError("no inventory: name one with -i, or give hosts as -i gpu-01,gpu-02,")
    reader = Reader(cwd)
    tree_notes = Notes()
    tree = Tree(tree_notes)
    for declared in _declared(reader, [source.strip() for source in sources], tree):
        reader.take(declared.notes)
        tree.apply(declared.statements)
    reader.take(tree_notes)
    reader.raise_errors()
    tree.finish()
    files = VariableFiles()
    for folder in dict.fromkeys(reader.beside):
        _read_variable_files(reader, folder, "group_vars", list(tree.groups), files.groups)
    reader.raise_errors()
    if found := selected.statements(tree, files, tree_notes, environment):
        reader.add("\n".join(each.host for each in found if isinstance(each, AddHost)).encode())
        tree.apply(found)
        tree.finish()
    for folder in dict.fromkeys(reader.beside):
        _read_variable_files(reader, folder, "host_vars", list(tree.hosts), files.hosts)
    reader.raise_errors()
    around = merge.Surroundings(environment, reader.sources())
    hosts = merge.hosts(tree, files, tree_notes, around)
    reader.take(tree_notes)
    reader.raise_errors()
    if not hosts:
        raise InventoryError(
            f"{', '.join(sources)}: error: there is no host in the inventory [no-host]"
        )
    groups = {name: tree.hosts_of(name) for name in tree.groups}
    warnings = (*reader.warning_lines(), *_left_aside(reader, cwd))
    return Inventory(hosts, groups, warnings, tuple(sources), reader.digest())


def starts_program(sources: Sequence[str], *, cwd: Path) -> bool:
    """Whether a source is a program's answer: ``exec:``, Slurm, or what only Ansible can read.

    Raises ``InventoryError`` for a path that there is not.
    """
    reader = Reader(cwd)
    return any(
        any(map(reader.is_foreign, reader.files(source)))
        if _is_path(source, cwd)
        else source.startswith(("exec:", slurm.PREFIX))
        for source in sources
    )


# --- sources to statements ----------------------------------------------------------------------


def _declared(reader: Reader, sources: list[str], tree: Tree) -> Iterable[Declared]:
    """Every source's statements, in order; the tree is asked for the groups known so far."""
    paths = [source for source in sources if _is_path(source, reader.cwd)]
    files = {source: reader.files(source) for source in paths}
    foreign = any(reader.is_foreign(path) for group in files.values() for path in group)
    for source in sources:
        if source not in files:
            yield from _without_file(reader, source)
        elif foreign:
            # Plugins such as "constructed" look at what the other files say: one call for all.
            if source == paths[0]:
                yield _parse_json(
                    reader, dynamic.by_ansible(paths, reader.cwd), "ansible-inventory"
                )
        else:
            reader.beside.append(source if reader.is_folder(source) else _parent(source))
            for path in files[source]:
                yield _parse_file(reader, path, tree, alone=path == source)


def _is_path(source: str, cwd: Path) -> bool:
    if source.startswith(("exec:", slurm.PREFIX)):
        return False
    return "," not in source or os.path.lexists(cwd / source)


def _parent(source: str) -> str:
    return os.path.dirname(source) or "."  # noqa: PTH120 - keeps the words the operator wrote


def _without_file(reader: Reader, source: str) -> Iterable[Declared]:
    if source.startswith("exec:"):
        command = source.removeprefix("exec:")
        yield _parse_json(reader, dynamic.by_command(command, reader.cwd), source)
    elif source.startswith(slurm.PREFIX):
        answer = dynamic.by_command(slurm.COMMAND, reader.cwd, f"{source} (sinfo)")
        found = slurm.declared(answer.decode(errors="replace"), source)
        # Not the answer itself: a node that takes up a job is still the same inventory.
        reader.add(repr(found.statements).encode())
        yield found
    else:
        reader.add(source.encode(errors="surrogateescape"))
        yield _inline(source)


def _parse_json(reader: Reader, answer: bytes, name: str) -> Declared:
    try:
        return json_source.parse(reader.text(answer, name), name)
    except Refused as refused:
        return Declared((), Notes(errors={refused.problem}))


def _inline(source: str) -> Declared:
    notes = Notes()
    statements: list[Statement] = []
    for word in filter(None, map(str.strip, hostlist.COMMA.split(source))):
        pattern, port = split_port(word)
        read = hostlist.expand if hostlist.is_folded(pattern) else expand
        try:
            add_hosts(statements, read(pattern), "ungrouped", COMMAND_LINE, port)
        except ValueError as error:
            notes.error(COMMAND_LINE, f"host {quoted(pattern)} {error}", "range")
    return Declared(tuple(statements), notes)


def _parse_file(reader: Reader, path: str, tree: Tree, *, alone: bool) -> Declared:
    """A file's statements. ``alone``: it was named itself, so it must not be empty."""
    try:
        text = reader.read(path)
        if text.startswith(_VAULT):
            raise Refused(
                Position(path, 1),
                "the inventory is encrypted; decrypt it first: ansible-vault view",
                "vault",
            )
        if not text.strip():
            empty = Problem(Position(path, 1), "the inventory is empty", "empty")
            return Declared((), Notes(errors={empty}) if alone else Notes(warnings={empty}))
    except Refused as refused:
        return Declared((), Notes(errors={refused.problem}))
    ending = Path(path).suffix
    if ending in _YAML or (ending != ".ini" and _looks_like_yaml(text)):
        return yaml_source.parse(text, path)
    return ini_source.parse(text, path, tree.groups)


def _looks_like_yaml(text: str) -> bool:
    """Decides about a file without a telling ending, by the first line that says anything."""
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    return _YAML_LINE.match(first) is not None


# --- group_vars and host_vars -------------------------------------------------------------------


def _read_variable_files(
    reader: Reader,
    folder: str,
    kind: str,
    names: Sequence[str],
    into: dict[str, dict[str, Setting]],
) -> None:
    base = kind if folder == "." else f"{folder.rstrip('/')}/{kind}"
    entries = reader.entries(base)
    known = frozenset(entries)
    for name in names:
        for path in _files_of(reader, base, name, known):
            into.setdefault(name, {}).update(_settings(reader, path))
    if kind == "group_vars":
        _note_misspelt(reader, base, entries, names)


def _files_of(reader: Reader, base: str, name: str, entries: frozenset[str]) -> list[str]:
    """The files of a group or host: only the first of name, .yml, .yaml and .json counts."""
    found = [name + ending for ending in ("", *_YAML) if name + ending in entries]
    if not found:
        return []
    for other in found[1:]:
        reader.notes.warning(
            Position(f"{base}/{other}", 1),
            f"not read, as in Ansible: {base}/{found[0]} comes first",
            "shadowed",
        )
    return reader.variable_files(f"{base}/{found[0]}")


def _settings(reader: Reader, path: str) -> dict[str, Setting]:
    try:
        text = reader.read(path)
    except Refused as refused:
        reader.notes.errors.add(refused.problem)
        return {}
    if text.startswith(_VAULT):
        reader.notes.warning(Position(path, 1), "encrypted, its variables are not read", "vault")
        return {}
    settings, notes = yaml_source.parse_variables(text, path)
    reader.take(notes)
    return settings


def _note_misspelt(
    reader: Reader, base: str, entries: Iterable[str], groups: Sequence[str]
) -> None:
    # Only where a group has nearly that name: several inventories may share one folder.
    for entry in entries:
        stem = entry.removesuffix(".yml").removesuffix(".yaml").removesuffix(".json")
        near = difflib.get_close_matches(stem, groups, 1, cutoff=0.8)
        if stem not in groups and near and not entry.startswith("."):
            text = f"there is no group {quoted(stem)}; did you mean {near[0]}?"
            reader.notes.warning(Position(f"{base}/{entry}", 1), text, "group")


def _left_aside(reader: Reader, cwd: Path) -> Iterable[str]:
    beside = {(cwd / folder).resolve() for folder in reader.beside}
    if not beside or cwd.resolve() in beside:
        return
    for kind in ("group_vars", "host_vars"):
        if (cwd / kind).is_dir():
            yield (
                f"{kind}:1:1: warning: Ansible would read this folder of the current directory as "
                "well; commcheck reads only the one beside the inventory [group-vars]"
            )
