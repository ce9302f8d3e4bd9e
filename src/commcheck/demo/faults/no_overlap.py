"""The job reduces its gradients only after the backward pass."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.fault import Fault
from commcheck.demo.job import trained
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    flags = ("--use-distributed-optimizer",)
    declared = (*host.declared, trained(flags))
    return replace(host, job=Job(flags=flags), declared=declared)


FAULT = Fault("no overlap in the job", change, "application.overlap", status="warn")
