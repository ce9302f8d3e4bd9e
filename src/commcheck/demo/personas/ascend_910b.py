"""Ascend hosts with eight 910B: each NPU has a RoCE port of its own, and the host no other NIC."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.npu import healthy_npus
from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        product="Atlas 800T A2",
        nics=(),
        gpus=(),
        npus=tuple(healthy_npus(host.number)),
        modules=(),
    )


PERSONA = Persona(
    "Ascend 910B, a 200G RoCE port on each NPU",
    change,
    {"commcheck_npu_count": 8, "commcheck_line_rate_gbits": 200},
    like=("ascend-910c",),
)
