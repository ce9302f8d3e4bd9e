"""The site's training gathers the weights of each block only when it needs them."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.job import trained
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    flags = ("--zero-stage", "3", "--stage3-prefetch-bucket-size", "0")
    return replace(host, declared=(*host.declared, trained(flags)))


FAULT = Fault("weights gathered at the last moment", change, "runtime.train-step")
