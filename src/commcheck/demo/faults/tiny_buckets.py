"""The job's bucket size is given in megabytes, where elements are counted."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import OVERLAPS, Job
from commcheck.demo.fault import Fault
from commcheck.demo.job import trained
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    flags = (*OVERLAPS, "--ddp-bucket-size", "25")
    declared = (*host.declared, trained(flags))
    return replace(host, job=Job(flags=flags), declared=declared)


FAULT = Fault("tiny buckets in the job", change, "application.buckets")
