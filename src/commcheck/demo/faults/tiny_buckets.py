"""The job's bucket size is given in megabytes, where elements are counted."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import OVERLAPS, Job
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, job=Job(flags=(*OVERLAPS, "--ddp-bucket-size", "25")))


FAULT = Fault("tiny buckets in the job", change, "application.buckets")
