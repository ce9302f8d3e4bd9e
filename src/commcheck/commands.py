"""The commands that make or render a run. ``cli`` imports this only when one is called."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from commcheck import loads
from commcheck.attempts import Before, begin
from commcheck.attempts import before as earlier_run
from commcheck.collect.base import Visitor
from commcheck.collect.lifetime import in_background
from commcheck.collect.limits import room_for
from commcheck.collector import spare
from commcheck.console import say
from commcheck.crew import Crew, Way
from commcheck.deliver import Delivery, progress
from commcheck.errors import UsageError
from commcheck.executors import executor_of
from commcheck.inventory.endpoint import endpoint
from commcheck.lookup import readers_of
from commcheck.model import Host
from commcheck.prepare import Choice, Prepared, forks_of, prepare
from commcheck.reach import settings_of, words_of
from commcheck.report.cleaning import one_line
from commcheck.report.find import NotBegun
from commcheck.report.folder import RunFolder
from commcheck.run import Climber
from commcheck.stop import Stop
from commcheck.workers import workers_for

Note = Callable[[str], None]
Reach = Mapping[str, Any]
Visitors = Callable[
    [str, Note, Collection[str], Reach], AbstractContextManager[Callable[[Host], Visitor]]
]
"""From the run's id, a sink for notes, what is allowed and how hosts are reached to the visitor of
each host, until the run's end."""

_CLOSE_S: Final = 5.0
"""How long jump hosts may take to hear that the run is over."""

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
    executor: str,
    **options: Any,
) -> int:
    """Climb on the hosts of an inventory. ``options``: those of ``climb``."""
    if options["junit"] and not options["dry_run"]:
        # First of all: a run that is refused must not leave the former one's green results.
        RunFolder.clear_junit(options["junit"])
    if not inventory and not (options["resume"] or options["again"]):
        raise UsageError("error: no inventory: give one with -i FILE, or names with -i gpu-01,")
    if executor and options["workers"] > 1:
        raise UsageError("error: --executor and --workers exclude each other [usage]")
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
    with executor_of("" if options["dry_run"] else executor) as at_work:
        return climb(
            inventory=inventory,
            visitors=_visitors,
            reach=ssh,
            host_deadline_s=host_deadline,
            executor=executor,
            at_work=at_work,
            **options,
        )


def climb(
    *,
    inventory: tuple[str, ...],
    visitors: Visitors,
    reach: Reach,
    host_deadline_s: float,
    playbook: Path | None,
    limit: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    check_folders: tuple[Path, ...],
    waivers: tuple[Path, ...],
    allow: str,
    shard: tuple[int, int] | None,
    dry_run: bool,
    resume: str,
    again: str,
    baseline: str,
    strict: bool,
    no_progress: bool,
    quiet: bool,
    forks: int,
    deadline: float,
    workers: int = 1,
    executor: str = "",
    at_work: Executor | None = None,
    inventory_from: Path | None = None,
    sources: Mapping[str, str],
    **where: Any,
) -> int:
    """Prepare, climb, report. The exit code is the record's, or that of the signal.

    ``reach``: what the report says of the way to the hosts. ``at_work``: what visits them, called
    ``executor``; None: this process, or ``workers``, 0 for as many as fit. ``inventory_from``: the
    folder from which the inventory's name counts, where that is not the current one. ``sources``:
    settings that are no defaults and where each was set. ``where``: the fields of ``Delivery``.
    """
    delivery = Delivery(**where)
    before, warning = _earlier(resume, again, delivery.out, inventory, hold=not dry_run)
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
        shard=shard,
        reach=words_of(reach),
    )
    if before is not None:
        choice = choice.filled(before.record.info.choice)
        reach = {**reach, **settings_of(choice.reach)}
    prepared = prepare(choice, cwd=Path.cwd())
    stored = before.stored(prepared, choice, strict=strict) if before is not None else None
    for plan in prepared.climb.hosts:
        endpoint(plan.host)  # a wrong connection variable stops us before any host is contacted
    wanted = forks_of(prepared.playbook, forks)
    forks = room_for(wanted)
    workers = 1 if at_work is not None else workers_for(len(prepared.climb.hosts), forks, workers)
    if dry_run:
        say(dry_run_text(prepared, sources, stored.ended if stored else ()))
        return 0
    attempt = begin(
        prepared,
        choice,
        {
            "forks": forks,
            "workers": workers if workers > 1 else "",
            "executor": executor,
            "deadline": deadline,
            **reach,
            **(before.settings if before else {}),
        },
        delivery,
        strict=strict,
        baseline=baseline or again,
        resumes=before if resume else None,
    )
    shown = progress(no_progress=no_progress, quiet=quiet)
    if before is not None and before.is_over:
        shown.note(f"{before.run_id} had ended by itself: nothing is left to ask")
        return attempt.finish(before.record, delivery)
    climber = Climber(prepared, attempt.info, attempt.folder, shown, stored)
    for told in filter(None, (warning, attempt.note)):
        climber.note(told)
    if forks < wanted:
        climber.note(
            f"{forks} hosts at a time, not {wanted}: more file descriptors are not allowed "
            "here (ulimit -n)"
        )
    if before is not None and stored is not None:
        climber.note(before.note(prepared, stored))
    stop = Stop(climber.note)
    crew = None
    if at_work is not None:
        way = Way.of(attempt.info.run_id, reach, prepared.found, check_folders, host_deadline_s + 3)
        crew = Crew(executor, at_work, way)
    if any(endpoint(plan.host).kind == "ssh" for plan in prepared.climb.hosts):
        from commcheck.collect.ssh import warm

        warm()
    with spare(), visitors(attempt.info.run_id, climber.note, choice.allow, reach) as visitor_for:
        record = climber.climb(
            visitor_for,
            stop,
            forks=forks,
            deadline_s=deadline,
            host_deadline_s=host_deadline_s,
            workers=workers,
            crew=crew,
        )
    code = attempt.finish(record, delivery)
    return stop.exit_code or code


