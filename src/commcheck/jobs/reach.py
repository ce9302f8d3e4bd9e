"""The job that pings from each rail of a host to the same rail of another, at full MTU.

A few packets a rail. What fails is told apart as in any search: host, rail, path, leaf or all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commcheck.check import failed, limit, passed
from commcheck.collect.base import Request
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, CommandMissing, Unjudgeable
from commcheck.formats import ping
from commcheck.formats.ip_addresses import IP_ADDRESSES, IpAddresses
from commcheck.jobs.job import Answered, Job, Member, Members, Part, Ran
from commcheck.jobs.outcomes import Run
from commcheck.jobs.pairing import Plan, Preview, preview
from commcheck.jobs.pings import Pings
from commcheck.jobs.said import error
from commcheck.jobs.ways import ran_of, read
from commcheck.jobs.writes import rails_of, steps
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words

_HEADERS_BYTES: Final = 28
"""IPv4 without options, and ICMP echo: what an MTU holds beside the payload."""

_SMALL_BYTES: Final = 56
"""The payload that ping has by itself: it passes wherever anything does."""

_RAIL_S: Final = 0.5

SCRIPT: Final = f"""
p=$1
shift
say() {{ "$p" -n -c "$4" -i 0.2 -W 1 -M do -s "$2" -I "$1" "$3" 2>&1; }}
say "$@"
r=$?
if [ $r = 1 ]; then
  echo '{ping.SMALL}'
  say "$1" {_SMALL_BYTES} "$3" "$4"
fi
exit 0
"""
"""$1 ping, $2 netdev, $3 payload in bytes, $4 peer, $5 packets. Where some are lost, small ones."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many packets tell."""

    packets: int = limit(3, unit="packets a rail", source="own default: none of them is lost on a "
                         "healthy path")  # fmt: skip


