"""Forward error correction works on the link, where its speed needs it.

Why: Lanes of 50 Gb/s and more (PAM4) make errors by design, and Reed-Solomon FEC mends them.
Forced off, the link drops packets or does not come up; the two ends must use the same.
Reads: ``ethtool --show-fec DEV`` and the speed from ``ethtool DEV``. One verdict for each Ethernet
rail.
By hand: ``ethtool --show-fec DEV``, "Active FEC encoding".
Mend: the same on the switch port first, then ``ethtool --set-fec DEV encoding rs``: it restarts the
link, so drain the host.
On the switch: FEC of the port (rs, or auto on both sides).
Healthy though odd: 100G over four lanes (NRZ) may run without FEC: long optics (LR4) and short
copper do; that is a warning. "Auto" may be configured beside it: what is active counts. LLRS is
Reed-Solomon with less delay. Below 100G it is not judged.
"""

from __future__ import annotations

from commcheck.applies import ethernet_port_owner
from commcheck.check import (
    Check,
    Nothing,
    failed,
    limit,
    not_applicable,
    passed,
    reads,
    undecidable,
    warned,
)
from commcheck.formats.ethtool_fec import ETHTOOL_FEC, EthtoolFec
from commcheck.formats.ethtool_link import ETHTOOL_LINK, EthtoolLink
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The FEC in use (None: the driver does not tell), and the link's speed and lanes."""

    fec: EthtoolFec | None = reads(ETHTOOL_FEC)
    link: EthtoolLink = reads(ETHTOOL_LINK)


@dataclass(frozen=True, slots=True)
class Limits:
    """From which lane rate on it cannot be done without."""

    pam4_lane_gbits: float = limit(
        50.0, unit="Gb/s a lane", source="IEEE 802.3: PAM4 lanes are specified with RS-FEC only"
    )


SET_FEC = Remedy(
    command="ethtool --set-fec {netdev} encoding rs",
    effect=Words(
        "Restarts the link: it comes back only if the other end uses the same.",
        "链路会重启：仅当对端配置一致时才能恢复。",
    ),
    precondition=Words(
        "Host drained, the switch port set first, never the NIC that carries SSH.",
        "主机已排空，先设置交换机端口，绝不动承载 SSH 的网卡。",
    ),
)

OFF = Cause(
    slug="fec-off",
    title=Words("FEC is off", "FEC 未启用"),
    meaning=Words(
        "The link's errors are not corrected: packets are lost. Usually forced off on one side.",
        "链路误码未被纠正：会丢包。多为一端强制关闭。",
    ),
    remedies=(SET_FEC,),
)
OFF_NRZ = Cause(
    slug="fec-off-nrz",
    title=Words("No FEC on a link of NRZ lanes", "NRZ 链路未启用 FEC"),
    meaning=Words(
        "Allowed at this speed with some optics and short copper; both ends must agree.",
        "该速率下部分光模块与短铜缆允许不启用；两端必须一致。",
    ),
    remedies=(SET_FEC,),
)

GOOD = frozenset({"RS", "LLRS"})


def judge(seen: Seen, rail: Rail, _want: Nothing, limits: Limits) -> Verdict:
    """What is active, by the speed of a lane."""
    named = f"{rail.label} ({rail.netdev})"
    speed, lanes = seen.link.speed_mbits, seen.link.lanes
    if seen.fec is None:
        return not_applicable(f"the driver of {named} has no FEC setting")
    active = frozenset(seen.fec.active)
    words = ", ".join(seen.fec.active)
    measured = {"fec_active": list(seen.fec.active), "speed_mbits": speed, "lanes": lanes}
    if active & GOOD:
        return passed(f"{named} has FEC {words} active", measured=measured)
    if "Not reported" in active or not active or speed is None:
        return undecidable(f"{named} does not tell its active FEC or its speed")
    gbits = speed / 1000
    says = f"{named} has FEC {words} active at {gbits:g} Gb/s"
    if gbits < 100:
        return not_applicable(f"{says}: below 100 Gb/s it is not needed")
    # Four NRZ lanes carry 100 Gb/s and no more; what runs faster is PAM4 whatever its lanes.
    is_pam4 = gbits >= 200 or (lanes is not None and gbits / lanes >= limits.pam4_lane_gbits)
    if not is_pam4:
        reason = f"{says}, allowed on four NRZ lanes if both ends agree"
        return warned(OFF_NRZ, reason, measured=measured, netdev=rail.netdev)
    return failed(OFF, f"{says}, want RS", measured=measured, netdev=rail.netdev)


CHECK = Check(
    id="physical.nic-fec",
    title=Words("Forward error correction works", "前向纠错正常工作"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    limits=Limits,
    judge=judge,
    needs=("physical.nic-link-up",),
    causes=(OFF, OFF_NRZ),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_port_owner,
)
