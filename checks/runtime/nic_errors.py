"""The training NICs counted no errors over the last day.

Why: A look at a host sees the counters of now; a cable that errs under load, or a link that was
lost at night, shows only over hours. Monitoring has kept them all along.
Reads: the Prometheus server that the inventory names (``commcheck_prometheus_url``), once for all
of its hosts: node_exporter's infiniband collector, npu-exporter, or AWS's EFA node exporter, over
the last day by the quarter of an hour. One verdict for each host.
By hand: in the server's expression browser,
``increase(node_infiniband_link_downed_total[1d]) > 0``, and the same of ``symbol_error_total``,
``port_errors_received_total``, ``local_ack_timeout_errors_total`` and
``packet_sequence_errors_total``.
Mend: damaged packets: clean and reseat both ends, then swap cable and optic. Lost links: first the
switch's log of that port. Lost packets: PFC and ECN along the path; see which hosts count the same.
On the switch: its own counters of the port in the same hours.
Healthy though odd: a link goes down when its switch is upgraded. Time-outs come in hundreds from a
job that died, so they fail only where they go on through the last hour. A fabric that sprays
packets (``commcheck_adaptive_routing: true``, as InfiniBand does by itself) or is lossy by design
counts packets out of order. EFA sends again by itself, drops what is under way to a job that ended,
and AWS names no limit: it warns only where that goes on through the last hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from commcheck.check import (
    FLEET,
    Check,
    Unread,
    expects,
    failed,
    limit,
    not_applicable,
    passed,
    tries,
    undecidable,
    warned,
)
from commcheck.counters import length
from commcheck.errors import Unjudgeable
from commcheck.expect import ADAPTIVE_ROUTING, FLOW_CONTROL
from commcheck.lazy import dataclass
from commcheck.metrics.catalog import COUNTERS, EFA_COUNTERS, NPU_COUNTERS
from commcheck.metrics.grown import Port, ports
from commcheck.metrics.reading import FAULT_METRICS, Metrics
from commcheck.metrics.wanted import URL
from commcheck.model import UNKNOWN, Cause, Machine, Remedy, Verdict, Wanted, Words
from commcheck.report.counts import many

FLAPS = ("link_downed", "link_error_recovery", "link_up_num")
DAMAGE = (
    "symbol_error",
    "port_rcv_errors",
    "rx_icrc_encapsulated",
    "mac_rx_bad_pkt_num",
    "mac_tx_bad_pkt_num",
)
TIMEOUTS = ("local_ack_timeout_err", "roce_adp_retrans_to", "roce_new_pkt_rty_num")
DISORDER = (
    "packet_seq_err",
    "out_of_sequence",
    "implied_nak_seq_err",
    "roce_adp_retrans",
    "roce_out_of_order_num",
)
"""As the kernel and hccn_tool name them (NVIDIA, Understanding mlx5 Linux counters)."""
_BY_DEVICE = (*COUNTERS, *EFA_COUNTERS)


@dataclass(frozen=True, slots=True)
class Seen:
    """What monitoring kept."""

    metrics: Metrics | Unread = tries(FAULT_METRICS, at=FLEET)


@dataclass(frozen=True, slots=True)
class Want:
    """Where monitoring is, and what the fabric does with packets."""

    url: Wanted[str | None] = expects(URL)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)
    adaptive_routing: Wanted[bool] = expects(ADAPTIVE_ROUTING)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many are too many."""

    a_day: float = limit(5.0, unit="link losses in 24 h", source="Azure NHC check_ib_link_flapping")
    an_hour: float = limit(60.0, unit="errors in the last hour", source="own default: one a minute")
    enough_s: float = limit(
        3600.0, unit="s of samples", source="own default: errors under load come within the hour"
    )
    silent_s: float = limit(
        2700.0, unit="s without a sample", source="own default: three of a quarter of an hour"
    )


