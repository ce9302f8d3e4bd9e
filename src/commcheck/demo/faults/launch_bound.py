"""The host's CPUs are throttled: every launch of a kernel takes a millisecond and a half."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, system=replace(host.system, launch_ns=1_500_000))


FAULT = Fault("a host that launches kernels slowly", change, "runtime.train-step")
