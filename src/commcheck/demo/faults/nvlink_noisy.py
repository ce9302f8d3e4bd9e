"""One NVLink of the fifth GPU was trained anew again and again."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(
        4, lambda gpu: replace(gpu, care=replace(gpu.care, link_errors=(88_120, 6, 912)))
    )


FAULT = Fault("errors on one NVLink", change, "physical.nvlink-errors", status="warn")
