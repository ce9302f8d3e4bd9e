"""The tool that reads bit error rates is not installed."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, missing=host.missing | {"mlxlink"})


FAULT = Fault("a tool is not installed", change, "physical.nic-ber", "error")
