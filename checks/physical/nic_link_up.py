"""The training NIC's Ethernet port has a link.

Why: A rail without a link is lost. NCCL uses the others and is slower, or waits for it and fails in
``ibv_modify_qp``. Speed, MTU, PFC and addresses of a dark port mean nothing, so they are not
judged.
Reads: ``ethtool DEV``. One verdict for each Ethernet rail.
By hand: ``ethtool DEV | grep -E 'Speed|Link detected'``, ``ip -br link show DEV``, then the same
port on the switch.
Mend: the reason in brackets says where to look. ``No cable``: cage or cable. ``Link training
failure`` and ``Autoneg``: the far end, its speed, breakout or FEC differ. ``Bad signal integrity``:
clean the connector, then replace cable or optic. ``Power budget``, ``Overheat``: module, airflow.
Without a reason: is the interface up at all, is the switch port shut?
On the switch: ``show interface`` of the port: administrative state, transceiver, FEC, breakout
(``2x200G`` on one side only is common).
Healthy though odd: unprivileged ethtool complains of "Operation not permitted" and still tells all
that is needed; virtio says ``Speed: Unknown!`` with a link; the dark second port of a card with one
cable is no rail and is not judged.
"""

from __future__ import annotations

from typing import Final

from commcheck.applies import ethernet_only
from commcheck.check import Check, Nothing, failed, passed, reads, undecidable
from commcheck.formats.ethtool_link import ETHTOOL_LINK, EthtoolLink
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port as the driver sees it."""

    link: EthtoolLink = reads(ETHTOOL_LINK)


SET_UP = Remedy(
    command="ip link set {netdev} up",
    effect=Words("Switches the interface on; harmless if it is on.", "启用接口；已启用则无影响。"),
    precondition=Words(
        "Nobody took it down on purpose.",
        "确认不是有人有意关闭的。",
    ),
)
SWITCH_PORT = Remedy(
    command="ethtool {netdev}",
    effect=Words(
        "Shows modes and FEC of this side: make speed, breakout, FEC and autonegotiation of the "
        "switch port the same, and open it if it is shut.",
        "显示本端模式与 FEC：使交换机端口的速率、拆分、FEC、自协商与之一致；端口被关闭则打开。",
    ),
    precondition=Words(
        "Compare both ends before anything is set; changing either drops the link.",
        "修改前先比对两端；修改任一端都会断链。",
    ),
    who="network team",
)
CABLE = Remedy(
    command="",
    effect=Words(
        "Push the plug home, clean the connector, then replace cable or optic; try another cage.",
        "重新插紧、清洁接头，再更换线缆或光模块；可换一个笼位测试。",
    ),
    precondition=Words(
        "The port is dark already; watch out not to pull a neighbour's cable.",
        "该端口本已断开；注意不要误拔相邻线缆。",
    ),
)
MODULE = Remedy(
    command="ethtool -m {netdev}",
    effect=Words(
        "Shows temperature and power of the module (root). Then: airflow and fans, a module of the "
        "power class that the cage allows, or a new module.",
        "显示光模块温度与功率（需 root）。然后检查风道与风扇，换用笼位允许的功耗等级或更换模块。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

LINK_DOWN = Cause(
    slug="link-down",
    title=Words("NIC link down", "网卡链路断开"),
    meaning=Words(
        "The port has no link and the driver gives no reason: interface off, switch port shut, or "
        "no light.",
        "端口无链路，驱动也未给出原因：接口未启用、交换机端口关闭或无光。",
    ),
    remedies=(SET_UP, SWITCH_PORT, CABLE),
)
NO_CABLE = Cause(
    slug="link-no-cable",
    title=Words("No cable", "未插线缆"),
    meaning=Words(
        "The cage is empty, or what is in it does not answer.",
        "笼位为空，或其中的模块无响应。",
    ),
    remedies=(CABLE,),
)
TRAINING = Cause(
    slug="link-training",
    title=Words("Link training fails", "链路训练失败"),
    meaning=Words(
        "There is a signal, but the two ends do not agree: the far port is shut, or its speed, "
        "breakout or FEC differ.",
        "有信号但两端无法协商一致：对端端口关闭，或速率、拆分、FEC 不一致。",
    ),
    remedies=(SWITCH_PORT, CABLE),
)
BAD_SIGNAL = Cause(
    slug="link-bad-signal",
    title=Words("Bad signal or cable", "信号差或线缆故障"),
    meaning=Words(
        "Cable, optic or its memory chip is faulty or dirty.",
        "线缆、光模块或其 EEPROM 故障，或接头脏污。",
    ),
    remedies=(CABLE, MODULE),
)
MODULE_FAULT = Cause(
    slug="link-module-fault",
    title=Words("Module too hot or too hungry", "光模块过热或超功率"),
    meaning=Words(
        "The NIC keeps the module off: too hot, above the power budget, or faulty.",
        "网卡关闭了光模块：过热、超出功率预算或模块故障。",
    ),
    remedies=(MODULE,),
)

# Texts of ethtool for the kernel's ETHTOOL_LINK_EXT_STATE_* codes.
BY_REASON: Final = {
    "No cable": NO_CABLE,
    "Autoneg": TRAINING,
    "Link training failure": TRAINING,
    "Logical mismatch": TRAINING,
    "Bad signal integrity": BAD_SIGNAL,
    "Cable issue": BAD_SIGNAL,
    "EEPROM issue": BAD_SIGNAL,
    "Calibration failure": MODULE_FAULT,
    "Power budget exceeded": MODULE_FAULT,
    "Overheat": MODULE_FAULT,
    "Module": MODULE_FAULT,
}


def judge(seen: Seen, rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    """Link or not; the speed is another check's."""
    link = seen.link
    named = f"{rail.label} ({link.device})"
    if link.detected:
        if link.speed_mbits is None:
            return passed(f"{named} has a link, speed not told")
        speed_gbits = link.speed_mbits / 1000
        return passed(
            f"{named} has a link at {speed_gbits:g} Gb/s", measured={"speed_gbits": speed_gbits}
        )
    why = ": " + ", ".join(filter(None, (link.reason, link.detail))) if link.reason else ""
    if rail.fabric is None:
        return undecidable(
            f"{named} has no link{why}, and nothing says that it is a rail",
            turn_on="declare commcheck_nics",
        )
    cause = BY_REASON.get(link.reason or "", LINK_DOWN)
    return failed(cause, f"{named} has no link{why}, want one", netdev=link.device)


CHECK = Check(
    id="physical.nic-link-up",
    title=Words("NIC link is up", "网卡链路正常"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    judge=judge,
    needs=("physical.rdma-device-count",),
    causes=(LINK_DOWN, NO_CABLE, TRAINING, BAD_SIGNAL, MODULE_FAULT),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=ethernet_only,
)
