"""What a NIC counts, by what it is and not by a driver's name for it, and how it grows."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from commcheck.lazy import dataclass

PACKET_BYTES: Final = 4_120
"""An RDMA packet of the largest MTU, as a port counts it."""


@dataclass(frozen=True, slots=True)
class Count:
    """A counter: what it shows when it is first looked at, and what it adds each second after."""

    total: int = 0
    per_s: int = 0

    def at(self, second: int) -> int:
        """What it shows ``second`` seconds after the first look."""
        return self.total + second * self.per_s


NONE: Final = Count()


@dataclass(frozen=True, slots=True)
class Counts:
    """What one port and its card count; the defaults are those of a healthy one that works.

    Loss that follows from how the port is set (``paths.counted``) comes on top.
    """

    rdma_rx_bytes: Count = Count(371_302_214_332_110, 2_000_000_000)
    rdma_tx_bytes: Count = Count(371_291_118_820_104, 2_000_000_000)
    link_losses: Count = Count(1)  # the host's start
    corrected_bits: Count = Count(18_220_114, 1_800)  # grows on every healthy PAM4 link

    # Congestion. Durations in microseconds.
    ecn_marked: Count = Count(4_022)
    cnp_sent: Count = Count(1_203)
    cnp_handled: Count = Count(980)
    pauses_received: Count = Count(412)
    paused_us: Count = Count(9_120)
    pauses_sent: Count = Count(96)
    pausing_us: Count = NONE
    pause_storms: Count = NONE

    # Loss.
    discards: Count = NONE
    out_of_buffer: Count = NONE
    out_of_sequence: Count = NONE
    sequence_errors: Count = NONE  # told by the far end
    implied_naks: Count = NONE
    duplicate_requests: Count = NONE
    retransmissions: Count = NONE
    retransmission_timeouts: Count = NONE
    timeouts: Count = NONE
    damaged_payloads: Count = NONE  # the checksum of RDMA, where the link's was right

    # The wire and the slot.
    symbol_errors: Count = NONE
    crc_errors: Count = NONE
    uncorrectable: Count = NONE
    pcie_signal: Count = NONE
    pcie_stalls: Count = NONE
    aer_correctable: Count = NONE
    aer_nonfatal: Count = NONE
    aer_fatal: Count = NONE

    # InfiniBand only.
    ib_link_recoveries: Count = NONE
    ib_receive_errors: Count = NONE
    ib_discards: Count = NONE
    ib_wait: Count = Count(120_334, 40)

    def at(self, second: int) -> dict[str, int]:
        """Every counter by its name here, ``second`` seconds after the first look."""
        return {each.name: getattr(self, each.name).at(second) for each in fields(self)}


HEALTHY: Final = Counts()


def plus(one: Count, other: Count) -> Count:
    """Both together."""
    return Count(one.total + other.total, one.per_s + other.per_s)
