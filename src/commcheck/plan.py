"""What a run will do: hosts in inventory order, checks in playbook order, requests per host.

All pure. From the checks planned for a host and what was found there follow the commands to run:
the union of what the checks read, each once, in phase order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from commcheck.check import FLEET, AnyCheck, Reader, keys_of, limits_of, readings_of
from commcheck.check_fields import Params, as_type
from commcheck.collect.base import Request
from commcheck.command import Command
from commcheck.discover import FoundCheck
from commcheck.errors import InventoryError, Unjudgeable
from commcheck.fields import near
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Bound, Host, Machine, Rail, Subject
from commcheck.plays import Entry, Gate, Play, Severity

REACHABLE = "physical.reachable"
"""Runs first on every host without being named."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A check as a playbook asks it of a host."""

    check: AnyCheck
    gate: Gate = Gate.HOST
    entry: Entry | None = None  # None: asked without being named
    not_permitted: str = ""  # what the operator must still allow, in words
    play: Play | None = None

    @property
    def params(self) -> Params:
        """Thresholds that the playbook sets."""
        return self.entry.params if self.entry else {}

    @property
    def is_advisory(self) -> bool:
        """True where a fail is only a warning."""
        return self.entry is not None and self.entry.severity is Severity.ADVISORY

    def not_applicable(self, host: Host, machine: Machine, subject: Subject) -> str | None:
        """Why the subject is none of the check's business here, in a few words, or None."""
        opt_in = self.check.opt_in
        if opt_in is not None and not opt_in.on(host, machine.platform).value:
            return f"{opt_in.name} is not true for this host"
        reason = self.entry.not_applicable(host, machine, subject) if self.entry else None
        return reason if reason is not None else self.check.not_applicable(subject)


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The checks of one host, in playbook order."""

    host: Host
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Climb:
    """The whole run: hosts in inventory order, and every check that any of them gets."""

    hosts: tuple[HostPlan, ...]
    checks: tuple[FoundCheck, ...]


def platform_of(host: Host) -> str | None:
    """The platform that the inventory declares, or None where it is to be found out."""
    declared = host.variables.get("commcheck_platform")
    return declared if isinstance(declared, str) else None


def can_apply(check: AnyCheck, host: Host) -> bool:
    """False where the inventory alone says that the check can never apply to the host."""
    platform = platform_of(host)
    return platform is None or platform in check.platforms


def subjects(check: AnyCheck, machine: Machine) -> tuple[Subject, ...]:
    """What a check is asked of on a machine."""
    if check.subject is Rail:
        if check.each_port:
            return tuple(port for rail in machine.rails for port in rail.ports or (rail,))
        return machine.rails
    if check.subject is Accelerator:
        return machine.accelerators
    return (machine,)


Known = dict[tuple[int, str, str], tuple[Request, ...]]
"""The requests of one host by reader, what is asked, and phase: many checks share a reader."""


def requests(
    host: Host, machine: Machine, asked: Iterable[Asked], known: Known | None = None
) -> tuple[Request, ...]:
    """The commands to run on a host, each once, in phase order.

    A command whose places cannot be filled is left out: its check says so when it is judged.
    ``known`` is filled, for whoever judges the host afterwards.
    """
    wanted: dict[str, Request] = {}
    known = {} if known is None else known
    window_s = 0.0
    for each in asked:
        if machine.platform not in each.check.platforms or each.not_permitted:
            continue
        watches = False
        for subject in subjects(each.check, machine):
            if is_absent(subject) or each.not_applicable(host, machine, subject) is not None:
                continue
            for request in _requests_of_check(each, subject, machine, host, known):
                before = wanted.setdefault(request.key, request)
                if before.command.timeout_s < request.command.timeout_s:
                    wanted[request.key] = request  # the most patient of several checks decides
                watches = watches or request.at == "start"
        if watches:
            window_s = max(window_s, _window_s(each, host))
    if window_s > 0:
        wait = Command(("sleep", f"{window_s:g}"), timeout_s=window_s + WAIT_SLACK_S)
        wanted["wait"] = Request(wait, "wait")
    return tuple(sorted(wanted.values(), key=lambda request: _ORDER.index(request.at)))


_ORDER = (FLEET, "start", "once", "wait", "end")
"""What is read beside the hosts, then the phases of a bundle.

