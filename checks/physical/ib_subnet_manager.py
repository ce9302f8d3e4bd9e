"""A subnet manager has brought the InfiniBand port up and given it an address.

Why: InfiniBand ports come to ACTIVE only when a subnet manager sweeps the fabric. Without one they
stay in INIT with no address, and no job can start, although cable and link are fine.
Reads: ``state``, ``lid`` and ``sm_lid`` of the port in ``/sys/class/infiniband``. One verdict for
each InfiniBand rail.
By hand: ``ibstat HCA``: "State: Active", "SM lid" not 0; ``sminfo`` (root) asks the manager itself.
Mend: start the manager where it should run (``systemctl status opensm``, UFM, or in the switch);
if only this port is left out, look at its partition and at the log of the manager.
On the switch: a managed switch may be the manager; look whether two of them fight for it.
Healthy though odd: a port that has no link has no manager either: that is the link's fault and not
judged here. RoCE has neither.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Check, Nothing, failed, not_applicable, passed, reads, undecidable
from commcheck.formats.port_state import PORT_STATE
from commcheck.formats.rdma_port import RdmaPort
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port."""

    port: RdmaPort = reads(PORT_STATE)


START = Remedy(
    command="systemctl status opensm",
    effect=Words(
        "On the host that should run the manager: shows whether it runs. Start it, or see to UFM "
        "or the switch that does it.",
        "在应运行子网管理器的主机上查看状态。启动它，或检查 UFM 或承担该角色的交换机。",
    ),
    precondition=Words(
        "Know where the manager should run: a second one of other settings re-routes the fabric.",
        "确认子网管理器应运行的位置：再启动一个配置不同的会改变全网路由。",
    ),
    who="network team",
)
ASK = Remedy(
    command="sminfo",
    effect=Words(
        "Asks the manager from this host (root). Where other ports are ACTIVE, look in its log for "
        "this port's GUID.",
        "从本机查询子网管理器（需 root）。若其他端口正常，请在其日志中查找该端口 GUID。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)

NO_MANAGER = Cause(
    slug="ib-manager-missing",
    title=Words("No subnet manager", "没有子网管理器"),
    meaning=Words(
        "The link is there and nobody gave the port an address: the manager is down, or does not "
        "reach this port.",
        "链路正常但端口未获得地址：子网管理器未运行，或未能到达该端口。",
    ),
    remedies=(START, ASK),
)

NO_LID: Final = (0, 0xFFFF)
"""Neither is an address that a manager gives."""


def judge(seen: Seen, rail: Rail, _want: Nothing, _limits: Nothing) -> Verdict:
    """By state and lids; a port without a link says nothing of the manager."""
    port = seen.port
    if port.phys_state != "LinkUp":
        return not_applicable(f"{rail.label} has no link: {port.phys_state}")
    if port.lid is None or port.sm_lid is None:
        return undecidable(f"sysfs does not tell the lids of {rail.label}")
    says = f"{rail.label} is {port.state}, lid {port.lid}, SM lid {port.sm_lid}"
    measured = {"state": port.state, "lid": port.lid, "sm_lid": port.sm_lid}
    # ACTIVE_DEFER carries traffic, while its link recovers.
    is_up = port.state in ("ACTIVE", "ACTIVE_DEFER")
    if is_up and port.sm_lid not in NO_LID and port.lid not in NO_LID:
        return passed(says, measured=measured)
    return failed(NO_MANAGER, f"{says}, want ACTIVE with a lid of both", measured=measured)


def only_infiniband(rail: Rail) -> str | None:
    """RoCE has no subnet manager."""
    if rail.link_layer in (None, "InfiniBand"):
        return None
    return f"{rail.label} is {rail.link_layer}, not InfiniBand"


CHECK = Check(
    id="physical.ib-subnet-manager",
    title=Words("Subnet manager serves the port", "子网管理器已纳管端口"),
    subject=Rail,
    seen=Seen,
    judge=judge,
    needs=("physical.rdma-device-count",),
    causes=(NO_MANAGER,),
    platforms=frozenset({"gpu-ib"}),
    not_applicable=only_infiniband,
)
