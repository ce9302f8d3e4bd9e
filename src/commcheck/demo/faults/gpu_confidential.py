"""Confidential computing was left on."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        gpus=tuple(replace(gpu, care=replace(gpu.care, protected_mib=81_559)) for gpu in host.gpus),
    )


FAULT = Fault("confidential computing on", change, "physical.gpu-confidential", status="warn")
