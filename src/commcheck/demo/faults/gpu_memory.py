"""The memory of the fourth GPU had errors that ECC could not correct."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(3, lambda gpu: replace(gpu, ecc_errors=2))


FAULT = Fault("uncorrectable errors in GPU memory", change, "physical.gpu-ecc")
