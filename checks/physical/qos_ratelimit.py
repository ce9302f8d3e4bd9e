"""The traffic class that carries RoCE is not held back by a rate limit or a small share.

Why: A limit left over from a test, or a scheduling weight of a few percent, caps the rail whenever
there is other traffic, or always. No counter and no error says so.
Reads: ``mlnx_qos -i DEV``. One verdict for each Ethernet rail.
By hand: ``mlnx_qos -i DEV``, the ``tc:`` lines: ``ratelimit: unlimited``; the priority of RoCE
stands below its class; ``tsa: ets, bw: N%`` is its share.
Mend: take the limits away (0 is no limit, all eight are written), and give the class its share;
running traffic changes at once.
On the switch: the same share for the class on its egress ports.
Healthy though odd: the factory's map puts priority 1 in class 0 and 0 in class 1. ``strict`` and
``vendor`` scheduling have no share. A limit at or above the line rate holds nothing back. dcb and
tools without rate limits tell only the share, or neither: that is undecided. Cards of other vendors
are not judged.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Unread,
    expects,
    failed,
    limit,
    passed,
    tries,
    undecidable,
)
from commcheck.expect import LINE_RATE_GBITS, ROCE_PRIORITY
from commcheck.formats.mlnx_qos import MLNX_QOS
from commcheck.formats.port_state import PORT_STATE
from commcheck.formats.qos import Qos, TrafficClass
from commcheck.formats.rdma_port import RdmaPort
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The traffic classes, and the port's rate."""

    qos: Qos | Unread = tries(MLNX_QOS)
    port: RdmaPort | Unread = tries(PORT_STATE)


@dataclass(frozen=True, slots=True)
class Want:
    """Which priority carries RoCE, and how fast the port is."""

    priority: Wanted[int] = expects(ROCE_PRIORITY)
    line_rate_gbits: Wanted[int | None] = expects(LINE_RATE_GBITS)


@dataclass(frozen=True, slots=True)
class Limits:
    """The least share of the RoCE class where shares are used."""

    share_percent: int = limit(
        50, unit="% of the bandwidth", source="vendor RoCE guides give RoCE half or more"
    )


QUIET = Words(
    "No job on the host: running traffic changes at once.", "主机上没有作业：设置立即生效。"
)
UNLIMIT = Remedy(
    command="mlnx_qos -i {netdev} -r 0,0,0,0,0,0,0,0",
    driver="mlx5_core",
    effect=Words(
        "Takes every class's limit away (0 is none). Gone at reboot unless made persistent.",
        "取消所有流量类的限速（0 表示不限）。未做持久化则重启后失效。",
    ),
    precondition=QUIET,
)
SHOW = Remedy(
    command="mlnx_qos -i {netdev}",
    driver="mlx5_core",
    effect=Words(
        "Shows all eight classes. Set scheduling and shares of all of them together (-s and -t), "
        "with the RoCE class at half or more.",
        "显示全部八个流量类。用 -s 与 -t 一并设置调度方式与份额，RoCE 所在类不低于一半。",
    ),
    precondition=QUIET,
)

LIMITED = Cause(
    slug="roce-rate-limited",
    title=Words("RoCE class is rate limited", "RoCE 流量类被限速"),
    meaning=Words(
        "The class never gets more than its limit: usually left over from a test.",
        "该流量类始终无法超过限速值：多为测试遗留配置。",
    ),
    remedies=(UNLIMIT,),
)
SMALL_SHARE = Cause(
    slug="roce-small-share",
    title=Words("RoCE class has a small share", "RoCE 流量类份额过小"),
    meaning=Words(
        "Beside other traffic the class gets only its share of the port.",
        "存在其他流量时，该流量类只能获得很小的端口份额。",
    ),
    remedies=(SHOW,),
)


def judge(seen: Seen, rail: Rail, want: Want, limits: Limits) -> Verdict:
    """The one class that holds the RoCE priority."""
    named = f"{rail.label} ({rail.netdev})"
    if isinstance(seen.qos, Unread):
        return undecidable(
            f"{named} does not tell its traffic classes: {seen.qos.reason}",
            turn_on="mlnx_qos of mlnx-tools prints them",
        )
    priority = want.priority.value
    mine = next((tc for tc in seen.qos.traffic_classes or () if priority in tc.priorities), None)
    if mine is None:
        return undecidable(f"{named} does not tell the traffic class of priority {priority}")
    says = f"{named} has priority {priority} in class {mine.tc}, {_shown(mine)}"
    measured = {"tc": mine.tc, "ratelimit_gbits": mine.ratelimit_gbits}
    rate = _rate_gbits(seen.port, rail, want)
    held = isinstance(mine.ratelimit_gbits, float) and not (
        rate is not None and mine.ratelimit_gbits >= rate
    )
    if held:
        wanted = f"want no limit on a port of {rate:g} Gb/s" if rate else "want no limit"
        reason = f"{says}, {wanted}"
        return failed(LIMITED, reason, measured=measured, netdev=rail.netdev)
    share = mine.bandwidth_percent
    if share is not None and share < limits.share_percent:
        reason = f"{says}, want {limits.share_percent} % or more"
        measured["share_percent"] = share
        return failed(SMALL_SHARE, reason, measured=measured, netdev=rail.netdev)
    if mine.ratelimit_gbits is None:
        return undecidable(f"{says}; the driver does not tell rate limits")
    return passed(says, measured=measured)


def _rate_gbits(port: RdmaPort | Unread, rail: Rail, want: Want) -> float | None:
    if want.line_rate_gbits.value is not None:
        return want.line_rate_gbits.value
    if isinstance(port, Unread) or rail.state != "ACTIVE":
        return None
    return port.rate_gbits


def _shown(each: TrafficClass) -> str:
    rate = each.ratelimit_gbits
    limit_ = {None: "limit unknown", "unlimited": "no limit"}.get(
        rate if not isinstance(rate, float) else "", f"limited to {rate} Gb/s"
    )
    share = "" if each.bandwidth_percent is None else f", share {each.bandwidth_percent} %"
    return f"{limit_}{share}"


def mlx5_port_owner(rail: Rail) -> str | None:
    """mlnx_qos is for NVIDIA cards, and nothing else tells rate limits."""
    if rail.driver not in (None, "mlx5_core"):
        return f"{rail.label} is driven by {rail.driver}: mlnx_qos is for NVIDIA cards"
    return qos_owner(rail)


CHECK = Check(
    id="physical.qos-ratelimit",
    title=Words("RoCE class is not held back", "RoCE 流量类未被限制"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    limits=Limits,
    judge=judge,
    needs=("physical.nic-link-up", "physical.bluefield-mode"),
    causes=(LIMITED, SMALL_SHARE),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=mlx5_port_owner,
)