Between the last ``once`` and the first ``end`` the host only waits.
"""

WAIT_SLACK_S = 10.0

WINDOW = "window_s"
"""The threshold that says how long a check that watches wants to watch."""


def _window_s(asked: Asked, host: Host) -> float:
    """Seconds that the check watches beyond what the bundle takes anyhow."""
    if WINDOW not in limits_of(asked.check.limits):
        return 0.0
    try:
        limits, _ = limits_for(asked.check, host, asked.params)
    except ValueError:
        return 0.0  # said when it is judged
    return min(float(getattr(limits, WINDOW)), MOST_WINDOW_S)


MOST_WINDOW_S = 240.0
"""Longer than this a host's deadline would end its visit."""


def _requests_of_check(
    asked: Asked, subject: Subject, machine: Machine, host: Host, known: Known
) -> Iterable[Request]:
    timeout_s = asked.entry.timeout_s if asked.entry else None
    for reading in readings_of(asked.check.seen).values():
        targets = (
            tuple(map(first_port, present_rails(machine))) if reading.every_rail else (subject,)
        )
        for target, reader, phase in product(targets, reading.reader.readers, reading.phases):
            if reader.declared_by and host.variables.get(reader.declared_by) in (None, ""):
                continue
            for request in requests_of(reader, target, machine, phase, known):
                if timeout_s is None:
                    yield request
                else:
                    yield Request(replace(request.command, timeout_s=timeout_s), request.at)


def present_rails(machine: Machine) -> tuple[Rail, ...]:
    """The rails that the host has."""
    return tuple(rail for rail in machine.rails if rail.present)


def first_port(rail: Rail) -> Rail:
    """What stands for a rail where its port is read: of a bond, all are to be set alike."""
    return rail.ports[0] if rail.ports else rail


def is_absent(subject: Subject) -> bool:
    """True for a rail that the inventory names and the host lacks."""
    return isinstance(subject, Rail) and not subject.present


def requests_of(
    reader: Reader[object], subject: Subject, machine: Machine, at: str, known: Known
) -> tuple[Request, ...]:
    """The requests of one reader for one subject; empty where a place cannot be filled."""
    target = machine if reader.per is Machine else subject
    memo = (id(reader), target.label, at)
    if (found := known.get(memo)) is None:
        try:
            found = tuple(Request(command.on(target), at) for command in reader.commands)
        except Unjudgeable:
            found = ()
        known[memo] = found
    return found


# --- thresholds and expectations ----------------------------------------------------------------

THRESHOLDS = "commcheck_thresholds"

ENGINE_VARIABLES = frozenset(
    {
        "commcheck_platform",
        "commcheck_nics",
        "commcheck_path",
        "commcheck_host_key",
        "commcheck_password_env",
        "commcheck_ssh_agent",
        "commcheck_ssh_look_for_keys",
        "commcheck_peers",
        "commcheck_leaf",
        "commcheck_kubectl_node",
        "commcheck_kubectl_debug_image",
        "commcheck_kubectl_selector",
        "commcheck_kubectl_node_selector",
        THRESHOLDS,
    }
)
"""Inventory variables that the engine itself reads."""


def limits_for(
    check: AnyCheck, host: Host, params: Params | None = None
) -> tuple[object, tuple[Bound, ...]]:
    """The check's limits in force for a host, and the same as bounds for the reports.

    From weak to strong: the check's default, the playbook (``params``), the inventory's
    ``commcheck_thresholds``: ``{physical.pause-storm.pause_share: 0.2}`` or, where the name alone
    is meant for every check that has it, ``{pause_share: 0.2}``.
    """
    given = host.variables.get(THRESHOLDS)
    given = given if isinstance(given, Mapping) else {}
    values: dict[str, object] = {}
    bounds = []
    for name, spec in limits_of(check.limits).items():
        value, origin = spec.default, f"default ({spec.source})"
        if params and name in params:
            value, origin = params[name].value, str(params[name].origin)
        for key in (f"{check.id}.{name}", name):
            if key in given:
                value, origin = given[key], str(host.origin_of(THRESHOLDS))
                break
        values[name] = _like(spec.default, value)
        bounds.append(Bound(name, values[name], origin, spec.unit))
    return check.limits(**values), tuple(bounds)


def _like(default: object, value: object) -> object:
    """The value as the default's type. Raises ``ValueError`` where it is none."""
    typed = as_type(default, value)
    if typed is None:
        raise ValueError(f"{value!r} is {type(value).__name__}, wanted {type(default).__name__}")
    return typed


