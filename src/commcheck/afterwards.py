"""What can be done with runs that have ended, without asking any host."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from commcheck.attempts import begin
from commcheck.console import say, warn, within
from commcheck.deliver import Delivery, differences, load_document, look_of, progress
from commcheck.errors import RunFolderError
from commcheck.inventory import snapshot
from commcheck.prepare import Choice, prepare
from commcheck.report import changes as changed
from commcheck.report import changes_text
from commcheck.report.folder import RunFolder
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import Record
from commcheck.report.shapes import doubted
from commcheck.run import Climber
from commcheck.stop import Stop
from commcheck.stored import FramesOf, Stored, of_all, plan_differences

FORKS = 4
"""Hosts that are read from disk at a time; they are judged one after another anyway."""

HOST_S = 600.0


def report(*, run_name: str, **where: Any) -> int:
    """Render a run again from its events. The exit code says what is known of it: 0, 1 or 3."""
    delivery = Delivery(**where)
    delivery.clear()
    folder = RunFolder.open(run_name, delivery.out)
    if folder.is_held:
        warn(f"{folder.path.name}: this run is still going on: what is not judged yet may come")
    record = folder.record()
    with doubted([record]):
        delivery.deliver(record, folder)
        return record.judged_code  # the run was stopped, not this


def diff(*, old: str, new: str, out: Path, form: str, color: str) -> int:
    """What is different: 0 nothing worse, 1 something newly fails, 3 is newly unknown."""
    changes = differences(load_document(old, out), load_document(new, out))
    if form == "json":
        say(json.dumps(changed.to_json(changes), ensure_ascii=False, indent=1))
    else:
        look = look_of(color)
        page = "\n".join(changes_text.lines(changes, look))
        say(page if look.glyphs else within(page, "ascii"))
    return changes.exit_code


def judge(
    *,
    run_name: str,
    inventory: tuple[str, ...],
    playbook: Path | None,
    limit: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    check_folders: tuple[Path, ...],
    waivers: tuple[Path, ...],
    strict: bool,
    baseline: str,
    no_progress: bool,
    quiet: bool,
    **where: Any,
) -> int:
    """Judge a run again, with today's checks, into a run of its own. ``where``: of ``Delivery``."""
    delivery = Delivery(**where)
    delivery.clear()
    folder = RunFolder.open(run_name, delivery.out, of_hosts=True)
    record = folder.record()
    with doubted([record]):
        kept = snapshot.restore(folder.inventory()) if not inventory else None
        choice = Choice(
            inventory=inventory,
            playbook=playbook,
            only=only,
            skip=skip,
            check_folders=check_folders,
            waivers=waivers,
            recorded=kept,
            hosts=record.plan.hosts,
        ).filled(_without(record, "inventory", "limit", "shard"))
        return _judge(
            choice.limited(limit),
            dict.fromkeys(record.plan.hosts, record),
            folder.frames,
            delivery,
            settings={"judged": record.info.run_id},
            note=f"no host was asked: judged again from {_told(record)}",
            strict=strict,
            baseline=baseline,
            no_progress=no_progress,
            quiet=quiet,
        )


def merge(
    *,
    run_names: tuple[str, ...],
    strict: bool,
    baseline: str,
    no_progress: bool,
    quiet: bool,
    **where: Any,
) -> int:
    """Make one run of its shards, judged over the union. ``where``: of ``Delivery``.

    Raises ``RunFolderError`` unless they hold every host once and asked the same.
    """
    delivery = Delivery(**where)
    delivery.clear()
    folders = [RunFolder.open(name, delivery.out, of_hosts=True) for name in run_names]
    records = [folder.record() for folder in folders]
    with doubted(records):
        kept = folders[0].inventory()
        selected = snapshot.selected(kept)
        _refuse_unlike(records)
        _refuse_gaps(records, selected)
        at = {
            host: (folder, record)
            for folder, record in zip(folders, records, strict=True)
            for host in record.plan.hosts
        }
        first = records[0]
        choice = Choice(recorded=snapshot.restore(kept), hosts=selected)
        return _judge(
            choice.filled(_without(first, "inventory", "limit", "shard")),
            {host: record for host, (_, record) in at.items()},
            lambda host: at[host][0].frames(host),
            delivery,
            settings={"merged": ", ".join(each.info.run_id for each in records)},
            note=f"no host was asked: merged from {', '.join(map(_told, records))}",
            strict=strict or any(each.info.strict for each in records),
            baseline=baseline,
            no_progress=no_progress,
            quiet=quiet,
        )


def _judge(
    choice: Choice,
    records: Mapping[str, Record],
    frames_of: FramesOf,
    delivery: Delivery,
    *,
    settings: Mapping[str, str],
    note: str,
    strict: bool,
    baseline: str,
    no_progress: bool,
    quiet: bool,
) -> int:
    """Climb on what is stored, and on nothing else. ``records``: by host."""
    prepared = prepare(choice, cwd=Path.cwd())
    stored: Stored = of_all(records, frames_of)
    attempt = begin(prepared, choice, settings, delivery, strict=strict, baseline=baseline)
    shown = progress(no_progress=no_progress, quiet=quiet)
    climber = Climber(prepared, attempt.info, attempt.folder, shown, stored)
    for told in filter(None, (note, attempt.note)):
        climber.note(told)
    stop = Stop(climber.note)
    record = climber.climb(
        lambda _host: stored.visitor, stop, forks=FORKS, deadline_s=0.0, host_deadline_s=HOST_S
    )
    code = attempt.finish(record, delivery)
    return stop.exit_code or code


def _without(record: Record, *names: str) -> dict[str, tuple[str, ...]]:
    return {name: words for name, words in record.info.choice.items() if name not in names}


def _told(record: Record) -> str:
    """The run, which says when it was, and how it ended where that was not by itself."""
    return record.info.run_id + ("" if record.state == "complete" else f" ({record.state})")


# --- what may be merged -------------------------------------------------------------------------


def _refuse_unlike(records: Sequence[Record]) -> None:
    """Raise ``RunFolderError`` where the runs asked different things."""
    first = records[0]
    problems = [
        f"  {first.info.run_id} and {each.info.run_id}: {line}"
        for each in records[1:]
        for line in _unlike(first, each)
    ]
    if problems:
        raise RunFolderError("error: these runs are no shards of one [merge]", *problems)


def _unlike(one: Record, other: Record) -> Iterator[str]:
    for name, was, now in (
        ("playbook", one.info.playbook, other.info.playbook),
        ("inventory digest", one.info.inventory_digest, other.info.inventory_digest),
        ("limit", one.info.limit or "none", other.info.limit or "none"),
    ):
        if was != now:
            yield f"{name} {was}, and {now}"
    words = ("in the first", "in the second")
    yield from plan_differences(one.plan, other.plan, hosts=False, words=words)


def _refuse_gaps(records: Sequence[Record], selected: Sequence[str]) -> None:
    """Raise ``RunFolderError`` with the hosts that are in no run, or in several."""
    seen = Counter(host for record in records for host in record.plan.hosts)
    doubled = [host for host in seen if seen[host] > 1]
    missing = [host for host in selected if host not in seen]
    problems = []
    if doubled:
        where = [record.info.run_id for record in records if set(record.plan.hosts) & set(doubled)]
        problems.append(
            f"error: in several runs ({', '.join(where)}): {fold_hosts(doubled)} [doubled]"
        )
    if missing:
        problems.append(f"error: in none of the runs: {fold_hosts(missing)} [missing]")
    if problems:
        raise RunFolderError(*problems)
