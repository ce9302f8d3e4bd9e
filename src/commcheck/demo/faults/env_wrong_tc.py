"""The job's environment has a DSCP where the traffic class belongs."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, job=Job(variables=(("NCCL_IB_TC", "26"),)))


FAULT = Fault("NCCL_IB_TC is a DSCP", change, "library.env")
