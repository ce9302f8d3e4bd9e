"""One command prints 100 MB."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, flooding=("nvidia-smi nvlink -s",))


FAULT = Fault("a command prints 100 MB", change, "physical.nvlink-active", "error")
