"""The job's RoCE packets carry no mark, and ride on best effort."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(lambda nic: replace(nic, roce_dscp=0))


FAULT = Fault("RoCE packets carry no DSCP", change, "physical.roce-traffic-on-pfc-prio")
