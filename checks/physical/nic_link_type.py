"""The training NIC runs the link layer that the fabric is made of.

Why: A card that can do both (VPI) and was left in the other mode has no link to its switch, or is
skipped by every check of the right one: that rail is lost and looks as if it were not there.
Reads: ``link_layer`` of ``/sys/class/infiniband``, as found at the start of the session. One
verdict for each rail; the platform says what is wanted.
By hand: ``cat /sys/class/infiniband/HCA/ports/1/link_layer``; what the card is set to:
``mlxconfig -d PCI q LINK_TYPE_P1`` (root).
Mend: ask the owner first: it is a firmware setting. It is active after a power cycle or a firmware
reset, and names of devices change with it. Only VPI cards have it.
Healthy though odd: a storage card in the other mode is no rail; name the rails in
``commcheck_nics``. A fleet that mixes both on purpose says so with ``commcheck_link_layer``. AWS
EFA has neither link layer.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, expects, failed, passed, undecidable
from commcheck.expect import LINK_LAYER
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Want:
    """What the fabric is made of."""

    link_layer: Wanted[str] = expects(LINK_LAYER)


QUERY = Remedy(
    command="mlxconfig -d {pci} q LINK_TYPE_P{port}",
    driver="mlx5_core",
    effect=Words(
        "Shows the mode that the card will have after its next reset (root). No such parameter: "
        "it is no VPI card, replace it.",
        "显示网卡下次复位后的模式（需 root）。若无此参数：不是 VPI 卡，需更换。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
SET_MODE = Remedy(
    command="mlxconfig -d {pci} s LINK_TYPE_P{port}={mode}",
    driver="mlx5_core",
    effect=Words(
        "Writes the card's firmware setting; it survives a re-install. Active after a power cycle "
        "or mlxfwreset; the device gets another name.",
        "写入网卡固件配置，重装系统后仍然有效。断电重启或 mlxfwreset 后生效；设备名会改变。",
    ),
    precondition=Words(
        "Owner's consent, host drained, the query's answer saved, console access; the cable leads "
        "to the right switch.",
        "已获负责人同意、主机已排空、保存了查询结果并有控制台；线缆连接到正确的交换机。",
    ),
    who="vendor",
)

WRONG = Cause(
    slug="link-type-wrong",
    title=Words("NIC in the wrong link mode", "网卡链路类型错误"),
    meaning=Words(
        "The card speaks InfiniBand on an Ethernet fabric, or the reverse: usually a replacement "
        "that came in the factory's mode.",
        "网卡在以太网络中工作于 InfiniBand 模式（或相反）：通常是更换的新卡仍为出厂模式。",
    ),
    remedies=(QUERY, SET_MODE),
)


def judge(_seen: Nothing, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Compare the fact with the fabric."""
    wanted = want.link_layer.value
    if rail.link_layer is None:
        return undecidable(f"sysfs does not tell the link layer of {rail.label}")
    measured = {"link_layer": rail.link_layer}
    if rail.link_layer == wanted:
        return passed(f"{rail.label} is {rail.link_layer}", measured=measured)
    return failed(
        WRONG,
        f"{rail.label} is {rail.link_layer}, want {wanted}",
        measured=measured,
        pci=rail.pci or "?",
        port=rail.port,
        mode=2 if wanted == "Ethernet" else 1,
    )


def not_applicable(rail: Rail) -> str | None:
    """EFA has a link layer of its own, which no fabric of ours is made of."""
    return f"{rail.label} is no VPI card" if rail.link_layer == "Unspecified" else None


CHECK = Check(
    id="physical.nic-link-type",
    title=Words("NIC speaks the fabric's link layer", "网卡链路类型与网络一致"),
    subject=Rail,
    seen=Nothing,
    want=Want,
    judge=judge,
    needs=("physical.rdma-device-count",),
    causes=(WRONG,),
    platforms=frozenset({"gpu-roce", "gpu-ib"}),
    not_applicable=not_applicable,
)
