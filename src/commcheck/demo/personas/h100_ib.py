"""H100 hosts with ConnectX-7 and InfiniBand NDR."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.personas import h200_ib
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    fabric = h200_ib.change(host)
    return replace(fabric, product=host.product, gpus=host.gpus)


PERSONA = Persona("H100, ConnectX-7, InfiniBand NDR", change, {"commcheck_line_rate_gbits": 400})
