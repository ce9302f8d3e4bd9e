"""H100 hosts with BlueField-3 in DPU mode: the Arm side owns the port, and hears its switch."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.personas import h100_bluefield3
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return h100_bluefield3.change(host).every_nic(
        lambda nic: replace(nic, embedded_cpu=True, wire=replace(nic.wire, switch=""))
    )


PERSONA = Persona(
    "H100, BlueField-3 in DPU mode, RoCE 400G",
    change,
    {"commcheck_line_rate_gbits": 400, "commcheck_bluefield_mode": "dpu"},
)
