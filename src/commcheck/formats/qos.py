"""The quality-of-service settings of an Ethernet port, whichever tool reads them."""

from __future__ import annotations

from typing import Literal

from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """One traffic class: its priorities, scheduling and limit."""

    tc: int
    priorities: tuple[int, ...]
    tsa: str  # "vendor", "strict", "ets", "unknown"
    bandwidth_percent: int | None = None  # of ETS only
    ratelimit_gbits: float | Literal["unlimited"] | None = None  # None: not known


@dataclass(frozen=True, slots=True)
class Qos:
    """What is set on the port. ``None`` is not known, never off or zero."""

    pfc: frozenset[int]  # priorities with PFC on
    trust: str | None = None  # "dscp", "pcp", "none"
    dcbx: str | None = None  # "os", "firmware"
    dscp_prio: tuple[tuple[int, int], ...] | None = None  # (DSCP, priority), sorted
    default_prio: int | None = None
    buffers_bytes: tuple[int, ...] | None = None  # by buffer number
    buffers_total_bytes: int | None = None
    prio_buffer: tuple[int, ...] | None = None  # buffer of each priority
    cable_m: int | None = None
    traffic_classes: tuple[TrafficClass, ...] | None = None
    lldpad_running: bool | None = None
