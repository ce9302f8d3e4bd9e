"""A800 hosts with ConnectX-6 and RoCE at 200 Gb/s: an A100 with eight of its twelve NVLinks."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.personas import a100_roce
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    host = a100_roce.change(host)
    return replace(
        host,
        product="HGX A800",
        driver="525.147.05",
        gpus=tuple(
            replace(gpu, name="NVIDIA A800-SXM4-80GB", links_gbytes=(25.0,) * 8)
            for gpu in host.gpus
        ),
    )


PERSONA = Persona("A800, ConnectX-6, RoCE 200G", change, {"commcheck_line_rate_gbits": 200})
