"""H100 hosts on a fabric that is lossy by design: no PFC anywhere, ECN alone keeps queues short."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState, NicState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(_nic)


def _nic(nic: NicState) -> NicState:
    sizes = (262016, 0, 0, 0, 0, 0, 0, 0)
    return replace(
        nic,
        ecn_only=True,
        qos=replace(nic.qos, pfc=frozenset(), buffers_bytes=sizes, prio_buffer=(0,) * 8),
        wire=replace(nic.wire, switch_pfc=frozenset()),
    )


PERSONA = Persona(
    "H100, ConnectX-7, lossy RoCE 400G",
    change,
    {"commcheck_line_rate_gbits": 400, "commcheck_flow_control": "none"},
)
