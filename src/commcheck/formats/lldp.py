"""The switch port beside a NIC port, as LLDP tells it, whichever daemon is asked."""

from __future__ import annotations

from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A device that announced itself on a port. ``None`` is not announced.

    ``peer_pfc``: priorities that the switch says are lossless on its side (IEEE 802.1Qaz).
    """

    switch: str | None  # its system name
    chassis: str | None  # its chassis id, usually a MAC
    port: str | None  # the port's id: "Ethernet12"
    port_description: str | None = None
    max_frame_bytes: int | None = None
    peer_pfc: frozenset[int] | None = None
    peer_pfc_willing: bool | None = None

    @property
    def name(self) -> str:
        """What a person calls the other end."""
        return self.switch or self.chassis or "a device without a name"
