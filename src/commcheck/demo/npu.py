"""The facts of a simulated NPU and of its port, as a healthy 910B has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from commcheck.demo.counts import Count
from commcheck.lazy import dataclass

PACKETS: Final = Count(88_119_922_013, 500_000)
"""Packets of a port under load."""


@dataclass(frozen=True, slots=True)
class NpuState:
    """One NPU with its own RoCE port. ``kept``: what /etc/hccn.conf says; None: as it is set.

    ``dscp_tc``: DSCP codes that are not in traffic class 0. ``counts``: counters that are not
    zero, by the tool's names. ``changes``: (seconds ago, state), newest first.
    """

    number: int  # physical chip id
    pci: str
    address: str | None
    gateway: str | None
    netmask: str = "255.255.255.0"
    netdetect: str | None = ""  # "": the gateway
    kept_address: str | None = ""  # "": as it is set
    name: str = "910B3"
    chips: int = 1  # of its module, which npu-smi counts as one NPU
    driver: str = "24.1.rc3"
    firmware: str = "7.5.0.1.129"
    cann: str = "8.0.RC3"  # of its host
    present: bool = True
    health: str = "OK"
    link_up: bool = True
    net_health: str = "Success"
    speed_mbits: int = 200_000
    mtu_bytes: int = 4096
    fec: str = "rs"
    tls: int = 0
    pfc: frozenset[int] = frozenset({4})
    dscp_tc: tuple[tuple[int, int], ...] = ((33, 1),)
    rx_mw: tuple[float, ...] = (1.0189, 1.0242, 0.9911, 1.0312)
    module: bool = True
    switch: str = "leaf-npu-01"
    vlan: int = 200  # of the switch port
    vnic: str | None = None  # of an A3: its address on HCCS
    far_hccs: frozenset[int] = frozenset()  # chips that it reaches over SYS only
    changes: tuple[tuple[int, str], ...] = ((1_324_643, "UP"),)
    counts: Mapping[str, Count] = field(default_factory=dict)

    @property
    def asked(self) -> str | None:
        """The address that it keeps asking."""
        return self.gateway if self.netdetect == "" else self.netdetect

    @property
    def kept(self) -> str | None:
        """The address that it gets when the host starts."""
        return self.address if self.kept_address == "" else self.kept_address


_BUSES: Final = (0xC1, 0x01, 0xC2, 0x02, 0x81, 0x41, 0x82, 0x42)
"""PCI buses of the chips of a 910B board in the order of their ids, which is not PCI's."""


def a3_npus(number: int) -> Iterable[NpuState]:
    """Of host ``number``: eight modules of two chips, each chip with a port and on HCCS."""
    for npu in range(16):
        net = f"10.21.{npu + 1}"
        yield NpuState(
            npu,
            f"0000:{0x81 + 2 * npu:02x}:00.0",
            f"{net}.{number + 10}",
            f"{net}.1",
            name="Ascend910",
            chips=2,
            vnic=f"192.{number % 256}.{npu}.199",
        )


def healthy_npus(number: int) -> Iterable[NpuState]:
    """Of host ``number``: eight, each port in the subnet of its rail."""
    for npu, bus in enumerate(_BUSES):
        net = f"10.20.{npu + 1}"
        yield NpuState(npu, f"0000:{bus:02x}:00.0", f"{net}.{number + 10}", f"{net}.1")