LOOK = Remedy(
    command="ip neigh show dev {netdev}; tracepath -n {peer}",
    effect=Words(
        "Shows whether the peer's address is resolved, and how far packets come and how large. "
        "Then VLAN, routing and MTU of the switch ports on the way.",
        "查看对端地址是否解析、报文可达的跳数与大小。随后检查沿途交换机端口的 VLAN、路由与 MTU。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
    who="network team",
)
WIDEN = Remedy(
    command="",
    effect=Words(
        "Raise the MTU of the switch ports on the path; never shrink that of one host.",
        "调大路径上交换机端口的 MTU；切勿只调小某一台主机。",
    ),
    precondition=Words(
        "Changing an MTU may take the switch port down and up: no job on the hosts behind it.",
        "修改 MTU 可能使交换机端口断后重通：其后主机上不得有作业。",
    ),
    who="network team",
)
UNREACHED = Cause(
    slug="rail-unreached",
    title=Words("Packets to a rail's peers are lost", "发往对端同轨的报文丢失"),
    meaning=Words(
        "Its link is up, and packets to the same rail of other hosts are lost: VLAN, routing, an "
        "address that is there twice, or a filter.",
        "链路正常，但发往其他主机同一条轨的报文丢失：VLAN、路由、地址重复或过滤。",
    ),
    remedies=(LOOK,),
)
PATH_MTU = Cause(
    slug="rail-path-mtu",
    title=Words("Full-sized packets do not pass", "满长报文无法通过"),
    meaning=Words(
        "Small packets pass and those of the hosts' MTU do not: a switch port on the path has a "
        "smaller MTU. Connections come up, and hang with the first large message.",
        "小报文可通过，而主机 MTU 大小的报文不行：路径上某交换机端口 MTU 更小。"
        "连接可建立，但首个大消息即挂起。",
    ),
    remedies=(LOOK, WIDEN),
)


def reach_job() -> Job:
    """The job of ``physical.rail-reach``."""
    return Job(
        tool="ping",
        least=2,
        programs=lambda _platform, _limits: (ping.TOOL,),
        asks=IP_ADDRESSES.commands,
        steps=steps,
        preview=_preview,
        run_s=lambda _hosts, _limits: 8 * _RAIL_S,
        launch=_launch,
        read=_read,
        together=lambda found, _limits: PINGS.together(found),
    )


def _preview(hosts: Sequence[str], _limits: Limits) -> Preview | None:
    return preview(Plan(hosts=tuple(hosts)), 8 * _RAIL_S) if len(hosts) > 1 else None


# --- launching ----------------------------------------------------------------------------------


def _addresses(member: Member) -> IpAddresses:
    try:
        found: IpAddresses = IP_ADDRESSES.read(*member.told)
    except Unjudgeable as why:
        raise CommandFailed(f"the addresses of {member.name} are not known: {why.reason}") from why
    return found


def _place(member: Member, rail: Rail) -> tuple[str, str, int]:
    """Netdev, IPv4 address and MTU of a rail."""
    known, netdev = _addresses(member), rail.netdev
    address = next(iter(known.of(netdev)), None) if netdev else None
    mtu = dict(known.mtus_bytes).get(netdev or "")
    if netdev is None or address is None or mtu is None:
        raise CommandFailed(f"{member.name} has no IPv4 address with an MTU on {rail.label}")
    return netdev, str(address.ip), mtu


def _launch(run: Run, members: Members, limits: Limits) -> tuple[Part, ...]:
    sender, peer = (members[host] for host in run.hosts)
    if ping.TOOL not in sender.programs:
        raise CommandMissing(f"{sender.name} has no ping", "install iputils-ping")
    requests = []
    for mine, theirs in rails_of(run, sender, peer):
        netdev, _, mtu = _place(sender, mine)
        _, address, other_mtu = _place(peer, theirs)
        size = min(mtu, other_mtu) - _HEADERS_BYTES
        words = (sender.programs[ping.TOOL], netdev, str(size), address, str(limits.packets))
        limit_s = 2 * (limits.packets + 5.0)
        requests.append(Request(Command(("sh", "-c", SCRIPT, "sh", *words), timeout_s=limit_s)))
    return (Part(sender.name, tuple(requests)),)


# --- reading ------------------------------------------------------------------------------------


def _read(run: Run, members: Members, _limits: Limits, answered: Answered) -> Ran:
    def ways() -> list[tuple[Rail, Rail]]:
        return rails_of(run, *(members[host] for host in run.hosts))

    def judge(way: tuple[Rail, Rail], output: Output) -> Verdict:
        sender, peer = (members[host] for host in run.hosts)
        return _of_rail(sender, peer, *way, output)

    return ran_of(run, read(run, ping.TOOL, answered, ways, judge))


def _of_rail(member: Member, peer: Member, mine: Rail, theirs: Rail, output: Output) -> Verdict:
    try:
        said = ping.parse(output)
    except Unjudgeable as refused:
        return error(refused.type_name, f"{member.name} {mine.label}: {refused.reason}")
    netdev, _, my_mtu = _place(member, mine)
    _, address, other_mtu = _place(peer, theirs)
    mtu = min(my_mtu, other_mtu)
    way = f"{member.name} {mine.label} ({mine.netdev}) to {peer.name}"
    measured = {"mtu_bytes": mtu, "sent": said.full.sent, "received": said.full.received}
    if said.full.received == said.full.sent:
        return passed(f"{way}: {said.full.sent} of {said.full.sent} at {mtu} bytes",
                      measured=measured)  # fmt: skip
    small = said.small
    why = f" ({said.full.why})" if said.full.why else ""
    lost = f"{said.full.sent - said.full.received} of {said.full.sent}"
    if small is not None and small.received == small.sent:
        reason = f"{way}: small packets pass, and {lost} of {mtu} bytes are lost{why}, want none"
        return failed(PATH_MTU, reason, measured=measured, netdev=netdev, peer=address)
    reason = f"{way}: {lost} packets are lost{why}, want none"
    return failed(UNREACHED, reason, measured=measured, netdev=netdev, peer=address)


# --- verdicts -----------------------------------------------------------------------------------


def _cause_of(fails: Sequence[Verdict]) -> Cause:
    """Size alone, where every packet that was lost there was a large one."""
    by_size = bool(fails) and all(each.cause is PATH_MTU for each in fails)
    return PATH_MTU if by_size else UNREACHED


PINGS: Final = Pings(
    cause_of=_cause_of,
    filtered="ICMP may be filtered by design: physical.rdma-pairs tells",
)
