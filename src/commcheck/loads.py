"""The plays that load: which hosts take part, batch by batch, and what becomes of what they show.

Read-only plays are judged before. A host that failed below takes no part, by name, unless the
play says ``suspects: include``; what it then shows is a consequence of the cause found below.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from commcheck.check import AnyCheck, job_of, keys_of
from commcheck.consequences import explained
from commcheck.errors import Unjudgeable
from commcheck.fields import Count
from commcheck.jobs.job import Job, Search
from commcheck.jobs.office import Office
from commcheck.jobs.site import Site
from commcheck.jobs.stage import Batch, carry_out
from commcheck.judge import for_platform, other_platform, unjudged
from commcheck.lazy import dataclass
from commcheck.model import (
    Bound,
    Evidence,
    Finding,
    Host,
    Kind,
    Layer,
    Machine,
    Result,
    Status,
    Verdict,
    gates,
)
from commcheck.plan import Asked, HostPlan, limits_for, platform_of, want_for
from commcheck.plays import Play, Severity, Suspects
from commcheck.report.counts import many

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Load:
    """One check that loads, as one play asks it, and its hosts in order."""

    check: AnyCheck
    job: Job
    play: Play
    asked: Asked
    hosts: tuple[Host, ...]


def loads_of(plans: Iterable[HostPlan]) -> tuple[Load, ...]:
    """What is permitted to load, in playbook order: a play's checks one after another."""
    found: dict[tuple[int, str], list[tuple[HostPlan, Asked]]] = {}
    plays: list[Play] = []
    for plan in plans:
        for asked in plan.asked:
            if asked.play is None or asked.not_permitted or job_of(asked.check) is None:
                continue
            if asked.play not in plays:
                plays.append(asked.play)
            found.setdefault((plays.index(asked.play), asked.check.id), []).append((plan, asked))
    loads = []
    for (number, check_id), members in found.items():
        asked = members[0][1]
        job = job_of(asked.check)
        if isinstance(job, Job):
            hosts = tuple(plan.host for plan, _ in members)
            place = [entry.check for entry in plays[number].checks].index(check_id)
            loads.append((plays[number].position, place, Load(asked.check, job, plays[number],
                                                             asked, hosts)))  # fmt: skip
    return tuple(load for _, _, load in sorted(loads, key=lambda each: each[:2]))


def done_before(
    loads: Sequence[Load], results: Mapping[tuple[str, str], Result]
) -> tuple[list[Result], tuple[Load, ...]]:
    """Of a run that goes on: the results of loads that had ended, and the loads that had not."""
    made: list[Result] = []
    left = []
    for load in loads:
        names = [*(host.name for host in load.hosts), group_of(load)]
        cases = [(name, load.check.id) for name in names]
        if all(case in results for case in cases[:-1]):
            made += [results[case] for case in cases if case in results]
        else:
            left.append(load)
    return made, tuple(left)


def group_of(load: Load) -> str:
    """What reports call the hosts of a load together."""
    return f"@{load.play.hosts}"


def site_of(host: Host, platform: str) -> Site:
    """What the inventory says of a host that takes part."""
    found: dict[str, Any] = {name: key.on(host, platform) for name, key in keys_of(Site).items()}
    return Site(**found)


def preview(plans: Sequence[HostPlan]) -> Iterator[str]:
    """What would be launched where nothing fails below, with the number of runs and the time."""
    for load in loads_of(plans):
        job, hosts = load.job, [host.name for host in load.hosts]
        try:
            limits, _ = limits_for(load.check, load.hosts[0], load.asked.params)
            batches = batches_of(hosts, load.play.serial, job.least)
            found = job.preview(batches[0], limits)
            seconds = job.run_s(len(hosts), limits)
        except (Unjudgeable, ValueError) as error:
            yield f"{load.check.id}: {error}"
            continue
        each = f" in each of {len(batches)} batches" if len(batches) > 1 else ""
        yield f"{load.check.id} would load {many(len(hosts), 'host')}{each}, if none fails below:"
        if found is not None:
            yield from (f"    {line}" for line in found.lines)
        elif job.least > len(hosts):
            yield f"    nothing: it takes {job.least} hosts"
        else:
            runs = "1 run of all hosts" if job.least > 1 else "1 run on each host, all at once"
            yield f"    {runs}, about {seconds:.0f} s"


