"""Why a check is none of a rail's business: the answers that several checks share.

Each function returns a few words for the report, or None where the check applies. A rail that is
absent, or whose link layer is not known, stays: saying nothing of it would hide it. A bond itself
comes here only where the check is not asked of each port.
"""

from __future__ import annotations

from commcheck.model import Rail


def ethernet_only(rail: Rail) -> str | None:
    """InfiniBand has no Ethernet link, no netdev MTU and no RoCE GIDs; EFA has none either."""
    if rail.link_layer in (None, "Ethernet"):
        return None
    return f"{rail.label} is {rail.link_layer}, not Ethernet"


def ethernet_port_owner(rail: Rail) -> str | None:
    """PFC, trust and buffers belong to the physical port: a VF or a bond cannot tell of them."""
    if (reason := ethernet_only(rail)) is not None:
        return reason
    if rail.is_vf:
        return f"{rail.label} is a virtual function: read this on the host that owns the port"
    if rail.ports:
        return f"{rail.netdev} is a bond: this belongs to its member ports"
    return None


def qos_owner(rail: Rail) -> str | None:
    """PFC, trust, the DSCP map and DCBX of a BlueField in DPU mode are its Arm side's."""
    if (reason := ethernet_port_owner(rail)) is not None:
        return reason
    if rail.qos_on_arm:
        return f"{rail.label} is a BlueField in DPU mode: read this on its Arm side"
    return None
