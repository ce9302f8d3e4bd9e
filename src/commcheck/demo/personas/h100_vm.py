"""Guests with eight H100 and a virtual function of each NIC: the port's settings are the host's."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState, NicState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host.every_nic(_nic),
        product="Standard PC (Q35 + ICH9, 2009)",
        is_guest=True,
        system=replace(host.system, iommu="DMA"),
    )


def _nic(nic: NicState) -> NicState:
    return replace(nic, is_vf=True, wire=replace(nic.wire, switch=""))


PERSONA = Persona(
    "H100 in a virtual machine, RoCE 400G", change, {"commcheck_line_rate_gbits": 400}
)
