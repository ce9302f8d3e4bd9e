"""A100 hosts with ConnectX-6 and RoCE at 200 Gb/s, on the software of their time."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState, NicState
from commcheck.demo.upkeep import GpuCare


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        product="HGX A100",
        kernel="5.4.0-182-generic",
        driver="470.57.02",
        driver_open=False,
        mlnx_tools=(5, 2),
        ethtool=(5, 4),
        nics=tuple(map(_nic, host.nics)),
        gpus=tuple(
            replace(
                gpu,
                name="NVIDIA A100-SXM4-80GB",
                links_gbytes=(25.0,) * 12,
                ring_share=0.78,
                nvls_gain=1.0,
                pcie_gen=4,
                pcie_max_gen=4,
                care=GpuCare(limit_watts=400.0, default_watts=400.0),
            )
            for gpu in host.gpus
        ),
    )


def _nic(nic: NicState) -> NicState:
    return replace(
        nic,
        speed_mbits=200_000,
        lanes=None,  # before kernel 5.14
        modes=(
            "50000baseCR/Full",
            "100000baseCR2/Full",
            "200000baseCR4/Full",
        ),
        firmware="20.39.2048",
        board_id="MT_0000000223",
        part_id=4123,
        pcie_gts=16.0,
        pcie_max_gts=16.0,
    )


PERSONA = Persona("A100, ConnectX-6, RoCE 200G", change, {"commcheck_line_rate_gbits": 200})
