"""``mlxlink -d PCI -c --json``: the link as the card's firmware sees it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState, NicState

TOOLS: Final = ("mlxlink",)

_NVIDIA: Final = 0x02C9

_LANE_ERRORS: Final = ("120331", "118822", "121033", "119921")


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every card of the vendor."""
    for nic in host.ports:
        if nic.present and nic.vendor_id == _NVIDIA and not nic.is_vf:
            yield Answer(("mlxlink", "-d", nic.pci, "-c", "--json"), mlxlink(nic))


def mlxlink(nic: NicState) -> str:
    """The JSON; every value in it is a text."""
    up, wire = nic.link_up, nic.wire
    operational = {
        "Auto Negotiation": "ON",
        "FEC": "Standard_RS-FEC - (544,514)" if up else "N/A",
        "Loopback Mode": "No Loopback",
        "Physical state": "LinkUp" if up else "Disabled",
        "Speed": f"{nic.speed_mbits // 1000}G" if up else "N/A",
        "State": "Active" if up else "Polling",
        "Width": f"{nic.lanes or 4}x" if up else "N/A",
    }
    counters = {
        "Effective Physical BER": wire.effective_ber if up else "N/A",
        "Effective Physical Errors": "0" if up else "N/A",
        "Link Down Counter": "0" if up else "N/A",
        "Raw Physical BER": wire.raw_ber if up else "N/A",
        "Raw Physical Errors Per Lane": {"values": list(_LANE_ERRORS) if up else ["N/A"] * 4},
    }
    trouble = {
        "Group Opcode": "N/A",
        "Recommendation": wire.recommendation if up else "Cable is unplugged",
        "Status Opcode": "0" if up else "1024",
    }
    sections = {
        "Operational Info": operational,
        "Physical Counters and BER Info": counters,
        "Troubleshooting Info": trouble,
    }
    document = {"result": {"output": sections}, "status": {"code": 0, "message": "success"}}
    return json.dumps(document, indent=4) + "\n"
