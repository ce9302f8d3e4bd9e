"""An NPU does not take its packets and pauses the switch."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(4, lambda npu: replace(npu, counts={"tx_pfc4_duration_err_cnt": Count(2, 1)}))


FAULT = Fault("an NPU stops the switch (Ascend)", change, "physical.npu-pfc-storm")
