"""The job that pings from each NPU of a host to the same NPU of another, by ``hccn_tool``.

Over RoCE where both links are up; over HCCS, as inside a superpod, where they are not and the peer
has a virtual NIC. What fails is told apart as in any search: host, NPU, path, leaf or all.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from commcheck.check import Reader, failed, passed, undecidable
from commcheck.collect.base import Request
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, Unjudgeable
from commcheck.formats.hccn import PING_S, SCRIPT, PerNpu, sections
from commcheck.formats.hccn_port import ADDRESS, LINK, VNIC, loss_percent
from commcheck.jobs.job import Answered, Job, Member, Members, Part, Ran, Steps
from commcheck.jobs.outcomes import Run
from commcheck.jobs.pairing import Plan, Preview, next_round, preview
from commcheck.jobs.pings import Pings
from commcheck.jobs.said import error
from commcheck.jobs.ways import ran_of, read
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Status, Verdict, Words
from commcheck.npu import READS

_ASKED: Final[tuple[Reader[Any], ...]] = (ADDRESS, LINK, VNIC)

HCCS_PING: Final = "-hccs_ping"

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
            command="hccn_tool -i {npu} -ping -g address {peer}",
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
        together=lambda found, _limits: PINGS.together(found),
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
        told = [reader.read(said) for reader, said in zip(_ASKED, member.told, strict=True)]
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
        return (HCCS_PING, "-g", "address", str(vnic))
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
    def ways() -> list[tuple[int, int]]:
        return _pairs(run, *(members[host] for host in run.hosts))

    def judge(way: tuple[int, int], output: Output) -> Verdict:
        sender, peer = (members[host] for host in run.hosts)
        how, *_, address = _words(*way, sender, peer)
        # The remedy is of the network; over HCCS it has no place to look at.
        places = {"npu": way[0], "peer": address} if how != HCCS_PING else {}
        return _of_npu(f"{sender.name} npu{way[0]} to {peer.name} npu{way[1]}", output, places)

    verdicts = read(run, "hccn_tool", answered, ways, judge)
    if run.rail is None and all(each.status is Status.FAIL for each in verdicts):
        sender, peer = (members[host] for host in run.hosts)
        if all(_words(*way, sender, peer)[0] == HCCS_PING for way in ways()):
            verdicts = (_apart(run, len(verdicts)),)
    return ran_of(run, verdicts)


def _apart(run: Run, npus: int) -> Verdict:
    """HCCS ends at the superpod: where no NPU at all reaches the other host, that may be why."""
    return undecidable(
        f"{' and '.join(run.hosts)} do not reach each other over HCCS by any of {npus} NPUs",
        turn_on="hosts of one superpod do: compare npu-smi info -t spod-info on both",
    )


def _of_npu(way: str, output: Output, places: Mapping[str, Any]) -> Verdict:
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
    reason = f"{way}: {loss:g} % of the packets are lost, want none"
    return failed(UNREACHED, reason, measured=measured, **places)


# --- verdicts -----------------------------------------------------------------------------------


PINGS: Final = Pings(
    cause_of=lambda _fails: UNREACHED,
    filtered="ICMP may be filtered by design: physical.collective-pairs tells",
)
