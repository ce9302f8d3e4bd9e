"""Every NPU that should leave its subnet has a gateway inside of it.

Why: Each NPU has a routing table of its own. Without the gateway it reaches the NPUs of its subnet
only: a job within one rack works, and one over two racks hangs at its start.
Reads: ``hccn_tool -i N -gateway -g``, ``-ip -g`` and ``/etc/hccn.conf``. Verdicts for the host.
By hand: ``hccn_tool -i N -gateway -g`` (root); ``grep gateway /etc/hccn.conf``.
Mend: ``hccn_tool -i N -gateway -s gateway A``, A in the NPU's own subnet.
Healthy though odd: fabrics of one subnet need no gateway, and then no NPU has one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from commcheck.check import Check, Nothing, failed, not_applicable, passed, reads, warned
from commcheck.formats.hccn import PerNpu
from commcheck.formats.hccn_conf import HCCN_CONF, HccnConf, kept
from commcheck.formats.hccn_port import ADDRESS, GATEWAY
from commcheck.lazy import dataclass
from commcheck.model import Cause, Machine, Remedy, Verdict, Words
from commcheck.npu import ASCEND, RECOVER, named

Address = ipaddress.IPv4Address


@dataclass(frozen=True, slots=True)
class Seen:
    """Gateways as they are and as they are kept, and the subnets."""

    gateway: PerNpu[Address | None] = reads(GATEWAY)
    address: PerNpu[ipaddress.IPv4Interface | None] = reads(ADDRESS)
    conf: HccnConf = reads(HCCN_CONF)


SET = Remedy(
    command="hccn_tool -i {npu} -gateway -s gateway GATEWAY",
    effect=Words(
        "Sets the gateway and writes it to /etc/hccn.conf.", "设置网关并写入 /etc/hccn.conf。"
    ),
    precondition=Words(
        "The address is the gateway of this NPU's own subnet.", "该地址是此 NPU 所在子网的网关。"
    ),
)

LOST = Cause(
    slug="npu-gateway-lost",
    title=Words("NPU has not its kept gateway", "NPU 网关与配置文件不符"),
    meaning=Words(
        "/etc/hccn.conf names another gateway than the NPU has, or the NPU has none.",
        "NPU 没有网关，或与 /etc/hccn.conf 中的不同。",
    ),
    remedies=(RECOVER, SET),
)
OUTSIDE = Cause(
    slug="npu-gateway-outside",
    title=Words("Gateway is not in the subnet", "网关不在 NPU 子网内"),
    meaning=Words(
        "The NPU cannot reach its gateway: the address lies in another subnet.",
        "NPU 无法到达网关：该地址属于其他子网。",
    ),
    remedies=(SET,),
)
SOME = Cause(
    slug="npu-gateway-some",
    title=Words("Only some NPUs have a gateway", "仅部分 NPU 配置了网关"),
    meaning=Words(
        "NPUs of one host differ: those without a gateway stay inside their subnet.",
        "同一主机的 NPU 不一致：无网关的 NPU 无法跨子网通信。",
    ),
    remedies=(SET,),
)


def judge(seen: Seen, machine: Machine, _want: Nothing, _limits: Nothing) -> tuple[Verdict, ...]:
    """As kept, inside the subnet, and on all or none."""
    gateways = {each.index: seen.gateway.of(each.index) for each in machine.accelerators}
    found = tuple(_wrong(gateways, seen))
    if found:
        return found
    if not any(gateways.values()):
        return (not_applicable("no NPU has a gateway: one subnet"),)
    measured = {f"npu{npu}": str(each) for npu, each in gateways.items()}
    return (passed(f"{len(gateways)} NPUs have a gateway in their subnet", measured=measured),)


def _wrong(gateways: dict[int, Address | None], seen: Seen) -> Iterator[Verdict]:
    lost = [n for n, each in gateways.items() if kept(seen.conf, n).gateway not in (None, each)]
    if lost:
        one = lost[0]
        reason = (
            f"{named(lost)}: npu{one} has {gateways[one] or 'none'}, /etc/hccn.conf says "
            f"{kept(seen.conf, one).gateway}"
        )
        yield failed(LOST, reason, npu=one)
    for npu, each in gateways.items():
        address = seen.address.of(npu)
        if each is not None and address is not None and each not in address.network:
            reason = f"npu{npu}: gateway {each} is not in {address.network}"
            yield failed(OUTSIDE, reason, npu=npu)
    without = [npu for npu, each in gateways.items() if each is None and npu not in lost]
    if without and any(gateways.values()):
        yield warned(SOME, f"{named(without)} have no gateway, the others do", npu=without[0])


CHECK = Check(
    id="physical.npu-gateway",
    title=Words("NPUs have their gateways", "NPU 网关配置正确"),
    subject=Machine,
    seen=Seen,
    judge=judge,
    needs=("physical.npu-ip",),
    causes=(LOST, OUTSIDE, SOME),
    platforms=ASCEND,
)
