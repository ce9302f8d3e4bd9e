"""The last GPU is on the bus, and the driver cannot talk to it any more."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(-1, lambda gpu: replace(gpu, lost=True))


FAULT = Fault("a GPU fell off the bus", change, "physical.gpu-driver")
