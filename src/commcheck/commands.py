"""The commands that make or render a run. ``cli`` imports this only when one is called."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from commcheck import __version__
from commcheck.collect.base import Visitor
from commcheck.console import say
from commcheck.errors import UsageError
from commcheck.inventory.endpoint import endpoint
from commcheck.lookup import readers_of
from commcheck.model import Host
from commcheck.report import text
from commcheck.report.document import document
from commcheck.report.folder import RunFolder
from commcheck.report.record import Record, RunInfo
from commcheck.run import Choice, Climber, Prepared, forks_of, new_run_id, prepare
from commcheck.stop import Stop

# --- run ----------------------------------------------------------------------------------------


def run(
    *,
    inventory: tuple[str, ...],
    user: str,
    key_file: tuple[Path, ...],
    agent: bool,
    become: bool,
    host_keys: str | None,
    known_hosts: tuple[Path, ...],
    ssh_config: Path | None,
    connect_timeout: float,
    host_deadline: float,
    **options: Any,
) -> int:
    """Climb on the hosts of an inventory. ``options``: those of ``climb``."""
    if not inventory:
        raise UsageError("error: no inventory: give one with -i FILE, or names with -i gpu-01,")
    ssh = {
        "host_keys": host_keys or "",
        "known_hosts": known_hosts,
        "ssh_config": ssh_config,
        "key_files": key_file,
        "user": user,
        "agent": agent,
        "become": become,
        "connect_timeout_s": connect_timeout,
        "host_deadline_s": host_deadline,
    }
    return climb(
        inventory=inventory,
        visitors=lambda run_id, note: _visitors(run_id, note, ssh),
        reach=ssh,
        host_deadline_s=host_deadline,
        **options,
    )


Note = Callable[[str], None]


def climb(
    *,
    inventory: tuple[str, ...],
    visitors: Callable[[str, Note], Callable[[Host], Visitor]],
    reach: Mapping[str, object],
    host_deadline_s: float,
    playbook: Path | None,
    limit: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    check_folders: tuple[Path, ...],
    waivers: tuple[Path, ...],
    allow: str,
    dry_run: bool,
    out: Path,
    junit: Path | None,
    strict: bool,
    form: str,
    color: str,
    no_progress: bool,
    quiet: bool,
    forks: int,
    deadline: float,
    inventory_from: Path | None = None,
) -> int:
    """Prepare, climb, report. The exit code is the record's, or that of the signal.

    ``visitors``: from the run's id and a sink for notes to the visitor of each host. ``reach``:
    what the report says of the way to the hosts. ``inventory_from``: the folder from which the
    inventory's name counts, where that is not the current one.
    """
    choice = Choice(
        inventory=inventory,
        inventory_from=inventory_from,
        playbook=playbook,
        limit=limit,
        only=only,
        skip=skip,
        check_folders=check_folders,
        waivers=waivers,
        allow=frozenset(filter(None, allow.split(","))),
    )
    prepared = prepare(choice, cwd=Path.cwd())
    for plan in prepared.climb.hosts:
        endpoint(plan.host)  # a wrong connection variable stops us before any host is contacted
    forks = forks_of(prepared.playbook, forks)
    if dry_run:
        say(dry_run_text(prepared))
        return 0
    now = datetime.now(UTC)
    info = RunInfo(
        run_id=new_run_id(now),
        started=now,
        version=__version__,
        playbook=prepared.playbook.name,
        inventory=prepared.inventory.sources,
        inventory_digest=prepared.inventory.digest,
        limit=limit,
        settings=_settings(forks=forks, deadline=deadline, **reach),
        strict=strict,
    )
    folder = RunFolder.create(out, info.run_id)
    if junit:
        folder.clear_junit(junit)
    progress = _progress(no_progress=no_progress, quiet=quiet)
    climber = Climber(prepared, info, folder, progress)
    stop = Stop(climber.note)
    visitor_for = visitors(info.run_id, climber.note)
    record = climber.climb(
        visitor_for, stop, forks=forks, deadline_s=deadline, host_deadline_s=host_deadline_s
    )
    _deliver(record, folder, junit=junit, form=form, color=color)
    return stop.exit_code or record.exit_code


def _settings(**given: Any) -> dict[str, str]:
    """The options in force, for the report."""
    return {name: str(value) for name, value in given.items() if value not in (None, (), False, "")}


def _progress(*, no_progress: bool, quiet: bool) -> Any:
    from commcheck.report.progress import progress_on

    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not no_progress
    return progress_on(sys.stderr, live=live, quiet=quiet)


def _visitors(run_id: str, note: Note, ssh: Mapping[str, Any]) -> Callable[[Host], Visitor]:
    """The visitor of a host: SSH, or this machine where the inventory says so."""
    from commcheck.collect.local import LocalVisitor
    from commcheck.collect.session import Session
    from commcheck.collect.ssh import SshSettings, SshVisitor

    remote = SshVisitor(SshSettings(run_id=run_id, note=note, **ssh))
    local = LocalVisitor(
        lambda host: Session(
            mark=f"{run_id}.{secrets.token_hex(5)}",
            become=ssh["become"] or endpoint(host).become,
            path=endpoint(host).path,
            deadline_s=ssh["host_deadline_s"],
        )
    )
    return lambda host: local if endpoint(host).kind == "local" else remote


def _deliver(
    record: Record, folder: RunFolder, *, junit: Path | None, form: str, color: str
) -> None:
    """Write every report into the run folder, and the one that was asked for to stdout."""
    folder.render(record)
    if junit:
        folder.copy_junit(junit)
    if form == "json":
        say(json.dumps(document(record), ensure_ascii=False, indent=1))
        return
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    colored = color == "always" or (
        color == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    )
    width = shutil.get_terminal_size((120, 24)).columns
    say(text.render(record, folder.path, unicode=unicode, color=colored, width=width))


def dry_run_text(prepared: Prepared) -> str:
    """What would be done: hosts in order, how each is reached, checks, command templates."""
    lines = [*prepared.warnings, f"playbook {prepared.playbook.name}, contacts nobody:"]
    for plan in prepared.climb.hosts:
        to = endpoint(plan.host)
        via = "".join(f" via {hop.address}" for hop in to.jumps)
        who = f"{to.user}@" if to.user else ""
        port = f":{to.port}" if to.port else ""
        lines.append(f"{plan.host.name}  {to.kind} {who}{to.address}{port}{via}")
        lines.extend(f"    {each.check.id}" for each in plan.asked)
    lines.append("commands, once for each subject:")
    commands: dict[str, None] = {}
    for one in prepared.climb.checks:
        for reader in readers_of([one]):
            commands.update(
                (f"    {'sudo -n ' if command.root else ''}{command}", None)
                for command in reader.commands
            )
    return "\n".join([*lines, *commands])


# --- report -------------------------------------------------------------------------------------


def report(*, run_name: str, out: Path, junit: Path | None, form: str, color: str) -> int:
    """Render a run again from its events. The exit code is what the run's was, or should be."""
    folder = RunFolder.open(run_name, out)
    record = folder.record()
    if junit:
        folder.clear_junit(junit)
    _deliver(record, folder, junit=junit, form=form, color=color)
    return record.exit_code
