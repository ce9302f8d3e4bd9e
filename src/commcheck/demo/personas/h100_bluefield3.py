"""H100 hosts with BlueField-3 in NIC mode, where the host owns the settings of the port."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(
        lambda nic: replace(
            nic,
            firmware="32.43.1014",
            board_id="MT_0000001069",
            part_id=41692,
        )
    )


PERSONA = Persona("H100, BlueField-3, RoCE 400G", change, {"commcheck_line_rate_gbits": 400})
