"""The commands that look things up: checks, hosts, tools, causes, the facts of a saved output."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from commcheck import formats
from commcheck.check import Reader, keys_of, limits_of, readings_of
from commcheck.command import Output
from commcheck.console import say
from commcheck.discover import FoundCheck, bundled_folder, discover
from commcheck.errors import Unjudgeable, UsageError
from commcheck.fields import near
from commcheck.files import read_rest, read_whole
from commcheck.inventory.endpoint import endpoint
from commcheck.inventory.load import load
from commcheck.inventory.patterns import select
from commcheck.model import Cause, Host
from commcheck.playbook import load as load_playbook
from commcheck.report.cleaning import decode
from commcheck.report.counts import many

_BYTES_MOST: Final = 256 << 20


def list_things(
    *,
    what: str,
    inventory: tuple[str, ...],
    limit: str,
    check_folders: tuple[Path, ...],
    form: str,
) -> int:
    """Checks, causes, hosts, plays, tools or faults, as a table or as JSON."""
    found = discover(check_folders, cwd=Path.cwd())
    if what == "hosts":
        rows = list(_hosts(inventory, limit))
    elif what == "tools":
        rows = [
            {"tool": tool, "commands": [str(command) for command in reader.commands]}
            for tool, reader in sorted(tools(found).items())
        ]
    elif what == "faults":
        rows = list(_faults())
    elif what == "personas":
        rows = list(_personas())
    elif what == "causes":
        rows = [
            {"cause": cause.slug, "check": one.id, "title": cause.title.en}
            for one in found
            for cause in one.check.causes
        ]
    elif what == "plays":
        rows = list(_plays(found))
    else:
        rows = [
            {
                "check": one.id,
                "title": one.check.title.en,
                "source": "bundled" if one.bundled else str(one.path),
                "overrides": str(one.overrides or ""),
            }
            for one in found
        ]
    if form == "json":
        say(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    for row in rows:
        cells = [_cell(value) for value in row.values()]
        say(f"{cells[0]:32} {'  '.join(cell for cell in cells[1:] if cell)}".rstrip())
    return 0


def _cell(value: Any) -> str:
    """A value of a table; a long list is in the JSON."""
    if not isinstance(value, list):
        return str(value)
    return " | ".join(value) if len(value) <= 6 else f"{len(value)} in all"


def _hosts(inventory: tuple[str, ...], limit: str) -> Iterable[dict[str, Any]]:
    if not inventory:
        raise UsageError("error: no inventory: give one with -i FILE, or names with -i gpu-01,")
    loaded = load(inventory, cwd=Path.cwd())
    hosts: Iterable[Host] = loaded.hosts
    if limit:
        hosts = select(loaded, limit, cwd=Path.cwd())
    for host in hosts:
        yield {"host": host.name, "address": endpoint(host).address, "groups": list(host.groups)}


def _plays(found: Sequence[FoundCheck]) -> Iterable[dict[str, Any]]:
    """Of the playbooks in ``./playbooks`` and the bundled ones."""
    folders = {path.resolve(): path for path in (Path("playbooks"), bundled_folder("playbooks"))}
    for folder in folders.values():
        for path in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
            for play in load_playbook(path, found).plays:
                yield {
                    "playbook": path.name,
                    "play": play.name,
                    "layer": play.layer.value,
                    "hosts": play.hosts,
                    "gate": play.gate.value,
                    "checks": [entry.check for entry in play.checks],
                }


def _personas() -> Iterable[dict[str, Any]]:
    from commcheck.demo.persona import known_personas

    for name, persona in known_personas().items():
        yield {"persona": name, "title": persona.title}


def _faults() -> Iterable[dict[str, Any]]:
    from commcheck.demo.fault import known_faults

    for name, fault in known_faults().items():
        yield {"fault": name, "check": fault.check, "title": fault.title}


def readers_of(found: Iterable[FoundCheck]) -> Iterable[Reader[Any]]:
    """Every reader that the checks use."""
    for one in found:
        for reading in readings_of(one.check.seen).values():
            yield from reading.reader.readers


def tools(found: Iterable[FoundCheck]) -> dict[str, Reader[Any]]:
    """The readers by the name of their tool.

    Beside those of the checks: every reader of the package, for outputs that people send in.
    """
    ours = {
        value.tool: value
        for each in pkgutil.iter_modules(formats.__path__)
        for value in vars(importlib.import_module(f"{formats.__name__}.{each.name}")).values()
        if isinstance(value, Reader)
    }
    return ours | {reader.tool: reader for reader in readers_of(found)}


def read(*, tool: str, files: tuple[str, ...], check_folders: tuple[Path, ...]) -> int:
    """The facts of saved outputs, as JSON on stdout; one line and exit 2 where unreadable."""
    known = tools(discover(check_folders, cwd=Path.cwd()))
    if tool not in known:
        raise UsageError(f"error: no tool {tool!r}{near(tool, known)}; see commcheck list tools")
    reader = known[tool]
    if len(files) != len(reader.commands):
        wanted = ", ".join(str(command) for command in reader.commands)
        raise UsageError(f"error: {tool} takes {many(len(reader.commands), 'file')}, of: {wanted}")
    outputs = [Output(decode(_bytes_of(name))) for name in files]
    try:
        facts = reader.read(*outputs)
    except Unjudgeable as error:
        raise UsageError(
            f"{', '.join(files)}: error: {error.reason} [{error.type_name}]"
        ) from error
    say(json.dumps({"tool": tool, "facts": plain(facts)}, ensure_ascii=False, indent=1))
    return 0


def _bytes_of(name: str) -> bytes:
    try:
        if name == "-":
            return read_rest(sys.stdin.buffer, _BYTES_MOST)
        return read_whole(name, _BYTES_MOST)
    except OSError as error:
        raise UsageError(f"{name}: error: cannot be read: {error.strerror}") from error


def plain(facts: Any) -> Any:
    """A reading as JSON can hold it; what JSON lacks, as -inf dBm of a dark lane, becomes text."""
    if dataclasses.is_dataclass(facts) and not isinstance(facts, type):
        return {each.name: plain(getattr(facts, each.name)) for each in dataclasses.fields(facts)}
    if isinstance(facts, dict):
        return {str(key): plain(value) for key, value in facts.items()}
    if isinstance(facts, set | frozenset):
        return sorted(plain(each) for each in facts)
    if isinstance(facts, list | tuple):
        return [plain(each) for each in facts]
    if isinstance(facts, float):
        return facts if math.isfinite(facts) else str(facts)
    return facts if isinstance(facts, str | int | bool) or facts is None else str(facts)


def lint(*, paths: tuple[Path, ...], check_folders: tuple[Path, ...]) -> int:
    """What is wrong with files, a line each on stdout; 2 where there is an error."""
    from commcheck.lint import lint as look_at

    cwd = Path.cwd()
    today = datetime.now(UTC).date()
    notes = look_at(paths, discover(check_folders, cwd=cwd), cwd=cwd, today=today)
    for problem in sorted(notes.errors):
        say(problem.line())
    for problem in sorted(notes.warnings):
        say(problem.line("warning"))
    return 2 if notes.errors else 0


def schema(*, what: str, check_folders: tuple[Path, ...]) -> int:
    """The JSON Schema of a kind of file on stdout."""
    from commcheck.schema import playbook_schema, waivers_schema

    make = playbook_schema if what == "playbook" else waivers_schema
    say(json.dumps(make(discover(check_folders, cwd=Path.cwd())), ensure_ascii=False, indent=1))
    return 0


def explain(*, name: str, check_folders: tuple[Path, ...]) -> int:
    """What a check proves, or what a cause means and what mends it."""
    found = discover(check_folders, cwd=Path.cwd())
    checks = {one.id: one for one in found}
    causes = {cause.slug: (one, cause) for one in found for cause in one.check.causes}
    if name in checks:
        say("\n".join(_explain_check(checks[name])))
    elif name in causes:
        one, cause = causes[name]
        say("\n".join([f"a cause of {one.id}", *_explain_cause(cause)]))
    else:
        raise UsageError(f"error: no check or cause {name!r}{near(name, [*checks, *causes])}")
    return 0


def _explain_check(one: FoundCheck) -> list[str]:
    check = one.check
    lines = [f"{check.id}: {check.title.en}", "", one.doc, ""]
    for reader in readers_of([one]):
        lines.extend(f"command:    {command}" for command in reader.commands)
    lines.extend(f"needs:      {need}" for need in check.needs)
    for key in keys_of(check.want).values():
        lines.append(f"expects:    {key.name} {key.meaning}".rstrip())
        lines.extend(
            f"            default {value} {key.unit} {f'on {on} ' if on else ''}({key.source})"
            for on, value in key.defaults.items()
        )
    lines.extend(
        f"threshold:  {spec.name} = {spec.default} {spec.unit} ({spec.source})"
        for spec in limits_of(check.limits).values()
    )
    for cause in check.causes:
        lines.extend(["", *_explain_cause(cause)])
    # The runbook that comes with commcheck knows no check of a site; that of a run does.
    source = "bundled; " if one.bundled else f"{one.path}; in a run's folder: "
    return [*lines, "", f"from {source}runbook.md#{check.id.replace('.', '-')}"]


def _explain_cause(cause: Cause) -> list[str]:
    lines = [f"cause {cause.slug}: {cause.title.en}", f"  {cause.meaning.en}"]
    for remedy in cause.remedies:
        lines.append(f"  remedy ({remedy.who}): {remedy.command or remedy.effect.en}")
        if remedy.command:
            lines.append(f"    effect: {remedy.effect.en}")
        lines.append(f"    before: {remedy.precondition.en}")
    return lines
