"""B200 hosts with ConnectX-8 and RoCE at 800 Gb/s."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.state import MODES, HostState, NicState
from commcheck.demo.upkeep import GpuCare


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        product="HGX B200",
        kernel="6.8.0-60-generic",
        driver="570.124.06",
        nics=tuple(map(_nic, host.nics)),
        gpus=tuple(
            replace(
                gpu,
                name="NVIDIA B200",
                links_gbytes=(53.125,) * 18,
                ring_share=0.713,
                nvls_gain=1.225,
                care=GpuCare(limit_watts=1000.0, default_watts=1000.0),
            )
            for gpu in host.gpus
        ),
    )


def _nic(nic: NicState) -> NicState:
    return replace(
        nic,
        speed_mbits=800_000,
        modes=(*MODES, "800000baseCR4/Full"),
        firmware="40.44.1036",
        board_id="MT_0000001222",
        part_id=4131,
        pcie_gts=64.0,
        pcie_max_gts=64.0,
    )


PERSONA = Persona("B200, ConnectX-8, RoCE 800G", change, {"commcheck_line_rate_gbits": 800})