CLEAN = Remedy(
    command="",
    effect=Words(
        "Clean and reseat both ends, then swap cable and optic. The link goes down meanwhile.",
        "清洁并重插两端，再互换线缆与光模块。期间链路中断。",
    ),
    precondition=Words("Host drained.", "主机已排空。"),
    who="vendor",
)
LOG = Remedy(
    command="commcheck run -i INVENTORY -l {host}",
    effect=Words(
        "Looks at the port itself: light, FEC, PFC and the far end.",
        "检查端口本身：光功率、FEC、PFC 与对端。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

LINK_LOST = Cause(
    slug="nic-link-lost-before",
    title=Words("A NIC link was lost in the last day", "过去一天内网卡链路中断"),
    meaning=Words(
        "The link went down and came back: a marginal optic or cable, or a switch port that was "
        "reset.",
        "链路断开后恢复：光模块或线缆临界，或交换机端口被复位。",
    ),
    remedies=(LOG, CLEAN),
)
DAMAGED = Cause(
    slug="nic-damage-before",
    title=Words("A NIC received damaged packets", "网卡收到损坏报文"),
    meaning=Words(
        "Packets arrived damaged in the last day: a dirty connector, a failing optic or cable.",
        "过去一天收到损坏报文：连接器脏污，光模块或线缆故障。",
    ),
    remedies=(LOG, CLEAN),
)
LOST = Cause(
    slug="nic-loss-before",
    title=Words("RDMA packets were lost", "RDMA 报文丢失"),
    meaning=Words(
        "Packets were repeated in the last day: drops on the path, or a peer that stopped.",
        "过去一天出现重传：路径丢包，或对端停止响应。",
    ),
    remedies=(LOG,),
)
EFA_LOST = Cause(
    slug="nic-efa-loss-before",
    title=Words("EFA goes on losing packets", "EFA 持续丢包"),
    meaning=Words(
        "Through the last hour EFA dropped packets, changed paths or waited for peers: congestion, "
        "a receiver that is not ready, or a peer that stopped.",
        "过去一小时内 EFA 持续丢弃报文、切换路径或等待对端：网络拥塞、接收端未就绪，"
        "或对端停止响应。",
    ),
    remedies=(
        Remedy(
            command="commcheck run -i INVENTORY -l {host} -t physical.efa-counters",
            effect=Words(
                "Shows what each device counts now. On one host of a job it is that host, on many "
                "the network: placement group, security group.",
                "显示各设备当前计数。作业中仅一台异常属该主机问题，多台异常属网络问题：置放群组、安全组。",
            ),
            precondition=Words("None, it only reads.", "无，只读。"),
        ),
    ),
)


def judge(seen: Seen, machine: Machine, want: Want, limits: Limits) -> tuple[Verdict, ...]:
    """Links that were lost, damage, loss: a verdict for each that was found."""
    if want.url.value is None:
        return (not_applicable("the inventory names no server: commcheck_prometheus_url"),)
    if isinstance(seen.metrics, Unread):
        unread = seen.metrics
        raise Unjudgeable(unread.reason, unread.remedy, type_name=unread.error)
    rails = {rail.label for rail in machine.rails if rail.present and rail.fabric}
    return judge_metrics(
        seen.metrics,
        rails,
        by_design=want.flow_control.value == "none" or want.adaptive_routing.value,
        limits=limits,
    )


def judge_metrics(
    metrics: Metrics, rails: Iterable[str], *, by_design: bool, limits: Limits
) -> tuple[Verdict, ...]:
    """As ``judge``. ``rails``: none where it is not known which carry training."""
    wanted = set(rails)
    found = {
        name: port
        for name, port in ports(metrics, _BY_DEVICE, "device").items()
        if not wanted or name in wanted
    }
    found |= ports(metrics, NPU_COUNTERS, "id")
    alive = [port for port in found.values() if port.silent_s <= limits.silent_s]
    wrong = _wrong(alive, metrics.names[0], by_design, limits)
    is_told = not metrics.lines.keys().isdisjoint(_BY_DEVICE)
    missing = sorted(wanted - {port.name for port in alive}) if is_told else []
    if not alive or missing:
        whose = ", ".join(missing) or ", ".join(metrics.names)
        unknown = undecidable(
            f"{metrics.server} has no counters of {whose} of the last {length(limits.silent_s)}"
            f"{metrics.warned}",
            turn_on="run node_exporter with its infiniband collector there (on EFA: AWS's EFA node "
            "exporter), and have it scraped by the host's name",
        )
        return (*wrong, unknown)
    if wrong:
        return wrong
    return (_clean(alive, bool(wanted), is_told, by_design, limits),)


def _clean(
    alive: Sequence[Port], all_count: bool, is_told: bool, by_design: bool, limits: Limits
) -> Verdict:
    """Nothing is wrong, if it was watched for long enough, and what that does not say."""
    # A VF that came back from a pod has a series of minutes: it says nothing of the other ports.
    young = [port for port in alive if port.covered_s < limits.enough_s]
    counted = (
        alive
        if all_count or len(young) == len(alive)
        else [each for each in alive if each not in young]
    )
    covered = min(port.covered_s for port in counted)
    if covered < limits.enough_s:
        return undecidable(
            f"only {length(covered)} of samples, without an error",
            turn_on="ask again when the server has watched for longer",
        )
    told = {name for port in alive for name in port.there}
    still = told.difference(*(port.added for port in alive))
    counters = many(len(still), "counter" if still == told else "other counter")
    reason = f"none of {counters} of {many(len(counted), 'port')} grew in {length(covered)}"
    if young:
        names = ", ".join(port.name for port in young[:4])
        reason += f"; {names} watched for less than {length(limits.enough_s)}"
    if is_told and told.isdisjoint((*TIMEOUTS, *DISORDER, *EFA_COUNTERS)):
        # node_exporter has read hw_counters only since procfs could (prometheus/procfs#549).
        reason += "; lost packets are not counted: a newer node_exporter reads hw_counters, too"
    if mixed := [port for port in alive if by_design and _sum(port.added, DISORDER)]:
        reason += (
            f"; {_told(mixed[0], DISORDER)}: no loss where packets may overtake each other "
            f"({ADAPTIVE_ROUTING.name}: false where they may not)"
        )
    if dropped := [port for port in alive if _sum(port.added, EFA_COUNTERS)]:
        reason += f"; {_told(dropped[0], EFA_COUNTERS)}: EFA sends again what is lost"
    return passed(reason, measured={"ports": len(counted), "covered_s": round(covered)})


def _wrong(
    alive: Sequence[Port], host: str, by_design: bool, limits: Limits
) -> tuple[Verdict, ...]:
    """What is wrong, each cause once for all ports of the host."""
    loss = TIMEOUTS if by_design else (*TIMEOUTS, *DISORDER)
    flapping = [port for port in alive if _sum(port.added, FLAPS) > limits.a_day]
    damaging = [port for port in alive if _sum(port.recent, DAMAGE) > limits.an_hour]
    losing = [port for port in alive if _goes_on(port, loss, limits)]
    verdicts = []
    for cause, names, faulty in (
        (LINK_LOST, FLAPS, flapping),
        (DAMAGED, DAMAGE, damaging),
        (LOST, loss, losing),
        (EFA_LOST, EFA_COUNTERS, ()),
    ):
        hit = [port for port in alive if _sum(port.added, names)]
        if cause is EFA_LOST:
            hit = [port for port in hit if _goes_on(port, names, limits)]
        if not hit:
            continue
        say, shown = (failed, faulty) if faulty else (warned, hit)
        told = "; ".join(_told(port, names) for port in shown[:4])
        more = f" and {many(len(shown) - 4, 'more port')}" if len(shown) > 4 else ""
        measured = {port.name: {n: port.added[n] for n in names if n in port.added} for port in hit}
        verdicts.append(say(cause, told + more, measured=measured, host=host))
    return tuple(verdicts)


def _goes_on(port: Port, names: Iterable[str], limits: Limits) -> bool:
    lasting = port.goes_on & set(names)
    return bool(lasting) and _sum(port.recent, names) > limits.an_hour


def _sum(counts: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(counts.get(name, 0) for name in names)


def _told(port: Port, names: Iterable[str]) -> str:
    mine = [name for name in names if name in port.added]
    parts = ", ".join(f"{name} +{port.added[name]}" for name in mine)
    newest = min(port.ago_s[name] for name in mine)
    last_hour = _sum(port.recent, mine)
    when = f"{last_hour} in the last hour" if last_hour else f"the last {length(newest)} ago"
    return f"{port.name}: {parts} in {length(port.covered_s)}, {when}"


CHECK = Check(
    id="runtime.nic-errors",
    title=Words("NICs counted no errors in the last day", "网卡过去一天无错误计数"),
    subject=Machine,
    seen=Seen,
    want=Want,
    limits=Limits,
    judge=judge,
    causes=(LINK_LOST, DAMAGED, LOST, EFA_LOST),
    # Where the network is TCP there are none.
    platforms=frozenset({"gpu-roce", "gpu-ib", "gpu-efa", "ascend", UNKNOWN}),
)
