"""A job on NPUs marks its packets as GPU fabrics do: DSCP 26, priority 3."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import GOOD_JOB
from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    marks = (("HCCL_RDMA_TC", "104"), ("HCCL_RDMA_SL", "3"))
    return replace(host, job=replace(host.job or GOOD_JOB, variables=marks))


FAULT = Fault(
    "a job's HCCL_RDMA_TC is that of GPU fabrics, PFC is on for another priority (Ascend)",
    change,
    "library.env",
)
