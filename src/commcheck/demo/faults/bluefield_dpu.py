"""The NICs are BlueField-3 in DPU mode, which nobody declared."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.personas import h100_bluefield3
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return h100_bluefield3.change(host).every_nic(lambda nic: replace(nic, embedded_cpu=True))


FAULT = Fault("BlueField in DPU mode, undeclared", change, "physical.bluefield-mode", status="skip")
