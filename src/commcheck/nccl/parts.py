"""The logs that hosts have of one job, put together: what no host can tell from its own part."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from commcheck.check import Whole
from commcheck.lazy import dataclass
from commcheck.model import Status, Verdict
from commcheck.nccl.case import Case
from commcheck.nccl.job_logs import JobLog, JobLogs, take
from commcheck.nccl.judge import judge, summary
from commcheck.nccl.reader import Desk
from commcheck.nccl.site import Site, SiteHost
from commcheck.report.counts import many
from commcheck.together import sharing

WRONG = (Status.FAIL, Status.WARN)


@dataclass(frozen=True, slots=True)
class Part:
    """One host's logs, small enough to keep until all hosts were looked at.

    ``comms``: ids of the communicators that have ranks elsewhere. ``own``: its own verdicts.
    """

    comms: frozenset[str]
    packed: tuple[tuple[JobLog, bytes], ...]  # without the text, and the text
    live: bool
    site: Mapping[str, SiteHost]
    own: tuple[Verdict, ...]


def spans_hosts(case: Case) -> bool:
    """True where the host's job has ranks elsewhere, and a name that its hosts share."""
    return bool(_shared(case))


def _shared(case: Case) -> frozenset[str]:
    return frozenset(
        str(comm.key[1])
        for comm in case.comms
        if comm.key[0] == "id" and len(comm.members) < comm.nranks
    )


def part_of(case: Case, logs: JobLogs, own: tuple[Verdict, ...]) -> Part | None:
    """The host's part; None where its job has no ranks elsewhere, or no name that hosts share."""
    comms = _shared(case)
    if not comms:
        return None
    packed = tuple(
        (replace(log, text=""), zlib.compress(log.text.encode("utf-8", "replace"), 1))
        for log in logs.logs
    )
    return Part(comms, packed, logs.live, case.site.hosts, own)


def judge_parts(parts: Mapping[str, Part]) -> Iterable[Whole]:
    """Every job of which a host has a part; where it is the only one, what that says by itself."""
    for hosts in sharing({host: part.comms for host, part in parts.items()}):
        if len(hosts) > 1:
            yield _judged({host: parts[host] for host in hosts})
        else:
            yield Whole(tuple(hosts), {host: parts[host].own for host in hosts})


def _judged(parts: Mapping[str, Part]) -> Whole:
    desk = Desk()
    desk.job.live = any(part.live for part in parts.values())
    for host, part in parts.items():
        logs = (
            replace(log, text=zlib.decompress(data).decode("utf-8", "replace"))
            for log, data in part.packed
        )
        take(desk, logs, prefix=f"{host}:")
    site = {name: told for part in parts.values() for name, told in part.site.items()}
    case = Case(desk.finish(), Site(site))
    judgement = judge(case)
    found = [verdict for verdict in judgement.verdicts if verdict.status in WRONG]
    whole = summary(case, judgement)  # as if nothing were found
    first = next(iter(parts))
    told = {}
    for host, part in parts.items():
        mine = [v for v in found if host in v.hosts or (host == first and not _known(v, parts))]
        known = {v.cause.slug for v in mine if v.cause}
        mine += [v for v in part.own if v.cause and v.cause.slug not in known]
        if mine:
            told[host] = tuple(mine)
        elif found and any(v.status is Status.PASS for v in (whole, *part.own)):
            told[host] = (_else(found[0], parts),)  # one that could not be told stays so
        elif whole.status is Status.PASS:
            told[host] = (whole,)
    return Whole(tuple(parts), told)


def _known(verdict: Verdict, parts: Mapping[str, Part]) -> bool:
    return any(host in parts for host in verdict.hosts)


def _else(found: Verdict, parts: Mapping[str, Part]) -> Verdict:
    """Of a host whose part is right, where the job's is not."""
    reason = (
        f"its own part is right; of the job on {many(len(parts), 'host')}: {found.rule} on "
        f"{', '.join(found.hosts[:4]) or 'an unnamed host'}"
    )
    return Verdict(status=Status.PASS, reason=reason)