def looking(plan: HostPlan) -> HostPlan:
    """The plan without what is launched later."""
    return replace(
        plan,
        asked=tuple(
            each for each in plan.asked if each.not_permitted or job_of(each.check) is None
        ),
    )


def climb(
    loads: Sequence[Load],
    office: Office,
    results: Callable[[], Sequence[Result]],
    emit: Callable[[Result], None],
) -> None:
    """Carry out all loads, lowest first. ``results``: all that is known by now."""
    over: set[int] = set()  # plays that broke off
    for load in loads:
        if office.stop.is_set():
            return
        known = results()
        closed = dict(_closed(load, known, office.platforms))
        if id(load.play) in over:
            closed = dict.fromkeys((h.name for h in load.hosts), _gated("its play broke off"))
        for result in _carry_out(load, closed, known, office):
            emit(result)
        if _broke_off(load, results()):
            over.add(id(load.play))
            office.note(f"play {load.play.name}: more hosts failed than max_fail allows")


# --- who takes part -----------------------------------------------------------------------------


def _closed(
    load: Load, results: Sequence[Result], platforms: Mapping[str, str]
) -> Iterator[tuple[str, Verdict]]:
    """Hosts that take no part, and why."""
    mine = {host.name: host for host in load.hosts}
    include = load.play.suspects is Suspects.INCLUDE
    for result in results:
        host = mine.get(result.host)
        below = Layer.of(result.check).height <= load.check.layer.height
        if host is None or not below or not gates(result) or result.check == load.check.id:
            continue
        if result.kind is Kind.HOST:
            yield host.name, _gated(f"{result.check} could not be judged on this host")
        elif not include:
            yield (
                host.name,
                _gated(f"{result.check} failed on this host, so nothing was launched on it"),
            )
    for host in load.hosts:
        platform = platform_of(host) or platforms.get(host.name)
        if platform is not None and platform not in load.check.platforms:
            yield host.name, other_platform(platform)


def _gated(why: str) -> Verdict:
    return Verdict(status=Status.SKIP, kind=Kind.GATED, reason=f"gated: {why}")


def size_of(count: Count | None, of: int, default: int) -> int:
    """A count of hosts, of ``of``; percents are rounded up."""
    if count is None:
        return default
    return math.ceil(count.value * of / 100) if count.is_percent else count.value


def batches_of(hosts: Sequence[T], serial: Count | None, least: int) -> list[Sequence[T]]:
    """The hosts in batches of ``serial``, each of at least ``least`` where there are so many.

    What is left over is too few for a pair and would never be tried: it goes with the last batch.
    """
    size = max(1, least, size_of(serial, len(hosts), len(hosts)))
    starts = list(range(0, len(hosts), size))
    if len(starts) > 1 and len(hosts) - starts[-1] < least:
        starts.pop()
    return [hosts[at:end] for at, end in itertools.pairwise([*starts, len(hosts)])]


def _failed(load: Load, results: Iterable[Result]) -> int:
    names = {host.name for host in load.hosts}
    ids = {entry.check for entry in load.play.checks}
    return len(
        {r.host for r in results if r.host in names and r.check in ids and r.status is Status.FAIL}
    )


def _broke_off(load: Load, results: Sequence[Result]) -> bool:
    most = size_of(load.play.max_fail, len(load.hosts), len(load.hosts))
    return _failed(load, results) > most


# --- batches ------------------------------------------------------------------------------------


def _carry_out(
    load: Load, closed: Mapping[str, Verdict], known: Sequence[Result], office: Office
) -> Iterator[Result]:
    group: list[Finding] = []
    for name, verdict in closed.items():
        yield _result(load, name, (verdict,))
    hosts = [host for host in load.hosts if host.name not in closed]
    batches = batches_of(hosts, load.play.serial, load.job.least)
    done: list[Result] = []
    for number, batch in enumerate(batches):
        if _broke_off(load, [*known, *done]):
            for host in batch:
                yield _result(load, host.name, (_gated("more hosts failed than max_fail"),))
            continue
        label = f" batch {number + 1}" if len(batches) > 1 else ""
        made, together = _batch(load, batch, known, office, label)
        done += made
        group += together
        yield from made
    if group:
        name = group_of(load)
        yield Result(check=load.check.id, host=name, findings=tuple(group))


