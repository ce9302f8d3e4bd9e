"""How the GPUs of a simulated host are kept, and the host around them."""

from __future__ import annotations

from typing import Final

from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class GpuCare:
    """One GPU: its modes, its power, its memory and its links.

    ``fabric``: state and status of its registration. ``link_errors``: of one link, packets sent
    again, trainings, damaged packets.
    """

    persistence: bool = True
    compute_mode: str = "Default"
    mig: bool = False
    ecc: bool = True
    requires_reset: bool = False
    temperature_c: int = 41
    limit_watts: float = 700.0
    default_watts: float = 700.0
    enforced_watts: float | None = None  # None: as set
    rows_replaced: int = 0
    remap_pending: bool = False
    remap_failed: bool = False
    fabric: tuple[str, str] = ("Completed", "Success")
    protected_mib: int = 0
    link_errors: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The host. ``xids``: seconds since the boot, and what the driver said in the kernel's log."""

    fabric_manager: str = "active"  # as systemd says
    fabric_manager_version: str | None = None  # None: the driver's
    governor: str = "performance"
    numa_told: bool = True
    pair_lost: tuple[int, int] | None = None  # GPUs that NVLink does not join
    clock_offset_s: float = 0.000012
    clock_synchronized: bool = True
    shm_total_kib: int = 1_056_628_736
    shm_free_kib: int = 1_056_612_000
    xids: tuple[tuple[float, str], ...] = ()


GOOD_CARE: Final = GpuCare()
GOOD_UPKEEP: Final = Upkeep()
"""As they are on a healthy host."""
