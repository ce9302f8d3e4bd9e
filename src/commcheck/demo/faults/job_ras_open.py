"""The job's RAS port listens on all interfaces."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, job=Job(variables=(("NCCL_RAS_ADDR", "0.0.0.0:28028"),)))


FAULT = Fault("NCCL's RAS port is open", change, "library.env", status="warn")
