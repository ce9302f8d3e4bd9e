"""The raw bit errors of one link are above what correction is made for."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.fault import Fault
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return host.nic(
        0,
        lambda nic: replace(
            nic, wire=replace(nic.wire, raw_ber="3E-5", recommendation="Bad signal integrity")
        ),
    )


FAULT = Fault("bit errors on one link", change, "physical.nic-ber")
