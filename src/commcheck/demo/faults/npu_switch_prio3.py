"""The switch pauses priority 3 of an NPU, which sends on 4."""

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
        0, lambda npu: replace(npu, counts={"mac_rx_pfc_pri3_pkt_num": Count(991_203, 400)})
    )


FAULT = Fault(
    "the switch pauses another priority of an NPU (Ascend)", change, "physical.npu-pfc-priority"
)
