"""The firmware of the third GPU stopped answering the driver, an hour ago."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState

_AN_HOUR_AGO_S = 864_000.0 - 3_600.0


def change(host: HostState) -> HostState:
    """The facts that differ."""
    report = f"NVRM: Xid (PCI:{host.gpus[2].pci[:-2]}): 119, Timeout after 45s of waiting for RPC"
    return replace(host, upkeep=replace(host.upkeep, xids=((_AN_HOUR_AGO_S, report),)))


FAULT = Fault("a GPU's firmware hangs (Xid 119)", change, "runtime.xid")
