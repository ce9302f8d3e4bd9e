"""Nobody on this link stands still for pause frames, and this host does not make others stand.

Why: with PFC a receiver that is too slow stops its switch port, the switch then stops those who
send to it, and so on: one slow host slows every job that crosses its leaf, without one error. A NIC
that has paused for too long is cut off from pausing (pause storm), and then packets are lost.
Reads: ``ethtool -S DEV`` at the start and the end of the visit, and what an earlier run read on
the same boot. One verdict for each Ethernet rail.
By hand: twice, ten seconds apart, under load: ``ethtool -S DEV | grep pause``; the duration counts
microseconds.
Mend: find who sends the pauses: the host with a high ``tx_prioN_pause_duration`` is the slow one,
look at its PCIe (physical.pcie-link, physical.pcie-errors). High ``rx_...`` alone: this host only
waits for another.
On the switch: pause counters of all ports of the leaf; a port that receives many points to the slow
host; the PFC watchdog says which queue it shut.
Healthy though odd: some pause is how PFC works, below a few percent of the time it costs nothing.
The counters exist only for priorities with PFC on: where they are absent, PFC is off. Fabrics with
global pause or none are not judged here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Span,
    Watched,
    expects,
    failed,
    limit,
    not_applicable,
    passed,
    warned,
    watches,
)
from commcheck.counters import WINDOW_SOURCE, Counters, errors, growth, length
from commcheck.expect import FLOW_CONTROL
from commcheck.formats.ethtool_stats import ETHTOOL_STATS, PAUSED_US
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words

STORMS = ("tx_pause_storm_error_events", "continuous_roce_pause_events")
SENT = (
    *(f"tx_prio{prio}_pause_duration" for prio in range(8)),
    *(f"pfc_pri{prio}_tx_duration_us" for prio in range(8)),
)
"""Microseconds, as ``PAUSED_US``."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The driver's counters."""

    counters: Watched[Counters] = watches(ETHTOOL_STATS)


@dataclass(frozen=True, slots=True)
class Want:
    """How the fabric avoids loss."""

    flow_control: Wanted[str] = expects(FLOW_CONTROL)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the time may be paused."""

    window_s: float = limit(0.0, unit="s of waiting", source=WINDOW_SOURCE)
    warn_share: float = limit(0.01, unit="of the window", source="own default")
    pause_share: float = limit(0.10, unit="of the window", source="own default")
    long_s: float = limit(
        1.0, unit="s", source="own default: in less, one burst is a large share; it only warns"
    )


COMPARE = Remedy(
    command="ethtool -S {netdev} | grep pause",
    effect=Words(
        "Read it on every host of the leaf: the one that sends most pause is the slow one.",
        "在同一叶交换机的全部主机上读取：发送暂停最多的即为慢主机。",
    ),
    precondition=Words("None, it only reads. Twice, under load.", "无，只读；负载下执行两次对比。"),
)
DRAIN = Remedy(
    command="",
    effect=Words(
        "Take the host out of jobs and look at its PCIe link, errors and MaxReadReq.",
        "将该主机移出作业，检查其 PCIe 链路、错误与 MaxReadReq。",
    ),
    precondition=Words("Scheduler told.", "已通知调度器。"),
)
SWITCH = Remedy(
    command="",
    effect=Words(
        "Look which port of the leaf receives the pauses, and what the PFC watchdog shut.",
        "查看叶交换机哪个端口收到暂停帧，以及 PFC 看门狗关闭了哪个队列。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
    who="network team",
)

STORM = Cause(
    slug="pause-storm",
    title=Words("NIC paused the switch for too long", "网卡长时间暂停交换机"),
    meaning=Words(
        "This NIC asked for a pause for so long that it was cut off from pausing: the host does "
        "not take its packets, and now they are dropped.",
        "网卡持续请求暂停超时而被禁止发送暂停：主机无法收包，报文开始丢弃。",
    ),
    remedies=(COMPARE, DRAIN),
)
SLOW_HOST = Cause(
    slug="host-pauses-network",
    title=Words("Host makes the network wait", "主机使网络等待"),
    meaning=Words(
        "This host sends pause frames for a large part of the time: it takes packets too slowly, "
        "and others pay for it.",
        "本机大部分时间在发送暂停帧：收包过慢，影响其他主机。",
    ),
    remedies=(COMPARE, DRAIN),
)
PAUSED = Cause(
    slug="paused-by-network",
    title=Words("Network makes the host wait", "网络使主机等待"),
    meaning=Words(
        "The switch pauses this host for a large part of the time: congestion, or a slow receiver "
        "elsewhere.",
        "交换机大部分时间暂停本机：网络拥塞，或别处接收端过慢。",
    ),
    remedies=(COMPARE, SWITCH),
)


@dataclass(frozen=True, slots=True)
class _Share:
    """Of a window, the part that one priority was paused."""

    cause: Cause
    counter: str
    share: float
    seconds: float
    earlier: bool

    def __str__(self) -> str:
        since = " since an earlier run" if self.earlier else ""
        return f"{self.counter} {self.share:.1%} of {length(self.seconds)}{since}"


def judge(seen: Seen, rail: Rail, want: Want, limits: Limits) -> Verdict:
    """A storm fails; else the largest share of paused time decides."""
    if want.flow_control.value != "pfc":
        declared = f"flow control is {want.flow_control.value}: {want.flow_control.origin}"
        return not_applicable(declared)
    durations = errors(seen.counters, (*PAUSED_US, *SENT))
    storms = errors(seen.counters, STORMS)
    netdev = rail.netdev or "?"
    if storms.grown.added:
        reason = f"{rail.label}: {storms.grown}, want none"
        return failed(STORM, reason, measured=storms.measured, netdev=netdev)
    if not durations.there:
        return not_applicable(f"{rail.label} counts no paused time: no priority has PFC on")
    worst = max(_shares(seen.counters), key=lambda each: each.share)
    measured = {"paused_share": round(worst.share, 5), "window_s": round(worst.seconds, 1)}
    if worst.share < limits.warn_share:
        return passed(f"{rail.label}: {worst}", measured=measured)
    long = worst.seconds >= limits.long_s
    say = failed if worst.share >= limits.pause_share and long else warned
    reason = f"{rail.label}: {worst}, want below {limits.warn_share:.0%}"
    return say(worst.cause, reason, measured=measured, netdev=netdev)


def _shares(counters: Watched[Counters]) -> list[_Share]:
    """One for each counter and window; none where no time went by."""
    spans: Mapping[bool, Span[Counters] | None] = {False: counters.visit, True: counters.since}
    return [
        _Share(cause, name, count / 1e6 / span.seconds, span.seconds, earlier)
        for earlier, span in spans.items()
        if span is not None and span.seconds > 0
        for cause, names in ((SLOW_HOST, SENT), (PAUSED, PAUSED_US))
        if (there := [name for name in names if span.last.get(name) is not None])
        for name, count in (growth(span, there).added or {_usual(there): 0}).items()
    ] or [_Share(PAUSED, "paused time", 0.0, 0.0, earlier=False)]


def _usual(names: Sequence[str]) -> str:
    """Of counters of which none grew, the one to show: that of priority 3 where it is there."""
    return next((name for name in names if "3" in name), names[0])


CHECK = Check(
    id="physical.pause-storm",
    title=Words("No pause storm, little paused time", "无暂停风暴，暂停时间少"),
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
        "physical.pcie-link",
    ),
    causes=(STORM, SLOW_HOST, PAUSED),
    contradicts=("ecn-off",),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)
