"""The host's PFC is set by whom the fleet says: usually the host itself.

Why: DCBX lets the switch tell a port its PFC. Where the card's firmware runs it and is willing, the
switch overwrites what was set by hand, after the next link flap: "it worked yesterday".
Reads: ``mlnx_qos -i DEV``, or ``dcb -j dcbx show dev DEV`` where that is not installed; where the
firmware rules, ``mlxconfig -d PCI q`` (root). One verdict for each Ethernet rail.
By hand: ``mlnx_qos -i DEV | grep DCBX``; ``dcb dcbx show dev DEV`` lists "host" where the host has
it; what the firmware would do: ``mlxconfig -d PCI q LLDP_NB_DCBX_P1 DCBX_WILLING_P1`` (root).
Mend: ``mlnx_qos -i DEV -d os`` once the static settings are in place: PFC that came from the switch
disappears with it. Gone at a reboot or a driver restart unless made persistent.
On the switch: where DCBX is meant to rule, what it announces must be the fabric's PFC; else DCBX
off on the host ports.
Healthy though odd: firmware control with the firmware's own LLDP off (``LLDP_NB_DCBX_P1`` False)
changes nothing by itself: a warning, where it is known. Some fleets let the switch rule: declare
``commcheck_dcbx: firmware``. With ``lldpad`` the operating system has control too. Tools of 2017 do
not tell.
"""

from __future__ import annotations

from commcheck.applies import qos_owner
from commcheck.check import (
    Check,
    Nothing,
    Unread,
    expects,
    failed,
    not_applicable,
    passed,
    reads,
    tries,
    undecidable,
    warned,
)
from commcheck.expect import DCBX, FLOW_CONTROL
from commcheck.formats.mlxconfig import MLXCONFIG_DCBX, Mlxconfig
from commcheck.formats.port_qos import PORT_QOS
from commcheck.formats.qos import Qos
from commcheck.lazy import dataclass
from commcheck.model import Cause, Rail, Remedy, Verdict, Wanted, Words


@dataclass(frozen=True, slots=True)
class Seen:
    """The port's settings, from whichever tool is there, and the firmware's where it matters."""

    qos: Qos = reads(PORT_QOS)
    firmware: Mlxconfig | Unread = tries(MLXCONFIG_DCBX)


@dataclass(frozen=True, slots=True)
class Want:
    """Who sets PFC, and whether the fabric uses it."""

    dcbx: Wanted[str] = expects(DCBX)
    flow_control: Wanted[str] = expects(FLOW_CONTROL)


LOOK = Remedy(
    command="mlxconfig -d {pci} q LLDP_NB_DCBX_P1 DCBX_WILLING_P1",
    driver="mlx5_core",
    effect=Words(
        "Shows whether the firmware talks DCBX at all (root). Where both are False nothing "
        "overwrites the settings: declare commcheck_dcbx: firmware.",
        "查看固件是否启用 DCBX（需 root）。若均为 False 则不会被覆盖："
        "可声明 commcheck_dcbx: firmware。",
    ),
    precondition=Words("None, it only reads.", "无，只读。"),
)
TO_OS = Remedy(
    command="mlnx_qos -i {netdev} -d os",
    driver="mlx5_core",
    effect=Words(
        "The host rules from now on: PFC that came from the switch disappears. Gone at reboot or "
        "driver restart unless made persistent.",
        "此后由主机控制：来自交换机的 PFC 会消失。未做持久化则重启或重载驱动后失效。",
    ),
    precondition=Words(
        "No job on the host; trust, DSCP map and PFC are set by hand and read again afterwards.",
        "主机上没有作业；已静态配置信任模式、DSCP 映射与 PFC，并在之后重新读取。",
    ),
)
TO_FIRMWARE = Remedy(
    command="mlnx_qos -i {netdev} -d fw",
    driver="mlx5_core",
    effect=Words(
        "The firmware's DCBX rules from now on: what the switch announces overwrites PFC here.",
        "此后由固件 DCBX 控制：交换机通告的配置会覆盖本机 PFC。",
    ),
    precondition=Words(
        "No job on the host; the switch announces the fabric's PFC.",
        "主机上没有作业；交换机已正确通告该网络的 PFC。",
    ),
)

FIRMWARE = Cause(
    slug="dcbx-firmware",
    title=Words("DCBX is run by the firmware", "DCBX 由固件控制"),
    meaning=Words(
        "What the switch announces may overwrite the host's PFC after a link flap.",
        "链路抖动后，交换机通告的配置可能覆盖主机上的 PFC 设置。",
    ),
    remedies=(LOOK, TO_OS),
)
HOST = Cause(
    slug="dcbx-host",
    title=Words("DCBX is not run by the firmware", "DCBX 未由固件控制"),
    meaning=Words(
        "The fleet lets the switch rule through the firmware, and this port does not listen.",
        "集群约定由交换机经固件下发配置，但该端口未启用。",
    ),
    remedies=(TO_FIRMWARE,),
)


def judge(seen: Seen, rail: Rail, want: Want, _limits: Nothing) -> Verdict:
    """Compare who has control; lldpad works through the operating system."""
    named = f"{rail.label} ({rail.netdev})"
    if want.flow_control.value == "none":
        return not_applicable(f"{named}: flow control is none: {want.flow_control.origin}")
    found = seen.qos.dcbx
    if found is None:
        return undecidable(
            f"{named} does not tell who runs DCBX",
            turn_on="a newer mlnx-tools, or iproute2 5.11 or newer, prints it",
        )
    wanted = "firmware" if want.dcbx.value == "firmware" else "os"
    measured = {"dcbx": found}
    if found == wanted:
        return passed(f"{named} has DCBX under control of {found}", measured=measured)
    reason = f"{named} has DCBX under control of {found}, want {wanted}: {want.dcbx.origin}"
    places = {"netdev": str(rail.netdev), "pci": rail.pci or "?"}
    if found == "firmware" and (off := _firmware_lldp_off(seen.firmware, rail)):
        reason += f"; {off} is False, so that nothing overwrites PFC by itself"
        return warned(FIRMWARE, reason, measured=measured, **places)
    cause = FIRMWARE if found == "firmware" else HOST
    return failed(cause, reason, measured=measured, **places)


def _firmware_lldp_off(firmware: Mlxconfig | Unread, rail: Rail) -> str:
    """The setting by which the firmware listens to no switch; "" where it does, or is not known."""
    if isinstance(firmware, Unread):
        return ""
    # A card's second port is its second PCI function.
    name = f"LLDP_NB_DCBX_P{int((rail.pci or '0')[-1]) + rail.port}"
    return name if firmware.value(name) == "False" else ""


CHECK = Check(
    id="physical.dcbx-os",
    title=Words("PFC is set by whom it should be", "PFC 由预期一方配置"),
    subject=Rail,
    each_port=True,
    seen=Seen,
    want=Want,
    judge=judge,
    needs=("physical.nic-link-up", "physical.bluefield-mode"),
    causes=(FIRMWARE, HOST),
    platforms=frozenset({"gpu-roce"}),
    not_applicable=qos_owner,
)
