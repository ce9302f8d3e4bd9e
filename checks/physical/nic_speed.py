"""The training NIC's port runs at its line rate.

Why: A port that came up slower (100G of 400G) has a link and raises no error. Every ring goes at
the pace of its slowest rail, so one port makes the whole job that much slower.
Reads: ``ethtool DEV``. One verdict for each Ethernet rail. Where ``commcheck_line_rate_gbits`` is
not declared the port is compared with the best mode that it supports itself.
By hand: ``ethtool DEV | grep -E 'Speed|Lanes'``; the far end: ``show interface`` on the switch.
Mend: the far end first. Only then, with the host drained, set the speed on this one: it drops the
link, which comes back only if the other end offers that speed.
On the switch: breakout (``2x200G`` on one side only is common), speed and autonegotiation of the
port, FEC; lanes that one end has lost show as half or a quarter of the speed.
Healthy though odd: a 400G card on a 200G switch: declare the fabric's rate. Undeclared that is
undecided, never a fail. virtio says ``Unknown!``. Of a bond each port is asked: what is declared
is the rate of one, and where it would only fit their sum that is undecided.
"""

from __future__ import annotations

import re

from commcheck.applies import ethernet_port_owner
from commcheck.check import Check, Nothing, expects, failed, passed, reads, undecidable
from commcheck.expect import LINE_RATE_GBITS
from commcheck.formats.ethtool_link import ETHTOOL_LINK, EthtoolLink
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port as the driver sees it."""

    link: EthtoolLink = reads(ETHTOOL_LINK)


@dataclass(frozen=True, slots=True)
class Want:
    """The declared line rate."""

    line_rate_gbits: Wanted[int | None] = expects(LINE_RATE_GBITS)


DECLARE = "declare commcheck_line_rate_gbits"

COMPARE = Remedy(
    command="ethtool {netdev}",
    effect=Words(
        "Shows modes, lanes and autonegotiation of this side: make speed, breakout and FEC of the "
        "switch port the same.",
        "显示本端模式、通道数与自协商：使交换机端口的速率、拆分与 FEC 与之一致。",
    ),
    precondition=Words(
        "Compare both ends before anything is set; changing either drops the link.",
        "修改前先比对两端；修改任一端都会断链。",
    ),
    who="network team",
)
SET_SPEED = Remedy(
    command="ethtool -s {netdev} speed {speed} autoneg on",
    effect=Words(
        "The link goes down and comes back only if the far end offers that speed.",
        "链路会断开，且仅当对端提供该速率时才恢复。",
    ),
    precondition=Words(
        "Host drained, one rail at a time, the far end set first, never the NIC that carries SSH.",
        "主机已排空，逐轨操作，先设置对端，绝不动承载 SSH 的网卡。",
    ),
)
CABLE = Remedy(
    command="",
    effect=Words(
        "Clean and reseat the cable or optic, then replace it: the module limits the modes too.",
        "清洁并重新插拔线缆或光模块，再更换：模块也会限制可用模式。",
    ),
    precondition=Words(
        "Host drained: the link goes down. Watch out not to pull a neighbour's cable.",
        "主机已排空：链路会断开。注意不要误拔相邻线缆。",
    ),
)

TOO_SLOW = Cause(
    slug="nic-speed-low",
    title=Words("NIC port below line rate", "网卡端口低于线速"),
    meaning=Words(
        "The port can go faster, and the two ends agreed on less: breakout or speed of the switch "
        "port, a lost lane, or autonegotiation off on one side.",
        "端口支持更高速率，但两端协商结果更低：交换机端口拆分或速率配置、通道丢失，"
        "或单边关闭自协商。",
    ),
    remedies=(COMPARE, CABLE, SET_SPEED),
)
NOT_OFFERED = Cause(
    slug="nic-speed-not-offered",
    title=Words("NIC does not offer the line rate", "网卡不支持期望线速"),
    meaning=Words(
        "Card, cable or module do not have a mode of the declared rate: the wrong part, or the "
        "inventory is wrong.",
        "网卡、线缆或模块没有声明速率的模式：部件不对，或清单声明有误。",
    ),
    remedies=(COMPARE, CABLE),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Against the declared rate, else against the port's own best."""
    link, declared = seen.link, want.line_rate_gbits.value
    named = f"{rail.label} ({link.device})"
    if link.speed_mbits is None:
        return undecidable(f"{named} does not tell its speed")
    speed_gbits = link.speed_mbits / 1000
    best_gbits = max((_gbits(mode) for mode in link.supported), default=None)
    measured = {"speed_gbits": speed_gbits}
    says = f"{named} runs at {speed_gbits:g} Gb/s"
    if declared is None:
        return _against_its_best(says, speed_gbits, best_gbits, measured)
    if speed_gbits >= declared:
        return passed(says, measured=measured)
    offered = best_gbits is None or best_gbits >= declared
    best = "" if best_gbits is None or offered else f" and offers {best_gbits:g} at most"
    if rail.bond is not None and not offered:
        return undecidable(
            f"{says}{best}, want {declared}: {want.line_rate_gbits.origin}; it is one port of "
            f"{rail.bond}",
            turn_on=f"{DECLARE} of one port, not of the bond",
        )
    return failed(
        TOO_SLOW if offered else NOT_OFFERED,
        f"{says}{best}, want {declared}: {want.line_rate_gbits.origin}",
        measured=measured,
        netdev=link.device,
        speed=declared * 1000,
    )


def _against_its_best(
    says: str, speed_gbits: float, best_gbits: float | None, measured: dict[str, float]
) -> Verdict:
    if best_gbits is None:
        return undecidable(f"{says} and does not tell what it could", turn_on=DECLARE)
    if speed_gbits < best_gbits:
        return undecidable(f"{says} and could do {best_gbits:g}", turn_on=DECLARE)
    return passed(f"{says}, its best; the line rate is not declared", measured=measured)


def _gbits(mode: str) -> float:
    """``400000baseCR4/Full`` -> 400."""
    match = re.match(r"\d+", mode)
    return int(match[0]) / 1000 if match else 0.0


CHECK = Check(
    id="physical.nic-speed",
    title=Words("NIC port runs at line rate", "网卡端口达到线速"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(TOO_SLOW, NOT_OFFERED),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_port_owner,
)