def want_for(check: AnyCheck, host: Host, platform: str) -> tuple[object, tuple[Bound, ...]]:
    """The check's expectations of a host, and the same as bounds for the reports."""
    wanted = {name: key.on(host, platform) for name, key in keys_of(check.want).items()}
    bounds = tuple(
        Bound(
            key.name.removeprefix("commcheck_"),
            wanted[name].value,
            str(wanted[name].origin),
            key.unit,
        )
        for name, key in keys_of(check.want).items()
        if wanted[name].value is not None
    )
    return check.want(**wanted), bounds


def validate(climb: Climb, found: Sequence[FoundCheck]) -> tuple[str, ...]:
    """Try every expectation and threshold before any host is contacted.

    Raises ``InventoryError`` with one line per wrong value. Returns warnings: variables with our
    prefix that nothing reads, thresholds that no check has.
    """
    problems: dict[str, None] = {}
    for plan in climb.hosts:
        for asked in plan.asked:
            problems.update(dict.fromkeys(_wrong_values(asked.check, plan.host)))
    if problems:
        raise InventoryError(*list(problems)[:20])
    return tuple(_unread(climb, found))


def _wrong_values(check: AnyCheck, host: Host) -> Iterable[str]:
    for key in keys_of(check.want).values():
        try:
            key.on(host, platform_of(host) or "")
        except ValueError as error:
            yield f"{host.origin_of(key.name)}: error: {host.name}, {key.name}: {error} [type]"
    if not isinstance(host.variables.get("commcheck_peers"), str | int | None):
        where = host.origin_of("commcheck_peers")
        yield f"{where}: error: {host.name}, commcheck_peers is no name of a group [type]"
    if not isinstance(host.variables.get(THRESHOLDS), Mapping | None):
        yield f"{host.origin_of(THRESHOLDS)}: error: {THRESHOLDS} is no mapping [type]"
        return
    try:
        limits_for(check, host)
    except ValueError as error:
        yield f"{host.origin_of(THRESHOLDS)}: error: {host.name}, {THRESHOLDS}: {error} [type]"


def _unread(climb: Climb, found: Sequence[FoundCheck]) -> Iterable[str]:
    keys = {key.name for one in found for key in keys_of(one.check.want).values()}
    known = keys | ENGINE_VARIABLES
    thresholds = {name for one in found for name in limits_of(one.check.limits)}
    thresholds |= {f"{one.id}.{name}" for one in found for name in limits_of(one.check.limits)}
    warned: set[str] = set()
    for plan in climb.hosts:
        names = [name for name in plan.host.variables if name.startswith("commcheck_")]
        given = plan.host.variables.get(THRESHOLDS)
        given = given if isinstance(given, Mapping) else {}
        for name, valid, what in (
            *((name, known, "nothing reads") for name in names),
            *((str(name), thresholds, "no check has the threshold") for name in given),
        ):
            if name in valid or name in warned:
                continue
            warned.add(name)
            where = plan.host.origin_of(name if valid is known else THRESHOLDS)
            yield f"{where}: warning: {what} {name!r}{near(name, valid)} [unknown-variable]"


# --- the climb ----------------------------------------------------------------------------------


def make_climb(
    hosts: Sequence[Host],
    plays: Sequence[tuple[Play, frozenset[str]]],
    found: Sequence[FoundCheck],
    not_permitted: Callable[[AnyCheck], str] = lambda _check: "",
) -> Climb:
    """Lay checks over hosts. ``plays``: each with the names of the hosts that take part.

    A host keeps the order of the plays; ``physical.reachable`` comes first on each. A check that
    two plays ask of a host is asked once, as the first one asks it. One that the inventory's
    platform rules out is not planned at all.
    """
    checks = {one.id: one.check for one in found}
    planned = []
    order: dict[str, None] = {REACHABLE: None}
    for play, _ in plays:
        order.update((entry.check, None) for entry in play.checks)
    for host in hosts:
        mine = {REACHABLE: Asked(checks[REACHABLE])}
        for play, names in plays:
            for entry in play.checks if host.name in names else ():
                if entry.check not in mine or mine[entry.check].entry is None:
                    mine[entry.check] = Asked(
                        checks[entry.check],
                        play.gate,
                        entry,
                        not_permitted(checks[entry.check]),
                        play,
                    )
        asked = tuple(each for each in mine.values() if can_apply(each.check, host))
        if len(asked) == 1:  # nothing but reachable: keep them all, so that the report says so
            asked = tuple(mine.values())
        planned.append(HostPlan(host, asked))
    used = {each.check.id for plan in planned for each in plan.asked}
    by_id = {one.id: one for one in found}
    return Climb(tuple(planned), tuple(by_id[check_id] for check_id in order if check_id in used))
