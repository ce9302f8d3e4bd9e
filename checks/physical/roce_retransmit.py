"""RoCE connections lose no packets on their way.

Why: RoCE repeats what was lost by going back to it: each loss costs the time of all that followed,
each loss of the last packet a timer of hundreds of milliseconds. Nothing is logged; the job is just
slow.
Reads: ``hw_counters`` of the RDMA port at the start and the end of the visit, and what an earlier
run read on the same boot. One verdict for each Ethernet rail.
By hand: twice, ten seconds apart, under load: ``grep -H .
/sys/class/infiniband/HCA/ports/1/hw_counters/*``.
Mend: loss has a place. Discards here: this host's PFC or PCIe. None here: the path or the far end;
see which hosts show ``packet_seq_err`` (they sent) and which ``out_of_sequence`` (they received).
On the switch: drops on the priority of RoCE, PFC on every hop, the DSCP map.
Healthy though odd: a fabric that sprays packets (``commcheck_adaptive_routing: true``) reorders
them, and one that is lossy by design loses some: there a few are a warning. Time-outs come from a
peer that died with its job, so some since an earlier run are a warning as well.
"""

from __future__ import annotations

from commcheck.applies import ethernet_only
from commcheck.check import Check, Explained, Watched, expects, limit, watches
from commcheck.counters import Counters, errors
from commcheck.expect import ADAPTIVE_ROUTING, FLOW_CONTROL
from commcheck.formats.rdma_counters import HW_COUNTERS
from commcheck.growing import Limits as GrowthLimits
from commcheck.growing import absent, exceeds, settle
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Status, Verdict, Wanted, Words

CORRUPT = ("rx_icrc_encapsulated",)
GAVE_UP = ("req_transport_retries_exceeded", "req_rnr_retries_exceeded", "max_retry_exceeded")
TIMEOUTS = ("local_ack_timeout_err", "to_retransmits", "tx_rdma_ack_timeout")
LOSS = (
    "out_of_sequence",
    "packet_seq_err",
    "implied_nak_seq_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "seq_err_naks_rcvd",
    "oos_drop_count",
    "rx_roce_discards",
    "req_rx_pkt_seq_err",
)
REQUESTS = ("rx_write_requests", "rx_read_requests", "rx_pkts")
"""mlx5 (NVIDIA, Understanding mlx5 Linux counters), bnxt_re (hw_counters.c), ionic."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's own counters."""

    counters: Watched[Counters] = watches(HW_COUNTERS)


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric does with packets."""

    flow_control: Wanted[str] = expects(FLOW_CONTROL)
    adaptive_routing: Wanted[bool] = expects(ADAPTIVE_ROUTING)


@dataclass(frozen=True, slots=True)
class Limits(GrowthLimits):
    """Also what a fabric that loses or reorders by design may show."""

    lossy_share: float = limit(1e-4, unit="of the RDMA requests received", source="own default")


PATH = Remedy(
    command="grep -H . /sys/class/infiniband/{hca}/ports/{port}/hw_counters/out_of_sequence",
    effect=Words(
        "Read it on all hosts of the job: who receives out of sequence is behind the place of "
        "loss.",
        "在作业全部主机上读取：收到乱序的一端位于丢包点之后。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
PFC = Remedy(
    command="ethtool -S {netdev} | grep -E 'discard|pause'",
    effect=Words(
        "Discards here: mend PFC or PCIe of this host. None: PFC and drops on the switch path.",
        "本机有丢弃：修复本机 PFC 或 PCIe；没有：检查交换路径的 PFC 与丢包。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
REPLACE = Remedy(
    command="",
    effect=Words(
        "Follow the path hop by hop; replace the optic, cable or NIC behind which packets are "
        "wrong.",
        "逐跳排查；更换报文开始出错处的光模块、线缆或网卡。",
    ),
    precondition=Words("Host drained.", "主机已排空。"),
    who="network team",
)

CORRUPTION = Cause(
    slug="roce-corruption",
    title=Words("RoCE packets arrive damaged", "RoCE 报文内容损坏"),
    meaning=Words(
        "The checksum over the RDMA packet was wrong while the link's was right: a switch, a "
        "middle box or a NIC changes packets.",
        "链路校验正确而 RDMA 校验错误：交换机、中间设备或网卡篡改了报文。",
    ),
    remedies=(PATH, REPLACE),
)
TIMED_OUT = Cause(
    slug="roce-timeouts",
    title=Words("RoCE waits for lost packets", "RoCE 等待超时重传"),
    meaning=Words(
        "No acknowledgement came in time: packets or their answers were lost, or the peer stopped. "
        "Each costs hundreds of milliseconds.",
        "未按时收到确认：报文或应答丢失，或对端停止响应。每次代价数百毫秒。",
    ),
    remedies=(PATH, PFC),
)
LOST = Cause(
    slug="roce-packets-lost",
    title=Words("RoCE packets are lost or reordered", "RoCE 报文丢失或乱序"),
    meaning=Words(
        "Packets did not arrive in their order: drops on the path because PFC or ECN do not match, "
        "a bad cable, or a fabric that sprays packets and is not declared so.",
        "报文未按序到达：路径 PFC/ECN 不一致导致丢包、线缆故障，或网络使用自适应路由但未声明。",
    ),
    remedies=(PATH, PFC, REPLACE),
)


def judge(seen: Seen, rail: Rail, want: Want, limits: Limits) -> tuple[Verdict, ...]:
    """Damage, then time-outs, then loss; the first that is found stands for what follows it."""
    found = errors(seen.counters, (*CORRUPT, *GAVE_UP, *TIMEOUTS, *LOSS))
    if not found.there:
        return (absent(rail, "lost RoCE packets"),)
    by_design = want.flow_control.value == "none" or want.adaptive_routing.value
    late = (*GAVE_UP, *TIMEOUTS)
    # More than a fabric loses by design, of the requests that arrived in the same time.
    many = exceeds(found.only(LOSS), seen.counters, REQUESTS, limits.lossy_share)
    # One job that died leaves hundreds behind on healthy hosts: only what goes on proves more.
    goes_on = bool(found.visit.only(late).added)
    parts = (
        (CORRUPT, CORRUPTION, False),
        (late, TIMED_OUT, not goes_on),
        (LOSS, LOST, by_design and not many),
    )
    verdicts = [
        settle(part, rail, cause, limits, advisory=advisory)
        for names, cause, advisory in parts
        if (part := found.only(names)).there
    ]
    wrong = tuple(each for each in verdicts if each.status in (Status.FAIL, Status.WARN))
    return wrong or (settle(found, rail, LOST, limits),)


CHECK = Check(
    id="physical.roce-retransmit",
    title=Words("RoCE loses no packets", "RoCE 无丢包重传"),
    subject=Rail,
    seen=Seen,
    want=Want,
    limits=Limits,
    judge=judge,
    needs=(
        "physical.nic-link-up",
        "physical.pfc-enabled",
        "physical.roce-trust-dscp",
        "physical.roce-dscp-map",
        "physical.roce-traffic-on-pfc-prio",
    ),
    causes=(CORRUPTION, TIMED_OUT, LOST),
    explained_by=tuple(
        Explained(slug, "same-rail")
        for slug in ("nic-symbol-errors", "nic-link-flaps", "rx-discards", "switch-pfc-off")
    )
    + tuple(
        Explained(slug, "same-rail", always=False)  # where its errors were not caught meanwhile
        for slug in ("module-fault", "module-rx-power-low", "fec-off", "ber-uncorrected")
    ),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_only,
)
