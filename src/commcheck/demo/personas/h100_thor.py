"""H100 hosts with Broadcom Thor and RoCE at 200 Gb/s: another driver, without mlnx_qos."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState, NicState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        missing=host.missing | {"mlnx_qos"},
        modules=tuple(
            replace(
                module,
                name=module.name.replace("mlx5_ib", "bnxt_re").replace("mlx5_core", "bnxt_en"),
                users=tuple(user.replace("mlx5_ib", "bnxt_re") for user in module.users),
            )
            for module in host.modules
        ),
        nics=tuple(_nic(rail, nic) for rail, nic in enumerate(host.nics)),
    )


def _nic(rail: int, nic: NicState) -> NicState:
    hca, netdev = f"bnxt_re{rail}", f"ens{rail + 21}np0"
    return replace(
        nic,
        hca=hca,
        netdev=netdev,
        driver="bnxt_en",
        driver_version="1.10.3-231.0.162.0",
        qos=replace(nic.qos, dscp_prio=((26, 3), (48, 7))),
        gids=tuple(replace(gid, netdev=netdev) for gid in nic.gids),
        speed_mbits=200_000,
        lanes=None,
        autoneg=False,
        modes=("50000baseCR/Full", "100000baseCR2/Full", "200000baseCR4/Full"),
        firmware="231.0.153.0",
        board_id=None,
        vendor_id=0x14E4,
        part_id=5984,
        hw_ver=0x1216,
        pcie_gts=16.0,
        pcie_max_gts=16.0,
    )


PERSONA = Persona("H100, Broadcom Thor, RoCE 200G", change, {"commcheck_line_rate_gbits": 200})
