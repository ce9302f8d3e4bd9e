"""The job was started with a limit of locked memory that its hosts' logins do not have."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.facts import Job
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(host, job=Job(memlock="8388608"))


FAULT = Fault("the job may lock 8 MiB", change, "library.env")
