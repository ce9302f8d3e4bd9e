"""A variable of the job is misspelt, and does nothing."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, job=Job(variables=(("NCCL_IB_TIMOUT", "22"),)))


FAULT = Fault("NCCL_IB_TIMOUT in the job", change, "library.env", status="warn")
