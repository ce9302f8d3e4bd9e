"""``niccli``: Broadcom ports with the indices that the tool gives them, and their QoS settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState, NicState
from commcheck.formats.qos import Qos

TOOLS: Final = ("niccli",)

_RULE: Final = "-" * 76
_HEAD: Final = (
    f"{_RULE}\nScrutiny NIC CLI v231.2.63.0 - Broadcom Inc. (c) 2024 (Bld-94.52.34.117.16.0)\n"
    f"{_RULE}\n     BoardId     MAC Address        FwVersion    PCIAddr      Type   Mode\n"
)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of the ports that are on the bus; elsewhere the tool is not installed."""
    nics = [nic for nic in host.nics if nic.present and nic.driver == "bnxt_en"]
    if not nics:
        yield Answer(("niccli",), "", "sh: 1: niccli: not found\n", 127)
        return
    rows = [(f"84:16:0A:3E:0E:{n:02X}", nic) for n, nic in enumerate(nics, start=0x20)]
    yield Answer(("niccli", "--list"), listed(rows))
    for number, nic in enumerate(nics, start=1):
        yield Answer(("niccli", "-dev", str(number), "get_qos"), qos(nic.qos))


def listed(rows: Sequence[tuple[str, NicState]]) -> str:
    """``niccli --list``; the tool counts from 1. ``rows``: MAC address and port."""
    return _HEAD + "".join(
        f"  {number}) BCM57608    {mac}  {nic.firmware:<11}  {_pci(nic)}  NIC    PCI\n"
        for number, (mac, nic) in enumerate(rows, start=1)
    )


def _pci(nic: NicState) -> str:
    domain, bus, rest = nic.pci.split(":")
    device, function = rest.split(".")
    return f"{domain[-2:]}:{bus}:{device}:0{function}".upper()


def qos(settings: Qos) -> str:
    """``niccli -dev N get_qos``: RoCE in class 1, answers to congestion in class 2."""
    pfc = ",".join(map(str, sorted(settings.pfc))) or "none"
    pairs = sorted(settings.dscp_prio or (), reverse=True) if settings.trust == "dscp" else []
    entries = [(prio, 5, f"DSCP: {dscp}") for dscp, prio in pairs]
    entries.append((3, 3, "UDP or DCCP: 4791"))
    blank = " " * 9
    apps = "".join(
        f"{blank}APP#{at}:\n{blank}Priority: {prio}\n{blank}Sel: {sel}\n{blank}{what}\n\n"
        for at, (prio, sel, what) in enumerate(entries)
    )
    return (
        "\nIEEE 8021QAZ ETS Configuration TLV:\n"
        f"{blank}PRIO_MAP: 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:2 \n"
        f"{blank}TC Bandwidth: 50% 50% 0% \n"
        f"{blank}TSA_MAP: 0:ets 1:ets 2:strict \n"
        "IEEE 8021QAZ PFC TLV:\n"
        f"{blank}PFC enabled: {pfc}\n"
        f"IEEE 8021QAZ APP TLV:\n{apps}"
        "TC Rate Limit: 100% 100% 100% 0% 0% 0% 0% 0% \n"
    )
