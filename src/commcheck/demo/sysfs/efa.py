"""The EFA devices in /sys: no netdev, no GIDs with a type, and counters of their own."""

from __future__ import annotations

from typing import Final

from commcheck.demo.counts import Count
from commcheck.demo.efa import PACKETS, SENT_AGAIN, EfaState
from commcheck.demo.parts import Entries, File, Link
from commcheck.demo.state import HostState

COUNTERS: Final = """
tx_bytes tx_pkts rx_bytes rx_pkts rx_drops send_bytes send_wrs recv_bytes recv_wrs rdma_read_wrs
rdma_read_bytes rdma_read_wr_err rdma_read_resp_bytes rdma_write_wrs rdma_write_bytes
rdma_write_wr_err rdma_write_recv_bytes retrans_bytes retrans_pkts retrans_timeout_events
impaired_remote_conn_events unresponsive_remote_events
"""
"""Of a port (Linux drivers/infiniband/hw/efa/efa_verbs.c)."""

_PORT: Final = {
    "link_layer": "Unspecified",
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "100 Gb/sec (4X EDR)",
    "lid": "0x0",
    "sm_lid": "0x0",
}


def entries(host: HostState) -> Entries:
    """Of every device."""
    for efa in host.efas:
        device = f"sys/devices/{efa.root}/{efa.bridge}/{efa.pci}"
        infiniband = f"{device}/infiniband/{efa.name}"
        yield File(f"{device}/vendor", "0x1d0f\n")
        yield File(f"{device}/device", "0xefa2\n")
        yield File(f"{device}/class", "0x020000\n")
        yield Link(f"{device}/driver", "sys/bus/pci/drivers/efa")
        yield File("sys/bus/pci/drivers/efa/module/version", "2.13.0g\n")
        yield Link(f"{infiniband}/device", device)
        yield Link(f"sys/class/infiniband/{efa.name}", infiniband)
        yield Link(f"sys/bus/pci/devices/{efa.pci}", device)
        port = f"{infiniband}/ports/1"
        for name, text in _PORT.items():
            yield File(f"{port}/{name}", f"{text}\n")
        yield File(f"{port}/gids/0", "fe80:0000:0000:0000:0411:22ff:fe33:4455\n")
        for name in COUNTERS.split():
            yield File(f"{port}/hw_counters/{name}", f"{_count(efa, name).at(host.second)}\n")


def _count(efa: EfaState, name: str) -> Count:
    healthy = {"tx_pkts": PACKETS, "rx_pkts": PACKETS, "retrans_pkts": SENT_AGAIN}
    return efa.counts.get(name, healthy.get(name, Count()))
