"""The job that writes over RDMA between two NICs, rail by rail, without MPI: ib_write_bw.

The second host of a pair listens, the first one writes: all rails one after another, each on a
port of its own. A pair is as good as its worst rail; rails are told apart afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from commcheck.check import limit
from commcheck.collect.base import Request
from commcheck.command import Command, Output
from commcheck.errors import CommandMissing, ParseError, Unjudgeable
from commcheck.jobs import perftest, rdma
from commcheck.jobs.job import Answered, Job, Member, Members, Part, Ran, Steps
from commcheck.jobs.outcomes import Run
from commcheck.jobs.pairing import Plan, Preview, next_round, preview
from commcheck.jobs.places import verdicts as places_of
from commcheck.jobs.said import error
from commcheck.jobs.scripts import SERVED
from commcheck.jobs.ways import ran_of, read
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail, Verdict

_PROGRAM: Final = "ib_write_bw"
_PORT: Final = 18515
"""perftest's own default; each rail adds its index, so that no two servers of a host collide."""
_NEXT: Final = 64
"""So far on is the next row of ports to try, where one of these is taken."""

_LISTENING: Final = Command(
    ("grep", "-hs", " 0*:0000 0A ", "/proc/net/tcp", "/proc/net/tcp6"),
)
_LISTENS: Final = regex(r"\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ")

_RAIL_S: Final = 4.0


@dataclass(frozen=True, slots=True)
class Limits(rdma.Limits):
    """What is written, and what of it passes."""

    message_mib: int = limit(8, unit="MiB a message", source="superbenchmark, ib_validation")
    messages: int = limit(5000, unit="messages a rail", source="default of perftest")
    rail_limit_s: float = limit(60.0, unit="s for one rail", source="0.9 s at 400 Gb/s, and the "
                                "slowest start seen")  # fmt: skip


def write_job() -> Job:
    """The job of ``physical.rdma-pairs``."""
    return Job(
        tool="perftest",
        least=2,
        programs=lambda _platform, _limits: (_PROGRAM,),
        asks=(_LISTENING,),
        steps=steps,
        preview=_preview,
        run_s=lambda _hosts, _limits: 8 * _RAIL_S,
        launch=_launch,
        read=_read,
        together=lambda found, _limits: places_of(
            found.hosts, found.located, tuple(each.outcome for each in found.ran)
        ),
    )


def _plan(hosts: Sequence[str], rails: int) -> Plan:
    return Plan(hosts=tuple(hosts), name="pairs", rails=rails, narrow=rails > 1)


def steps(members: Sequence[Member], _limits: object) -> Steps:
    """All rails of two hosts at a time; those of a named host one by one."""
    names = {tuple(rail.label for rail in member.machine.rails) for member in members}
    rails = len(names.pop()) if len(names) == 1 else 0
    leaves = {member.name: member.site.leaf_name for member in members if member.site.leaf_name}
    plan = replace(_plan([member.name for member in members], rails), leaf_of=leaves)
    return lambda outcomes: next_round(plan, outcomes)


def _preview(hosts: Sequence[str], _limits: Limits) -> Preview | None:
    return preview(_plan(hosts, 0), 8 * _RAIL_S) if len(hosts) > 1 else None


def rails_of(run: Run, one: Member, other: Member) -> list[tuple[Rail, Rail]]:
    """The rails of two hosts that meet in a run. Raises ``Unjudgeable`` where they do not pair."""
    if len(one.machine.rails) != len(other.machine.rails) or not one.machine.rails:
        counts = [len(each.machine.rails) for each in (one, other)]
        raise Unjudgeable(f"{one.name} has {counts[0]} rails and {other.name} has {counts[1]}")
    pairs = list(zip(one.machine.rails, other.machine.rails, strict=True))
    return pairs if run.rail is None else [pairs[run.rail]]


def _launch(run: Run, members: Members, limits: Limits) -> tuple[Part, ...]:
    client, server = (members[host] for host in run.hosts)
    for member in (client, server):
        if _PROGRAM not in member.programs:
            raise CommandMissing(f"{member.name} has no {_PROGRAM}", "install perftest")
    writes, serves = [], []
    base = _base(server)
    for mine, theirs in rails_of(run, client, server):
        writes.append(
            Command(
                (
                    *("sh", "-c", SERVED, "sh"),
                    *_words(client, mine, base + theirs.index, limits),
                    server.address,
                ),
                timeout_s=limits.rail_limit_s,
            )
        )
        serves.append(
            Command(
                _words(server, theirs, base + theirs.index, limits), timeout_s=limits.rail_limit_s
            )
        )
    return (
        Part(client.name, tuple(map(Request, writes))),
        Part(server.name, tuple(map(Request, serves))),
    )


def _base(server: Member) -> int:
    """The port of the first rail: none of the row is listened on. Raises ``Unjudgeable``."""
    text = server.told[0].text if server.told else ""
    taken = {int(found[1], 16) for found in map(_LISTENS.match, text.splitlines()) if found}
    for base in range(_PORT, _PORT + 16 * _NEXT, _NEXT):
        if not taken.intersection(base + rail.index for rail in server.machine.rails):
            return base
    raise Unjudgeable(f"{server.name} listens on all ports that ib_write_bw would use")


def _words(member: Member, rail: Rail, port: int, limits: Limits) -> tuple[str, ...]:
    words = [member.programs[_PROGRAM], "-d", rail.hca, "-i", str(rail.port), "-F"]
    words += ["-p", str(port), "--report_gbits"]
    words += ["-s", str(limits.message_mib << 20), "-n", str(limits.messages)]
    if rail.link_layer == "Ethernet":
        if member.site.gid_index.value is not None:
            words += ["-x", str(member.site.gid_index.value)]
        if member.site.dscp.value:
            words.append(f"--tclass={4 * member.site.dscp.value}")
    return tuple(words)


def _read(run: Run, members: Members, limits: Limits, answered: Answered) -> Ran:
    def ways() -> list[tuple[Rail, Rail]]:
        return rails_of(run, *(members[host] for host in run.hosts))

    def judge(way: tuple[Rail, Rail], output: Output) -> Verdict:
        text = f"{output.stdout}\n{output.stderr}"
        try:
            run_seen = perftest.parse(text)
        except ParseError:
            return error("LaunchFailed", f"{way[0].label}: no table: {output.complaint}")
        return rdma.judge(run_seen, members[run.hosts[0]].site.nic_gbits.value, limits)

    verdicts = read(run, _PROGRAM, answered, ways, judge)
    rates = [v.measured["average_gbits"] for v in verdicts if "average_gbits" in v.measured]
    least = min((float(str(rate)) for rate in rates), default=None)
    return ran_of(run, verdicts, None if least is None else least / 8)
