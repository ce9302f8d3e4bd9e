"""The NPU reaches the address that it keeps asking.

Why: The NPU itself pings one address, its gateway as a rule, and says how that goes. Without an
answer packets leave the port and do not arrive: HCCL waits for its peers until EI0006.
Reads: ``hccn_tool -i N -net_health -g`` and ``-netdetect -g``. One verdict for each NPU.
By hand: ``hccn_tool -i N -net_health -g``, ``hccn_tool -i N -netdetect -g`` (root).
Mend: give it an address that answers, ``-netdetect -s address A``; then look at VLAN and gateway.
On the switch: the gateway answers pings of the NPUs' subnet; the port is in the right VLAN.
Healthy though odd: "Init" and "Detect ip set" just after a start or a change; read again. Without
an address it stays at Init for ever, and schedulers may call such a card unhealthy.
"""

from __future__ import annotations

import ipaddress

from commcheck.check import (
    Check,
    Nothing,
    Unread,
    failed,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_port import LINK, NET_HEALTH, NETDETECT, NpuLink
from commcheck.lazy import dataclass
from commcheck.model import Accelerator, Cause, Remedy, Verdict, Words
from commcheck.npu import ASCEND, READS, npus_only, unused


@dataclass(frozen=True, slots=True)
class Seen:
    """How its pings go, and whom it asks."""

    health: PerNpu[str] = reads(NET_HEALTH)
    netdetect: PerNpu[ipaddress.IPv4Address | None] | Unread = tries(NETDETECT)
    link: PerNpu[NpuLink] | Unread = tries(LINK)


SET = Remedy(
    command="hccn_tool -i {npu} -netdetect -s address GATEWAY",
    effect=Words(
        "Sets whom the NPU asks: the gateway of its subnet, or another address that answers.",
        "设置网络检测地址：所在子网的网关，或其他可达地址。",
    ),
    precondition=Words("The address answers pings.", "该地址可以 ping 通。"),
)
LOOK = Remedy(
    command="hccn_tool -i {npu} -netdetect -g",
    effect=Words(
        "Shows whom it asks. Have VLAN, gateway and route of the port looked at.",
        "显示检测地址。请检查端口的 VLAN、网关与路由。",
    ),
    precondition=READS,
    who="network team",
)

UNREACHABLE = Cause(
    slug="npu-net-unreachable",
    title=Words("NPU reaches nobody", "NPU 网络不可达"),
    meaning=Words(
        "The address that the NPU asks does not answer: wrong VLAN, wrong gateway, no route.",
        "检测地址无应答：VLAN、网关或路由有误。",
    ),
    remedies=(LOOK, SET),
)
FAULT = Cause(
    slug="npu-net-fault",
    title=Words("NPU network fault", "NPU 网络故障"),
    meaning=Words(
        "The NPU's own detection does not work: a fault of its port or its firmware.",
        "NPU 自身的网络检测异常：端口或固件故障。",
    ),
    remedies=(
        Remedy(
            command="hccn_tool -i {npu} -link_stat -g",
            effect=Words(
                "Shows what the link did. If nothing is wrong with it, ask the vendor.",
                "显示链路变化记录。若链路无异常，则联系厂商处理芯片。",
            ),
            precondition=READS,
            who="vendor",
        ),
    ),
)
NOT_SET = Cause(
    slug="npu-netdetect-unset",
    title=Words("NPU asks nobody", "NPU 未配置网络检测地址"),
    meaning=Words(
        "No address to ask is set: nobody notices when the network of this NPU is gone.",
        "未配置检测地址：该 NPU 网络中断时无人知晓。",
    ),
    remedies=(SET,),
)
FAULTS = frozenset({"Socket fail", "Socket failed", "Thread error", "Fault"})
SILENT = frozenset({"Receive timeout", "Unreachable", "Time exceeded"})


def judge(seen: Seen, npu: Accelerator, _want: Nothing, _limits: Nothing) -> Verdict:
    """Not begun is no fault; what was asked and does not answer is one."""
    if (why := unused(seen.link, npu)) is not None:
        return not_applicable(why)
    said = seen.health.of(npu.index)
    asked = None if isinstance(seen.netdetect, Unread) else dict(seen.netdetect.values)
    whom = None if asked is None else asked.get(npu.index)
    measured = {"net_health": said, "netdetect": None if whom is None else str(whom)}
    state = f"{npu.label} says {said}" + (f" of {whom}" if whom else "")
    if said == "Success":
        return passed(state, measured=measured)
    if said in SILENT:
        return failed(UNREACHABLE, f"{state}, want Success", measured=measured, npu=npu.index)
    if said in FAULTS:
        return failed(FAULT, f"{state}, want Success", measured=measured, npu=npu.index)
    if said == "Init" and asked is not None and npu.index in asked and whom is None:
        reason = f"{state}: no netdetect address is set"
        return warned(NOT_SET, reason, measured=measured, npu=npu.index)
    return undecidable(
        f"{state}: detection has not come to a result",
        turn_on="it has just begun, or netdetect is unset: read again in a minute",
    )


CHECK = Check(
    id="physical.npu-net-health",
    title=Words("NPU reaches its gateway", "NPU 网络检测正常"),
    subject=Accelerator,
    seen=Seen,
    judge=judge,
    needs=("physical.npu-link-up",),
    causes=(UNREACHABLE, FAULT, NOT_SET),
    platforms=ASCEND,
    not_applicable=npus_only,
)
