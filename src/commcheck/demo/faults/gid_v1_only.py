"""The ports offer RoCE v1 only, which no router carries."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(
        lambda nic: replace(
            nic,
            gids=tuple(
                replace(gid, index=gid.index // 2) for gid in nic.gids if gid.roce_version == 1
            ),
        )
    )


FAULT = Fault("no RoCE v2 address", change, "physical.roce-v2-gid")
