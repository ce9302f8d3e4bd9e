"""The job that pings from each NPU of a host to the same NPU of another, by ``hccn_tool``.

Over RoCE where both links are up; over HCCS, as inside a superpod, where they are not and the peer
has a virtual NIC. What fails is told apart as in any search: host, NPU, path, leaf or all.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from commcheck.check import Reader, failed, passed
from commcheck.collect.base import Request
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, Unjudgeable
from commcheck.formats.hccn import PING_S, SCRIPT, PerNpu, sections
from commcheck.formats.hccn_port import ADDRESS, LINK, VNIC, loss_percent
from commcheck.jobs import collective, places
from commcheck.jobs.collective import error
from commcheck.jobs.job import Answered, Job, Member, Members, Part, Ran, Search, Steps
from commcheck.jobs.locate import Outcome, Run
from commcheck.jobs.pairing import Plan, Preview, next_round, preview
from commcheck.model import Accelerator, Cause, Remedy, Status, Verdict, Words
from commcheck.npu import READS

_ASKED: Final[tuple[Reader[Any], ...]] = (ADDRESS, LINK, VNIC)

UNREACHED = Cause(
    slug="npu-unreached",
    title=Words("An NPU does not reach its peers", "NPU 无法到达对端"),
    meaning=Words(
        "Its link is up, and packets to the same NPU of other hosts are lost: VLAN, routing, "
        "gateway, or an address that is there twice.",
        "链路正常，但发往其他主机同编号 NPU 的报文丢失：VLAN、路由、网关或地址重复。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i <NPU> -ping -g address <PEER>",
            effect=Words(
                "Shows which peers answer. Then VLAN and routes of the switch ports on the way.",
                "查看哪些对端可达。随后检查沿途交换机端口的 VLAN 与路由。",
            ),
            precondition=READS,
            who="network team",
        ),
    ),
)


def npu_job() -> Job:
    """The job of ``physical.npu-reach``."""
    return Job(
        tool="hccn_tool",
        least=2,
        programs=lambda _platform, _limits: (),
        asks=tuple(command for reader in _ASKED for command in reader.commands),
        steps=_steps,
        preview=_preview,
        run_s=lambda _hosts, _limits: 8 * PING_S,
        launch=_launch,
        read=_read,
        together=lambda found, _limits: _together(found),
    )


def _steps(members: Sequence[Member], _limits: object) -> Steps:
    """All NPUs of two hosts at a time; those of a named host one by one."""
    counts = {len(_npus(member)) for member in members}
    npus = counts.pop() if len(counts) == 1 else 0
    leaves = {member.name: member.site.leaf_name for member in members if member.site.leaf_name}
    hosts = tuple(member.name for member in members)
    plan = Plan(hosts=hosts, rails=npus, narrow=npus > 1, leaf_of=leaves)
    return lambda outcomes: next_round(plan, outcomes)


def _preview(hosts: Sequence[str], _limits: object) -> Preview | None:
    return preview(Plan(hosts=tuple(hosts)), 8 * PING_S) if len(hosts) > 1 else None


def _npus(member: Member) -> list[Accelerator]:
    return [each for each in member.machine.accelerators if each.vendor == "ascend"]


# --- launching ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """What a host told of its NPUs before."""

    addresses: PerNpu[ipaddress.IPv4Interface | None]
    links: PerNpu[Any]
    vnics: PerNpu[ipaddress.IPv4Address]


def _known(member: Member) -> _Known:
    if len(member.told) != len(_ASKED):
        raise CommandFailed(f"{member.name} has no NPU that could be asked")
    try:
        told = [reader.parse(said) for reader, said in zip(_ASKED, member.told, strict=True)]
    except Unjudgeable as why:
        raise CommandFailed(f"the NPUs of {member.name} are not known: {why.reason}") from why
    return _Known(*told)


def _pairs(run: Run, one: Member, other: Member) -> list[tuple[int, int]]:
    """The chip ids that meet in a run. Raises ``Unjudgeable`` where they do not pair."""
    mine, theirs = ([npu.index for npu in _npus(each)] for each in (one, other))
    if len(mine) != len(theirs) or not mine:
        raise Unjudgeable(f"{one.name} has {len(mine)} NPUs and {other.name} has {len(theirs)}")
    pairs = list(zip(mine, theirs, strict=True))
    return pairs if run.rail is None else [pairs[run.rail]]


def _words(mine: int, theirs: int, sender: Member, peer: Member) -> tuple[str, ...]:
    here, there = _known(sender), _known(peer)
    both_up = here.links.of(mine).is_up and there.links.of(theirs).is_up
    address = dict(there.addresses.values).get(theirs)
    if both_up and address is not None:
        return ("-ping", "-g", "address", str(address.ip))
    vnic = dict(there.vnics.values).get(theirs)
    if not both_up and vnic is not None:
        return ("-hccs_ping", "-g", "address", str(vnic))
    raise CommandFailed(f"npu{theirs} of {peer.name} has no address that could be asked")


def _launch(run: Run, members: Members, _limits: object) -> tuple[Part, ...]:
    sender, peer = (members[host] for host in run.hosts)
    requests = []
    for mine, theirs in _pairs(run, sender, peer):
        words = _words(mine, theirs, sender, peer)
        command = Command(
            ("sh", "-c", SCRIPT, "hccn_tool", str(mine), *words),
            timeout_s=60,
            root=True,
            said_as=("hccn_tool", "-i", str(mine), *words),
        )
        requests.append(Request(command))
    return (Part(sender.name, tuple(requests)),)


# --- reading ------------------------------------------------------------------------------------


def _read(run: Run, members: Members, _limits: object, answered: Answered) -> Ran:
    if answered.problem:
        verdicts = [error("LaunchFailed", answered.problem)]
    elif answered.timed_out:
        verdicts = [error("RunTimedOut", f"hccn_tool on {run} did not end, and was ended")]
    else:
        sender, peer = (members[host] for host in run.hosts)
        verdicts = [
            _of_npu(f"{sender.name} npu{mine} to {peer.name} npu{theirs}", output)
            for (mine, theirs), output in zip(
                _pairs(run, sender, peer), answered.outputs, strict=False
            )
        ]
    statuses = {verdict.status for verdict in verdicts}
    good = None if Status.ERROR in statuses else Status.FAIL not in statuses
    if Status.FAIL in statuses:
        good = False
    worst = sorted(verdicts, key=lambda v: (v.status is not Status.FAIL, v.status is Status.PASS))
    named = tuple(replace(verdict, hosts=run.hosts) for verdict in worst)
    return Ran(run=run, verdicts=named, outcome=Outcome(run, good))


def _of_npu(way: str, output: Output) -> Verdict:
    try:
        ((_, _, text),) = sections(output, "hccn_tool")
    except (Unjudgeable, ValueError):
        return error("CommandFailed", f"{way}: {output.complaint}")
    loss = loss_percent(text)
    if loss is None:
        return error("CommandFailed", f"{way}: {Output(text).complaint}")
    measured = {"loss_percent": loss}
    if loss == 0:
        return passed(f"{way}: no packet is lost", measured=measured)
    return failed(UNREACHED, f"{way}: {loss:g} % of the packets are lost, want none",
                  measured=measured)  # fmt: skip


# --- verdicts -----------------------------------------------------------------------------------


def of_host(found: Search, host: str) -> tuple[Verdict, ...]:
    """What the search says of one host."""
    return _retold(found, collective.of_host(found, host))


def _together(found: Search) -> tuple[Verdict, ...]:
    outcomes = tuple(each.outcome for each in found.ran)
    return _retold(found, places.verdicts(found.hosts, found.located, outcomes))


def _retold(found: Search, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts of the search with this job's cause, and an example of what failed."""
    told = []
    for verdict in verdicts:
        if verdict.cause in (None, UNREACHED):
            told.append(replace(verdict, figures=()))
            continue
        hosts = set(verdict.hosts)
        reasons = [
            each.reason
            for ran in found.ran
            if not hosts or hosts & set(ran.run.hosts)
            for each in ran.verdicts
            if each.status is Status.FAIL
        ]
        shown = f"; {reasons[0]}" if reasons else ""
        told.append(
            replace(
                verdict,
                cause=UNREACHED,
                remedies=UNREACHED.remedies,
                reason=f"{verdict.reason}{shown}",
                figures=(),
            )
        )
    return tuple(told)
