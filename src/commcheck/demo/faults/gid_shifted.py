"""An IPv6 address moved the GIDs of one port; jobs use index 3 everywhere."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState, NicState
from commcheck.formats.gid_table import Gid


def change(host: HostState) -> HostState:
    """The facts that differ."""
    declared = (*host.declared, ("commcheck_gid_index", 3))
    return replace(host.nic(0, _shifted), declared=declared)


def _shifted(nic: NicState) -> NicState:
    first, rest = nic.gids[:2], nic.gids[2:]
    local = tuple(
        Gid(index, "fd00:0000:0000:00a1:0000:0000:0000:0015", version, nic.netdev)
        for index, version in ((2, 1), (3, 2))
    )
    moved = tuple(replace(gid, index=gid.index + 2) for gid in rest)
    return replace(nic, gids=(*first, *local, *moved))


FAULT = Fault("GID index 3 is IPv6 on one port", change, "physical.roce-gid-index")
