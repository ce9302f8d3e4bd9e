"""``lspci -D -vvv``: the NICs, and the bridges above them and the GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import GpuState, HostState, NicState

TOOLS: Final = ("lspci",)

_ACS: Final = {
    True: "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-",
    False: "SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-",
}


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Each NIC, and all bridges."""
    for nic in host.ports:
        if nic.present:
            yield Answer(("lspci", "-D", "-vvv", "-s", nic.pci), endpoint(nic))
    yield Answer(("lspci", "-D", "-vvv", "-d", "::0604"), "".join(bridges(host)))


def endpoint(nic: NicState) -> str:
    """The card's own registers, as far as anybody looks at them."""
    return (
        f"{nic.pci} Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
        f"{_express('Endpoint', nic.wire.read_request_bytes)}"
        f"{_link(nic.pcie_max_gts, nic.pcie_max_width, nic.pcie_gts, nic.pcie_width)}\n"
    )


def bridges(host: HostState) -> Iterator[str]:
    """Root ports, and the ports of the switches below them."""
    below: dict[str, list[NicState | GpuState]] = {}
    devices: list[NicState | GpuState] = [nic for nic in host.nics if nic.present]
    for device in [*devices, *host.gpus]:
        below.setdefault(device.root, []).append(device)
    for root, mine in below.items():
        port, upstream = root.split("/")[1:]
        ways = sorted({device.bridge for device in mine})
        last = max(_bus(device.pci) for device in mine)
        yield _bridge(port, "Root Port (Slot-)", (_bus(upstream), last), acs=False)
        yield _bridge(upstream, "Upstream Port", (_bus(ways[0]), last), acs=None)
        for way in ways:
            buses = [_bus(device.pci) for device in mine if device.bridge == way]
            down = "Downstream Port (Slot+)"
            yield _bridge(way, down, (min(buses), max(buses)), acs=host.system.acs)


def _bus(pci: str) -> int:
    return int(pci.split(":")[1], 16)


def _bridge(slot: str, kind: str, buses: tuple[int, int], *, acs: bool | None) -> str:
    first, last = buses
    text = (
        f"{slot} PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch\n"
        f"\tBus: primary={_bus(slot):02x}, secondary={first:02x}, subordinate={last:02x}, "
        "sec-latency=0\n"
        f"{_express(kind, 512)}{_link(32.0, 16, 32.0, 16)}"
    )
    if acs is not None:
        text += f"\tCapabilities: [150 v1] Access Control Services\n\t\tACSCtl:\t{_ACS[acs]}\n"
    return f"{text}\n"


def _express(kind: str, read_request_bytes: int) -> str:
    return (
        f"\tCapabilities: [60] Express (v2) {kind}, MSI 00\n"
        "\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq-\n"
        "\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+\n"
        f"\t\t\tMaxPayload 512 bytes, MaxReadReq {read_request_bytes} bytes\n"
    )


def _link(max_gts: float, max_width: int, gts: float, width: int) -> str:
    mark = " (downgraded)" if width < max_width else ""
    return (
        f"\t\tLnkCap:\tPort #0, Speed {max_gts:g}GT/s, Width x{max_width}, ASPM not supported\n"
        f"\t\tLnkSta:\tSpeed {gts:g}GT/s, Width x{width}{mark}\n"
    )
