"""Before the first host is contacted: everything is read and checked, nothing is written."""

from __future__ import annotations

import fnmatch
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from commcheck.discover import FoundCheck, discover, strays
from commcheck.errors import CheckError, InventoryError, PlaybookError
from commcheck.expect import LEAF
from commcheck.fields import near
from commcheck.inventory.endpoint import with_given
from commcheck.inventory.load import Inventory, load
from commcheck.inventory.patterns import matching, select, still_there
from commcheck.lazy import dataclass, regex
from commcheck.model import Host
from commcheck.plan import Climb, make_climb, validate
from commcheck.playbook import Entry, Play, Playbook, locate
from commcheck.playbook import load as load_playbook
from commcheck.reach import Words, of_run
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import Plan, PlannedCheck
from commcheck.runbook import of_site
from commcheck.waivers import Granted, Waiver
from commcheck.waivers import load as load_waivers

_WILD: Final = regex(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the operator chose to run, on which hosts."""

    inventory: tuple[str, ...] = ()
    inventory_from: Path | None = None  # where its names count from; None: the current folder
    playbook: Path | None = None
    limit: str = ""
    only: tuple[str, ...] = ()  # globs of check ids
    skip: tuple[str, ...] = ()
    check_folders: tuple[Path, ...] = ()
    waivers: tuple[Path, ...] = ()
    allow: frozenset[str] = frozenset()  # "load", "write"
    shard: tuple[int, int] | None = None  # (2, 3): the second of three
    recorded: Inventory | None = None  # in the place of ``inventory``: what a run kept of it
    hosts: tuple[str, ...] | None = None  # these only, by name
    reach: Words = field(default_factory=dict)  # how hosts are reached, where it was said

    def limited(self, pattern: str) -> Choice:
        """The choice with only those hosts of it that a pattern means."""
        return replace(self, limit=pattern)

    def words(self) -> dict[str, tuple[str, ...]]:
        """What a record keeps, for ``filled``."""
        words = {
            "inventory": self.inventory,
            "playbook": (str(self.playbook),) if self.playbook else (),
            "limit": (self.limit,) if self.limit else (),
            "only": self.only,
            "skip": self.skip,
            "checks": tuple(map(str, self.check_folders)),
            "waivers": tuple(map(str, self.waivers)),
            "allow": tuple(sorted(self.allow)),
            "shard": tuple(map(str, self.shard or ())),
            **self.reach,
        }
        return {name: each for name, each in words.items() if each}

    def filled(self, words: Mapping[str, tuple[str, ...]]) -> Choice:
        """The choice, and where it leaves something open, what an earlier run chose."""
        playbook, limit, shard = (words.get(name, ()) for name in ("playbook", "limit", "shard"))
        return replace(
            self,
            inventory=self.inventory or words.get("inventory", ()),
            playbook=self.playbook or (Path(playbook[0]) if playbook else None),
            limit=self.limit or "".join(limit),
            only=self.only or words.get("only", ()),
            skip=self.skip or words.get("skip", ()),
            check_folders=self.check_folders or tuple(map(Path, words.get("checks", ()))),
            waivers=self.waivers or tuple(map(Path, words.get("waivers", ()))),
            allow=self.allow or frozenset(words.get("allow", ())),
            shard=self.shard or ((int(shard[0]), int(shard[1])) if shard else None),
            reach={**of_run(words), **self.reach},
        )


def forks_of(playbook: Playbook, forks: int) -> int:
    """Hosts at a time: the smallest of what operator, playbook and plays say."""
    said = [playbook.forks, *(play.forks for play in playbook.plays)]
    return min(forks, *(each for each in said if each is not None), forks)


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that is known before the first host is contacted."""

    inventory: Inventory
    playbook: Playbook
    found: tuple[FoundCheck, ...]
    climb: Climb
    warnings: tuple[str, ...]
    granted: tuple[Granted, ...] = ()
    selected: tuple[str, ...] = ()  # the hosts of all shards


def prepare(choice: Choice, *, cwd: Path) -> Prepared:
    """Read and check everything. Raises ``UsageError``; contacts nothing, writes nothing."""
    found = discover(choice.check_folders, cwd=cwd)
    _refuse_unmatched(choice, found)
    playbook = load_playbook(locate(choice.playbook, cwd=cwd), found)
    inventory = choice.recorded or load(choice.inventory, cwd=choice.inventory_from or cwd)
    inventory = replace(
        inventory, hosts=tuple(with_given(host, choice.reach) for host in inventory.hosts)
    )
    selected = _selected(inventory, choice, cwd)
    hosts = _shard(selected, choice.shard)
    limited = {host.name for host in hosts}
    warnings = [*strays(choice.check_folders, cwd=cwd), *inventory.warnings]
    plays: list[tuple[Play, frozenset[str]]] = []
    for play in playbook.plays:
        names = frozenset(host.name for host in _meant(play, inventory, cwd)) & limited
        if not names:
            warnings.append(
                f"{play.position}: warning: play {play.name!r} has no host here [empty]"
            )
        plays.append((replace(play, checks=_chosen(play.checks, choice)), names))
    if (choice.only or choice.skip) and not any(play.checks for play, _ in plays):
        wanted = ", ".join(choice.only) or f"all but {', '.join(choice.skip)}"
        raise CheckError(f"error: no check of playbook {playbook.name!r} matches {wanted} [checks]")
    asked = [entry.check for play in playbook.plays for entry in play.checks]
    warnings.extend(
        f"warning: no check of playbook {playbook.name!r} matches -t {glob} [checks]"
        for glob in choice.only
        if not fnmatch.filter(asked, glob)
    )
    climb = make_climb(
        hosts, plays, found, lambda check: playbook.not_permitted(check, choice.allow) or ""
    )
    warnings.extend(validate(climb, found))
    _refuse_unknown(playbook, inventory, found)
    waivers = (
        *playbook.waivers,
        *(each for path in choice.waivers for each in load_waivers(path, found)),
    )
    granted = tuple(_granted(waiver, inventory, cwd, warnings) for waiver in waivers)
    return Prepared(
        inventory,
        playbook,
        found,
        climb,
        tuple(warnings),
        granted,
        tuple(host.name for host in selected),
    )


def _meant(play: Play, inventory: Inventory, cwd: Path) -> tuple[Host, ...]:
    try:
        return matching(inventory, play.hosts, cwd=cwd)
    except InventoryError as error:
        raise PlaybookError(
            f"{play.position}: error: hosts of play {play.name!r}: {error} [host]"
        ) from None


def _granted(waiver: Waiver, inventory: Inventory, cwd: Path, warnings: list[str]) -> Granted:
    """The waiver and the hosts that it means; a host that is gone must not stop a nightly run."""
    told = f"hosts of the waiver of {waiver.check}"
    try:
        hosts, missing = still_there(inventory, waiver.hosts, cwd=cwd)
    except InventoryError as error:
        raise PlaybookError(f"{waiver.position}: error: {told}: {error} [host]") from None
    warnings.extend(f"{waiver.position}: warning: {told}: {each} [host]" for each in missing)
    return Granted(waiver, frozenset(host.name for host in hosts))


def _selected(inventory: Inventory, choice: Choice, cwd: Path) -> tuple[Host, ...]:
    hosts = tuple(select(inventory, choice.limit, cwd=cwd)) if choice.limit else inventory.hosts
    if choice.hosts is None:
        return hosts
    missing = set(choice.hosts) - {host.name for host in inventory.hosts}
    if missing:
        raise InventoryError(
            f"{', '.join(inventory.sources)}: error: not in the inventory, but in the run: "
            f"{fold_hosts(missing)}; leave them out with -l [host]"
        )
    by_name = {host.name: host for host in hosts}
    hosts = tuple(by_name[name] for name in choice.hosts if name in by_name)
    if not hosts:
        raise InventoryError("error: of the hosts of the run, none is selected [no-host]")
    return hosts


def _shard(hosts: Sequence[Host], shard: tuple[int, int] | None) -> tuple[Host, ...]:
    """Every n-th host: the racks of an inventory are spread over all shards."""
    if shard is None:
        return tuple(hosts)
    number, count = shard
    mine = tuple(hosts[number - 1 :: count])
    if not mine:
        raise InventoryError(
            f"error: shard {number}/{count} has no host: there are only {len(hosts)} [no-host]"
        )
    return mine


def _refuse_unmatched(choice: Choice, found: Sequence[FoundCheck]) -> None:
    """Raise ``CheckError`` for an id that no check has: what was to run would not, or would.

    A glob of ``-t`` may find nothing; one of ``--skip`` is to keep something out, so there is that.
    """
    ids = [one.id for one in found]
    known = [*ids, *dict.fromkeys(f"{each.partition('.')[0]}.*" for each in ids)]
    problems = [
        f"error: {option} {glob}: no check has such an id{near(glob, known)} [checks]"
        for option, globs in (("-t", choice.only), ("--skip", choice.skip))
        for glob in globs
        if not fnmatch.filter(ids, glob) and (option == "--skip" or not _WILD.search(glob))
    ]
    if problems:
        raise CheckError(*problems)


def _refuse_unknown(playbook: Playbook, inventory: Inventory, found: Sequence[FoundCheck]) -> None:
    """Raise ``PlaybookError`` for groups that the inventory does not have, and for retries.

    What only looks is asked in one go, so nothing could be asked again.
    """
    problems = []
    looking = {one.id for one in found if not one.check.effects}
    for entry in (entry for play in playbook.plays for entry in play.checks):
        for when in entry.when:
            for group in (*when.group, *when.not_group):
                if group not in inventory.groups:
                    hint = near(group, inventory.groups)
                    problems.append(f"{when.position}: error: no group {group!r}{hint} [group]")
        if entry.retries and entry.check in looking:
            problems.append(
                f"{entry.position}: error: retries: {entry.check} only looks, and is asked once "
                "[retries]"
            )
    if problems:
        raise PlaybookError(*dict.fromkeys(problems))


def _chosen(entries: Sequence[Entry], choice: Choice) -> tuple[Entry, ...]:
    return tuple(
        entry
        for entry in entries
        if (not choice.only or any(fnmatch.fnmatchcase(entry.check, each) for each in choice.only))
        and not any(fnmatch.fnmatchcase(entry.check, each) for each in choice.skip)
    )


def new_run_id(now: datetime) -> str:
    """UTC start and four random hex digits: sorts by time, can be said aloud."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def plan_of(prepared: Prepared) -> Plan:
    """The plan as the record keeps it."""
    return Plan(
        hosts=tuple(plan.host.name for plan in prepared.climb.hosts),
        checks=tuple(
            PlannedCheck(
                id=one.id,
                title=one.check.title,
                source="bundled" if one.bundled else str(one.path),
                overrides=str(one.overrides or ""),
                digest=one.digest[:12],
                explained_by=tuple(e.cause for e in one.check.explained_by if e.always),
                contradicts=one.check.contradicts,
                needs=one.check.needs,
            )
            for one in prepared.climb.checks
        ),
        cases={
            plan.host.name: tuple(each.check.id for each in plan.asked)
            for plan in prepared.climb.hosts
        },
        groups=_groups(plan.host for plan in prepared.climb.hosts),
        runbook=of_site(prepared.found),
    )


def _groups(hosts: Iterable[Host]) -> Mapping[str, tuple[str, ...]]:
    """The inventory's groups, and the switches it names, with the hosts that take part."""
    found: dict[str, dict[str, None]] = {}
    for host in hosts:
        for group in host.groups:
            found.setdefault(group, {})[host.name] = None
        for _, switch in LEAF.on(host, "").value or ():
            found.setdefault(f"leaf {switch}", {})[host.name] = None
    return {name: tuple(names) for name, names in found.items()}
