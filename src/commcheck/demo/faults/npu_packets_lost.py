"""Packets of an NPU are lost in the fabric."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(
        1,
        lambda npu: replace(
            npu,
            counts={
                "roce_new_pkt_rty_num": Count(48_211, 900),
                "roce_out_of_order_num": Count(220_331, 4_000),
            },
        ),
    )


FAULT = Fault("packets of an NPU are lost (Ascend)", change, "physical.npu-retransmit")
