"""H100 hosts with ConnectX-7 and RoCE at 400 Gb/s: what every other persona differs from."""

from __future__ import annotations

from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """Nothing differs."""
    return host


PERSONA = Persona("H100, ConnectX-7, RoCE 400G", change, {"commcheck_line_rate_gbits": 400})
