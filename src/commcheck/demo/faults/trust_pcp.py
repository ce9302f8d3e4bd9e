"""The ports look at the VLAN tag, which RoCE packets have not."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.every_nic(lambda nic: replace(nic, qos=replace(nic.qos, trust="pcp")))


FAULT = Fault("ports trust PCP, not DSCP", change, "physical.roce-trust-dscp")
