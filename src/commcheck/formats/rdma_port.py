"""One port of an HCA as sysfs, ``rdma link``, ``ibstat`` and ``ibstatus`` tell it, in one form."""

from __future__ import annotations

from typing import Final

from commcheck.lazy import dataclass, regex

STATES: Final = {
    "Down": "DOWN",
    "Initializing": "INIT",
    "Armed": "ARMED",
    "Active": "ACTIVE",
}
"""Words of ibstat, and those of the verbs API."""

PHYS_STATES: Final = {
    "SLEEP": "Sleep",
    "POLLING": "Polling",
    "DISABLED": "Disabled",
    "ARMED": "PortConfigurationTraining",
    "LINK_UP": "LinkUp",
    "LINK_ERROR_RECOVER": "LinkErrorRecovery",
}
"""Words of rdma, and those of sysfs."""

RATE: Final = regex(r"(\d{1,4}(?:\.\d)?) Gb/sec(?: \((\d{1,2})X(?: (\w+))?\))?")
"""``400 Gb/sec (4X NDR)``."""

SYSFS_STATE: Final = regex(r"\d: (NOP|DOWN|INIT|ARMED|ACTIVE|ACTIVE_DEFER)")
SYSFS_PHYS: Final = regex(r"\d: (\w[\w ]*)")
HEX: Final = regex(r"0x[0-9a-fA-F]{1,8}")


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One port. ``None`` is not told by the tool. Rate and lids mean nothing while it is down."""

    hca: str
    port: int
    state: str | None = None  # "ACTIVE", "DOWN", "INIT", "ARMED"
    phys_state: str | None = None  # "LinkUp", "Polling", "Disabled", ...
    link_layer: str | None = None  # "Ethernet", "InfiniBand"
    rate_gbits: float | None = None
    lanes: int | None = None
    signal: str | None = None  # of a lane: "NDR", "HDR", "EDR"
    lid: int | None = None
    sm_lid: int | None = None
    netdev: str | None = None
    pkeys: tuple[tuple[int, int], ...] | None = None  # (slot, key), without empty slots
