"""EFA devices of an AWS host send a hundredth of their packets again."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.efa import SENT_AGAIN
from commcheck.demo.fault import Fault
from commcheck.demo.persona import become, known_personas
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    host = become("h100-efa", host, known_personas())
    many = {"retrans_pkts": Count(SENT_AGAIN.total, 2_500)}
    return host.every_efa(lambda efa: replace(efa, counts=many))


FAULT = Fault("EFA sends much again (AWS)", change, "physical.efa-counters", "warn")
