"""A rank of the job is stopped."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, job=Job(stopped=frozenset({5})))


FAULT = Fault("a rank of the job is stopped", change, "library.running-job")
