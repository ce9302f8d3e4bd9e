"""The RDMA port runs at its full width and speed.

Why: A port that lost lanes or came up at an older signalling rate is ACTIVE and carries traffic,
at half or a quarter. Every ring goes at the pace of its slowest rail.
Reads: ``rate`` of the port in ``/sys/class/infiniband``; what the card can do, by its model, from
``ibv_devinfo``. One verdict for each rail.
By hand: ``cat /sys/class/infiniband/HCA/ports/1/rate``, or ``ibstatus HCA``: "400 Gb/sec (4X NDR)"
is four lanes of 100 Gb/s; ``ibv_devinfo -v -d HCA | grep active_``.
Mend: fewer lanes (1X, 2X) is the cable or a dirty connector: clean, reseat, replace. Full width
at a lower rate is a speed that one end was held to: look at the switch port. Bringing the port down
and up with ``mlxlink`` trains it anew and drops the link: drain the host first.
On the switch: speed and split of the port; the same port with another cable; symbol errors of it.
Healthy though odd: 2X NDR is a port of 200 Gb/s, split on purpose; a ConnectX-7 on an HDR switch
runs at 200: declare ``commcheck_line_rate_gbits``. Undeclared, a rate below the card's best is
undecided, never a fail. The rate of a port that is down means nothing. A bond tells that of one
port, and so is what is declared.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    failed,
    passed,
    reads,
    tries,
    undecidable,
)
from commcheck.expect import LINE_RATE_GBITS
from commcheck.formats.ibv_devinfo import IBV_DEVINFO, IbvDevice
from commcheck.formats.port_state import PORT_STATE
from commcheck.formats.rdma_port import RdmaPort
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port, and the card's model where user space tells it."""

    port: RdmaPort = reads(PORT_STATE)
    devices: tuple[IbvDevice, ...] | Unread = tries(IBV_DEVINFO)


@dataclass(frozen=True, slots=True)
class Want:
    """The declared line rate."""

    line_rate_gbits: Wanted[int | None] = expects(LINE_RATE_GBITS)


# PCI device ids of NVIDIA (vendor 0x02c9 in verbs): ConnectX-5, -6, -7, -8. Lx cards and those of
# many variants are left out: an unknown best is better than a wrong one.
BEST_GBITS: Final = {4119: 100, 4121: 100, 4123: 200, 4129: 400, 4131: 800}

CABLE = Remedy(
    command="mlxlink -d {pci} -m -c",
    driver="mlx5_core",
    effect=Words(
        "Shows lanes, power and error rates (root). Then clean and reseat the cable, then replace "
        "it.",
        "显示通道、光功率与误码率（需 root）。随后清洁并重新插拔线缆，仍异常则更换。",
    ),
    precondition=Words(
        "Reading is free; pulling the cable drops the link: host drained.",
        "读取无影响；拔线会断链：主机需已排空。",
    ),
)
RETRAIN = Remedy(
    command="mlxlink -d {pci} --port_state TG",
    driver="mlx5_core",
    effect=Words(
        "Takes the port down and up: both ends train the link anew.",
        "端口先断后通，两端重新训练链路。",
    ),
    precondition=Words(
        "Host drained, one rail at a time, never the port that carries SSH.",
        "主机已排空，逐轨操作，绝不动承载 SSH 的端口。",
    ),
)
SWITCH = Remedy(
    command="",
    effect=Words(
        "Compare speed and split of the switch port with those of a healthy rail.",
        "将交换机端口的速率与拆分配置同健康轨的端口比对。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
    who="network team",
)

LANES = Cause(
    slug="rdma-lanes-lost",
    title=Words("RDMA port lost lanes", "RDMA 端口丢失通道"),
    meaning=Words(
        "The port runs on fewer lanes than it should: a damaged or dirty cable, a bad connector.",
        "端口使用的通道数少于应有值：线缆损坏、脏污或连接器不良。",
    ),
    remedies=(CABLE, RETRAIN, SWITCH),
)
SLOW = Cause(
    slug="rdma-rate-low",
    title=Words("RDMA port below its rate", "RDMA 端口速率过低"),
    meaning=Words(
        "All lanes are there, and each is slower than it should be: the speed of the switch port, "
        "or a cable of an older generation.",
        "通道齐全，但每条通道速率偏低：交换机端口速率配置，或线缆代次较旧。",
    ),
    remedies=(SWITCH, CABLE, RETRAIN),
)

USUAL_LANES: Final = 4
"""Of a port that is not split. A split port of two lanes carries what is declared for it."""


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Against the declared rate, else against the best of the card's model."""
    port, declared = seen.port, want.line_rate_gbits.value
    if port.rate_gbits is None:
        return undecidable(f"sysfs does not tell the rate of {rail.label}")
    form = f" ({port.lanes}X {port.signal})" if port.lanes and port.signal else ""
    says = f"{rail.label} runs at {port.rate_gbits:g} Gb/s{form}"
    measured = {"rate_gbits": port.rate_gbits, "lanes": port.lanes}
    best = _best_gbits(seen.devices, rail)
    if declared is not None and port.rate_gbits < declared:
        lost = port.lanes is not None and port.lanes < USUAL_LANES
        return failed(
            LANES if lost else SLOW,
            f"{says}, want {declared}: {want.line_rate_gbits.origin}",
            measured=measured,
            pci=rail.pci or "?",
        )
    if declared is not None:
        return passed(says, measured=measured)
    if best is not None and port.rate_gbits >= best:
        reason = f"{says}, the best of its model; the line rate is not declared"
        return passed(reason, measured=measured)
    could = f" and its model can do {best}" if best else " and its model's best is not known"
    return undecidable(f"{says}{could}", turn_on="declare commcheck_line_rate_gbits")


def _best_gbits(devices: tuple[IbvDevice, ...] | Unread, rail: Rail) -> int | None:
    if isinstance(devices, Unread):
        return None
    mine = next((each for each in devices if each.hca == rail.hca), None)
    return BEST_GBITS.get(mine.part_id) if mine and mine.vendor_id == 0x02C9 else None


def not_applicable(rail: Rail) -> str | None:
    """A virtual function shows a rate of its own making; EFA has none of these rates."""
    if rail.link_layer not in (None, "Ethernet", "InfiniBand"):
        return f"{rail.label} is {rail.link_layer}"
    if rail.is_vf:
        return f"{rail.label} is a virtual function: read this on the host that owns the port"
    return None


CHECK = Check(
    id="physical.rdma-rate",
    title=Words("RDMA port at full rate", "RDMA 端口达到满速率"),
    subject=Rail,
    seen=Seen,
    want=Want,
    judge=judge,
    # Below the Ethernet speed: a slow port is one fault, and nic-speed says it of RoCE.
    needs=("physical.rdma-port-active", "physical.nic-speed"),
    causes=(LANES, SLOW),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    not_applicable=not_applicable,
)