def _batch(
    load: Load, hosts: Sequence[Host], known: Sequence[Result], office: Office, label: str
) -> tuple[list[Result], list[Finding]]:
    check, asked = load.check, load.asked
    try:
        limits, bounds = limits_for(check, hosts[0], asked.params)
        retries = asked.entry.retries if asked.entry else 0
        batch = carry_out(check, load.job, hosts, limits, office, retries=retries, label=label)
    except Unjudgeable as error:
        verdict = unjudged(error.type_name, error.reason, error.remedy)
        return [_result(load, host.name, (verdict,)) for host in hosts], []
    except ValueError as error:
        verdict = unjudged(type(error).__name__, str(error))
        return [_result(load, host.name, (verdict,)) for host in hosts], []
    return _judged(load, hosts, batch, known, office.platforms, limits, bounds)


def _judged(
    load: Load,
    hosts: Sequence[Host],
    batch: Batch,
    known: Sequence[Result],
    platforms: Mapping[str, str],
    limits: Any,
    bounds: tuple[Bound, ...],
) -> tuple[list[Result], list[Finding]]:
    """Results of the hosts, and the findings on the group."""
    made = [_result(load, name, (verdict,)) for name, verdict in batch.out.items()]
    search = batch.search
    if search is None:
        return made, []
    seen = load.check.seen(search)
    for host in hosts:
        if host.name in batch.out:
            continue
        machine = Machine(host.name)
        platform = platforms.get(host.name, "")
        want, wanted = want_for(load.check, host, platform)
        verdicts = load.check.verdicts(seen, machine, want, limits)
        verdicts = tuple(for_platform(each, platform) for each in verdicts)
        mine = _told(load, verdicts, (host.name,), search, known)
        shown = tuple(e for ran in search.of(host.name) for e in ran.evidence)
        retried = max((ran.retried for ran in search.of(host.name)), default=0)
        told = _result(load, host.name, mine, wanted + bounds, shown)
        made.append(replace(told, retried=retried))
    first = platforms.get(hosts[0].name, "")
    of_all = tuple(for_platform(each, first) for each in load.job.together(search, limits))
    together = _told(load, of_all, (), search, known)
    shown = tuple(e for ran in search.ran for e in ran.evidence)[:4]
    group = _result(load, group_of(load), together, bounds, shown) if together else None
    return made, list(group.findings) if group else []


def _result(
    load: Load,
    host: str,
    verdicts: Sequence[Verdict],
    bounds: tuple[Bound, ...] = (),
    evidence: tuple[Evidence, ...] = (),
) -> Result:
    findings = tuple(
        Finding(
            check=load.check.id,
            host=host,
            subject="",
            verdict=verdict,
            bounds=bounds,
            evidence=evidence if verdict.status is not Status.PASS else (),
        )
        for verdict in verdicts
    )
    seconds = sum(each.seconds for each in evidence)
    return Result(check=load.check.id, host=host, findings=findings, seconds=seconds)


# --- consequences -------------------------------------------------------------------------------


def _told(
    load: Load,
    verdicts: Sequence[Verdict],
    hosts: Sequence[str],
    search: Search,
    known: Sequence[Result],
) -> tuple[Verdict, ...]:
    """The verdicts as they are to be reported: consequences folded, advice as warnings."""
    told = []
    for verdict in verdicts:
        said = verdict
        if said.status is Status.FAIL:
            said = explained(load.check, said, said.hosts or tuple(hosts), search, known)
        if said.status is Status.FAIL and _is_advisory(load):
            said = replace(said, status=Status.WARN)
        told.append(said)
    return tuple(told)


def _is_advisory(load: Load) -> bool:
    return load.asked.entry is not None and load.asked.entry.severity is Severity.ADVISORY


# --- what stands above --------------------------------------------------------------------------


def gated_above(
    made: Sequence[Result], results: Sequence[Result], asked_of: Mapping[str, Sequence[Asked]]
) -> Iterator[Result]:
    """Results of higher layers that a load closed afterwards, on the hosts that failed it."""
    shut: dict[str, Result] = {}
    for result in made:
        asked = next((a for a in asked_of.get(result.host, ()) if a.check.id == result.check), None)
        if asked is not None and asked.gate.value != "none" and gates(result):
            shut.setdefault(result.host, result)
    for result in results:
        by = shut.get(result.host)
        if by is None or result.kind is Kind.GATED:
            continue
        if Layer.of(result.check).height > Layer.of(by.check).height:
            verdict = _gated(f"{by.check} failed on this host")
            finding = Finding(check=result.check, host=result.host, subject="", verdict=verdict)
            yield Result(check=result.check, host=result.host, findings=(finding,))
