"""H200 hosts with ConnectX-7 and InfiniBand NDR: no PFC, no RoCE, addresses of a subnet manager."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState, NicState
from commcheck.formats.gid_table import Gid


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        product="HGX H200",
        nics=tuple(_nic(host.number, rail, nic) for rail, nic in enumerate(host.nics)),
        gpus=tuple(replace(gpu, name="NVIDIA H200") for gpu in host.gpus),
    )


def _nic(number: int, rail: int, nic: NicState) -> NicState:
    return replace(
        nic,
        link_layer="InfiniBand",
        netdev=f"ibs{rail + 1}",
        lid=16 * number + rail + 1,
        sm_lid=1,
        mtu_bytes=4092,
        # Of an InfiniBand port the kernel shows one address, and no netdev of it.
        gids=(Gid(0, f"fe80:0000:0000:0000:{nic.guid}", 1, ""),),
    )


PERSONA = Persona(
    "H200, ConnectX-7, InfiniBand NDR",
    change,
    {"commcheck_line_rate_gbits": 400},
    like=("h100-ib",),
)