def _earlier(
    resume: str, again: str, out: Path, inventory: tuple[str, ...], *, hold: bool
) -> tuple[Before | None, str]:
    """The run to go on from, if any, and what the operator should know about it."""
    try:
        return earlier_run(resume, again, out, hold=hold), ""
    except NotBegun as error:
        if not (resume and inventory):
            raise
        # Whoever goes on after any kill must not have to look how far it came.
        return None, f"{error}; this is a new run"


@contextmanager
def _visitors(
    run_id: str, note: Note, allow: Collection[str], ssh: Reach
) -> Iterator[Callable[[Host], Visitor]]:
    """The visitor of a host: SSH, or kubectl or this machine where the inventory says so."""
    from commcheck.collect.kubectl import KubectlVisitor
    from commcheck.collect.local import LocalVisitor
    from commcheck.collect.session import Session
    from commcheck.collect.ssh import SshSettings, SshVisitor

    def session_of(host: Host) -> Session:
        to = endpoint(host)
        return Session(
            mark=f"{run_id}.{secrets.token_hex(5)}",
            become=ssh["become"] or to.become,
            path=to.path,
            deadline_s=ssh["host_deadline_s"],
        )

    remote = SshVisitor(SshSettings(run_id=run_id, note=note, **ssh))
    by_kind: Mapping[str, Visitor] = {
        "ssh": remote,
        "local": LocalVisitor(session_of),
        "kubectl": KubectlVisitor(session_of, may_debug="debug-pod" in allow, note=note),
    }
    try:
        yield lambda host: by_kind[endpoint(host).kind]
    finally:
        # A jump host that has gone quiet must not keep the reports from being written.
        if closing := in_background(remote.close, "close"):
            closing.join(_CLOSE_S)


def dry_run_text(
    prepared: Prepared, sources: Mapping[str, str], stored: Collection[str] = ()
) -> str:
    """What would be done: hosts in order, how each is reached, checks, command templates.

    ``sources``: settings and where each comes from. ``stored``: hosts that would not be asked.
    """
    lines = [*prepared.warnings]
    lines.extend(f"{setting}   from {source}" for setting, source in sources.items())
    lines.append(f"playbook {prepared.playbook.name}, contacts nobody:")
    for plan in prepared.climb.hosts:
        if plan.host.name in stored:
            lines.append(f"{plan.host.name}  not asked: it answers from what is stored")
            continue
        to = endpoint(plan.host)
        via = "".join(f" via {hop.address}" for hop in to.jumps or ())
        if to.proxy_command and not to.jumps:
            via = f" via ProxyCommand {one_line(to.proxy_command)}"
        who = f"{to.user}@" if to.user else ""
        port = f":{to.port}" if to.port else ""
        lines.append(f"{plan.host.name}  {to.kind} {who}{to.address}{port}{via}")
        lines.extend(f"    {each.check.id}" for each in plan.asked)
    lines.extend(loads.preview(prepared.climb.hosts))
    lines.append("commands, once for each subject:")
    commands: dict[str, None] = {}
    for one in prepared.climb.checks:
        for reader in readers_of([one]):
            commands.update(
                (f"    {'sudo -n ' if command.root else ''}{command}", None)
                for command in reader.commands
            )
    return "\n".join([*lines, *commands])
