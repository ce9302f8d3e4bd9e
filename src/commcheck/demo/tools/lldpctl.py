"""``lldpctl -f json DEV``: the switch port beside each port, as lldpd heard of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState, NicState

TOOLS: Final = ("lldpctl",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every Ethernet port."""
    for nic in host.ports:
        if nic.present and nic.link_layer == "Ethernet":
            yield Answer(("lldpctl", "-f", "json", nic.netdev), lldpctl(nic))


def lldpctl(nic: NicState) -> str:
    """One neighbour, or none."""
    wire = nic.wire
    if not wire.switch or not nic.link_up:
        return json.dumps({"lldp": {}}, indent=2) + "\n"
    enabled = sum(1 << prio for prio in wire.switch_pfc)
    # IEEE 802.1Qaz PFC: eight classes, not willing; one bit a priority.
    pfc = {"oui": "00,80,C2", "subtype": "11", "len": "2", "value": f"08,{enabled:02X}"}
    port: dict[str, object] = {"id": {"type": "ifname", "value": wire.switch_port}}
    if wire.described_as:
        port["descr"] = wire.described_as
    neighbour = {
        "via": "LLDP",
        "rid": "1",
        "age": "3 days, 04:11:07",
        "chassis": {wire.switch: {"id": {"type": "mac", "value": "5c:07:58:1f:9a:00"}}},
        "port": {**port, "ttl": "120", "mfs": "9216"},
        "unknown-tlvs": {"unknown-tlv": [pfc]},
    }
    return json.dumps({"lldp": {"interface": {nic.netdev: neighbour}}}, indent=2) + "\n"
