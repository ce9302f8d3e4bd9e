"""The third GPU computes slowly, and nothing that it says of itself tells."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(2, lambda gpu: replace(gpu, pace=0.6))


FAULT = Fault("a GPU that computes slowly without a sign", change, "runtime.train-step")
