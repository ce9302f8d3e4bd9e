"""Two NVLinks of the third GPU are inactive."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.gpu(
        2,
        lambda gpu: replace(
            gpu,
            links_gbytes=tuple(
                None if link in (5, 11) else gbytes for link, gbytes in enumerate(gpu.links_gbytes)
            ),
        ),
    )


FAULT = Fault("two NVLinks of one GPU inactive", change, "physical.nvlink-active")
