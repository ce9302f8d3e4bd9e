"""The NIC port drops nothing that it receives.

Why: on a lossless fabric nothing is dropped. One dropped RoCE packet makes the sender repeat all
that followed it (go-back-N), so a few drops a second take busbw from line rate to a few GB/s.
Reads: ``ethtool -S DEV`` at the start and the end of the visit, and what an earlier run read on
the same boot. One verdict for each Ethernet rail.
By hand: twice, ten seconds apart, under load: ``ethtool -S DEV | grep -E 'discard|out_of_buffer'``.
Mend: PFC first (physical.pfc-enabled and the switch); PFC right and still drops: the host does not
take the packets fast enough, look at PCIe (physical.pcie-link, physical.pcie-errors).
On the switch: PFC and headroom of the priority on that port; the pause frames the switch received
tell whether it heard the host at all.
Healthy though odd: totals of long ago; only what is added counts. On fabrics that are lossy by
design (``commcheck_flow_control: none``) a few drops are a warning. With PFC off a driver has no
pause counters at all, its discards are there.
"""

from __future__ import annotations

from commcheck.applies import ethernet_port_owner
from commcheck.check import Check, Explained, Watched, expects, limit, watches
from commcheck.counters import Counters, errors
from commcheck.expect import FLOW_CONTROL
from commcheck.formats.ethtool_stats import ETHTOOL_STATS
from commcheck.growing import Limits as GrowthLimits
from commcheck.growing import absent, exceeds, settle
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words

COUNTERS = (
    "rx_discards_phy",
    *(f"rx_prio{prio}_discards" for prio in range(8)),
    *(f"rx_prio{prio}_{what}_discard" for prio in range(8) for what in ("buf", "cong")),
    "rx_stat_discard",
    *(f"rx_discard_packets_cos{queue}" for queue in range(8)),
)
OF_THE_PORT = ("rx_discards_phy", "rx_stat_discard")
RECEIVED = ("rx_packets_phy", "rx_good_frames")
"""mlx5 (NVIDIA mlx5 counters.rst), then bnxt_en (bnxt_ethtool.c)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The driver's counters."""

    counters: Watched[Counters] = watches(ETHTOOL_STATS)


@dataclass(frozen=True, slots=True)
class Want:
    """How the fabric avoids loss."""

    flow_control: Wanted[str] = expects(FLOW_CONTROL)


@dataclass(frozen=True, slots=True)
class Limits(GrowthLimits):
    """Also what a fabric that is lossy by design may drop."""

    lossy_share: float = limit(1e-4, unit="of the packets received", source="own default")
    lossy_least: int = limit(
        100, unit="packets", source="own default: fewer are one burst on a host that does little"
    )


LOOK = Remedy(
    command="ethtool -S {netdev} | grep -E 'discard|out_of_buffer|pause'",
    effect=Words(
        "Shows on which priority packets are dropped, and whether this host asks for a pause.",
        "查看丢包所在优先级，以及本机是否在发送暂停帧。",
    ),
    precondition=Words("None, it only reads. Twice, under load.", "无，只读；负载下执行两次对比。"),
)
SWITCH = Remedy(
    command="",
    effect=Words(
        "Compare PFC, buffer headroom and DSCP map of the switch port with those of a port "
        "without drops.",
        "对比交换机端口与无丢包端口的 PFC、缓冲余量和 DSCP 映射。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
    who="network team",
)

DISCARDS = Cause(
    slug="rx-discards",
    title=Words("NIC drops received packets", "网卡丢弃接收报文"),
    meaning=Words(
        "The port had no buffer left: PFC does not protect the class, or the host does not take "
        "packets as fast as they come (PCIe).",
        "端口缓冲耗尽：PFC 未保护该优先级，或主机（PCIe）收包速度不足。",
    ),
    remedies=(LOOK, SWITCH),
)


def judge(seen: Seen, rail: Rail, want: Want, limits: Limits) -> Verdict:
    """Any growth is loss; of a fabric that is lossy by design a little is none."""
    found = errors(seen.counters, COUNTERS)
    if not found.there:
        return absent(rail, "dropped packets")
    dropped = found.only(OF_THE_PORT)
    many = exceeds(dropped, seen.counters, RECEIVED, limits.lossy_share, least=limits.lossy_least)
    advisory = want.flow_control.value == "none" and not many
    return settle(found, rail, DISCARDS, limits, advisory=advisory)


CHECK = Check(
    id="physical.nic-rx-discards",
    title=Words("NIC drops no received packets", "网卡未丢弃接收报文"),
    subject=Rail,
    each_port=True,
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
    causes=(DISCARDS,),
    explained_by=(
        Explained("pcie-lanes-lost", "same-rail"),
        Explained("pcie-speed-low", "same-rail"),
        # A NIC that the watchdog cut off from pausing drops what it has no buffer for.
        Explained("pause-storm", "same-rail", always=False),
    ),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_port_owner,
)
