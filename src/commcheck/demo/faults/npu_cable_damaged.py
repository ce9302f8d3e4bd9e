"""The fibre of an NPU damages packets."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ, on an Ascend host."""
    host = become("ascend-910b", host, known_personas())
    return host.npu(2, lambda npu: replace(npu, counts={"mac_rx_fcs_err_pkt_num": Count(77, 12)}))


FAULT = Fault("an NPU receives damaged packets (Ascend)", change, "physical.npu-bad-packets")
