"""The job's environment switches RDMA off."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, job=Job(variables=(("NCCL_IB_DISABLE", "1"),)))


FAULT = Fault("NCCL_IB_DISABLE=1 in the job", change, "library.env")
