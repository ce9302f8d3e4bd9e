"""The facts of a simulated EFA device: attached to an instance, nothing on it to be set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from commcheck.demo.counts import Count
from commcheck.lazy import dataclass

PACKETS: Final = Count(44_019_961_006, 250_000)
"""Packets of a device under load."""

SENT_AGAIN: Final = Count(1_203_118, 4)
"""Of them, by SRD on a healthy day."""


@dataclass(frozen=True, slots=True)
class EfaState:
    """One device. ``opened``: libfabric can use it. ``counts``: by the driver's names, not zero."""

    name: str
    root: str
    bridge: str
    pci: str
    opened: bool = True
    counts: Mapping[str, Count] = field(default_factory=dict)
