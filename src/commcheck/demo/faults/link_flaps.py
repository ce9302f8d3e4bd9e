"""The link of the third rail goes down and up again."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.counts import Count
from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        2, lambda nic: replace(nic, counts=replace(nic.counts, link_losses=Count(23, 1)))
    )


FAULT = Fault("a link goes down and up", change, "physical.nic-link-flaps")
