"""H100 hosts whose NICs have two ports of 200 Gb/s, bonded: one RDMA device for both (RoCE LAG)."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.state import MODES, HostState, NicState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, nics=tuple(_nic(rail, nic) for rail, nic in enumerate(host.nics)))


def _nic(rail: int, nic: NicState) -> NicState:
    bond = f"bond{rail}"
    return replace(
        nic,
        hca=f"mlx5_bond_{rail}",
        netdev=bond,
        gids=tuple(replace(gid, netdev=bond) for gid in nic.gids),
        members=tuple(f"ens{rail + 1}f{port}np{port}" for port in range(2)),
        speed_mbits=200_000,
        modes=MODES[:-1],
        board_id="MT_0000000834",
    )


PERSONA = Persona("H100, RoCE, 2 x 200G bonded", change, {"commcheck_line_rate_gbits": 200})
