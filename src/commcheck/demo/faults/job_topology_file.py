"""The job names a topology file that its container does not have."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, job=Job(variables=(("NCCL_TOPO_FILE", "/opt/topology/ndv4.xml"),)))


FAULT = Fault("NCCL_TOPO_FILE is not there", change, "library.env")
