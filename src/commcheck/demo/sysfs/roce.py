"""Marking, congestion control, partition keys and lids of each port, in /sys."""

from __future__ import annotations

from commcheck.demo.parts import Entries, File
from commcheck.demo.state import HostState, NicState
from commcheck.demo.sysfs.nic import net_folder, pci_folder, port_folder


def entries(host: HostState) -> Entries:
    """Of every NIC that is on the bus."""
    for nic in host.nics:
        if nic.present:
            yield from port(nic)
            if nic.link_layer == "Ethernet" and nic.driver == "mlx5_core":
                yield from marking(nic)


def port(nic: NicState) -> Entries:
    """Lids as the kernel prints them, and a partition table with empty slots."""
    folder = port_folder(nic)
    yield File(f"{folder}/lid", f"0x{nic.lid:x}\n")
    yield File(f"{folder}/sm_lid", f"0x{nic.sm_lid:x}\n")
    for slot, key in enumerate((*nic.wire.pkeys, 0, 0)):
        yield File(f"{folder}/pkeys/{slot}", f"0x{key:04x}\n")


def marking(nic: NicState) -> Entries:
    """What the vendor's driver adds, and RDMA-CM's defaults."""
    wire = nic.wire
    hca = f"{pci_folder(nic)}/infiniband/{nic.hca}"
    forced = "" if wire.forced_tclass is None else f"Global tclass={wire.forced_tclass}\n"
    yield File(f"{hca}/tc/1/traffic_class", forced)
    for net in () if nic.is_vf else map(net_folder, nic.ports):
        for side in ("roce_np", "roce_rp"):
            for prio in range(8):
                yield File(f"{net}/ecn/{side}/enable/{prio}", f"{int(prio in wire.ecn)}\n")
        yield File(f"{net}/ecn/roce_np/cnp_dscp", "48\n")
        yield File(f"{net}/ecn/roce_np/cnp_802p_prio", "6\n")
    cma = f"sys/kernel/config/rdma_cm/{nic.hca}/ports/1"
    yield File(f"{cma}/default_roce_mode", f"{wire.cma_mode}\n")
    yield File(f"{cma}/default_roce_tos", "106\n")
