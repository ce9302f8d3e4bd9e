"""The counters of an RDMA port and of its PCI device in /sys."""

from __future__ import annotations

from typing import Final

from commcheck.demo.counts import PACKET_BYTES
from commcheck.demo.parts import Entries, File
from commcheck.demo.paths import counted
from commcheck.demo.state import HostState, NicState
from commcheck.demo.sysfs.nic import pci_folder, port_folder

MLX5: Final = """
duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent
np_ecn_marked_roce_packets out_of_buffer out_of_sequence packet_seq_err req_cqe_error
req_cqe_flush_error req_remote_access_errors req_remote_invalid_request resp_cqe_error
resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err
roce_adp_retrans roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps
roce_slow_restart_trans rp_cnp_handled rp_cnp_ignored rx_atomic_requests rx_dct_connect
rx_icrc_encapsulated rx_read_requests rx_write_requests
"""

BNXT: Final = """
active_pds active_ahs active_qps rx_pkts rx_bytes tx_pkts tx_bytes recoverable_errors
tx_roce_errors tx_roce_discards rx_roce_errors rx_roce_discards to_retransmits seq_err_naks_rcvd
max_retry_exceeded rnr_naks_rcvd missing_resp unrecoverable_err bad_resp_err local_qp_op_err
local_protection_err mem_mgmt_op_err remote_invalid_req_err remote_access_err remote_op_err
dup_req oos_drop_count rx_ecn_marked_pkts tx_cnp_pkts rx_cnp_pkts
"""

INFINIBAND: Final = """
VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery
local_link_integrity_errors multicast_rcv_packets multicast_xmit_packets
port_rcv_constraint_errors port_rcv_data port_rcv_errors port_rcv_packets
port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors
port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error
unicast_rcv_packets unicast_xmit_packets
"""

_REQUEST_BYTES: Final = 131_072
"""A write of NCCL's usual chunk."""


def entries(host: HostState) -> Entries:
    """Of every NIC that is on the bus."""
    for nic in host.nics:
        if nic.present:
            yield from _port(nic, host.second)
            yield from _errors_of_pcie(nic, host.second)


def _port(nic: NicState, second: int) -> Entries:
    port = port_folder(nic)
    is_bnxt = nic.driver == "bnxt_en"
    own = (bnxt_values if is_bnxt else mlx5_values)(nic, second)
    for name in (BNXT if is_bnxt else MLX5).split():
        yield File(f"{port}/hw_counters/{name}", f"{own.get(name, 0)}\n")
    if nic.link_layer == "InfiniBand":  # Ethernet ports have these too, and nobody looks at them
        standard = infiniband_values(nic, second)
        for name in INFINIBAND.split():
            yield File(f"{port}/counters/{name}", f"{standard.get(name, 0)}\n")


def mlx5_values(nic: NicState, second: int) -> dict[str, int]:
    """What an mlx5 device shows in ``hw_counters`` that is not 0."""
    now = counted(nic).at(second)
    return {
        "duplicate_request": now["duplicate_requests"],
        "implied_nak_seq_err": now["implied_naks"],
        "lifespan": 10,
        "local_ack_timeout_err": now["timeouts"],
        "np_cnp_sent": now["cnp_sent"],
        "np_ecn_marked_roce_packets": now["ecn_marked"],
        "out_of_buffer": now["out_of_buffer"],
        "out_of_sequence": now["out_of_sequence"],
        "packet_seq_err": now["sequence_errors"],
        "roce_adp_retrans": now["retransmissions"],
        "roce_adp_retrans_to": now["retransmission_timeouts"],
        "rp_cnp_handled": now["cnp_handled"],
        "rx_icrc_encapsulated": now["damaged_payloads"],
        "rx_read_requests": 20_331,
        "rx_write_requests": now["rdma_rx_bytes"] // _REQUEST_BYTES,
    }


def bnxt_values(nic: NicState, second: int) -> dict[str, int]:
    """What a bnxt_re device shows in ``hw_counters`` that is not 0."""
    now = counted(nic).at(second)
    return {
        "active_qps": 130,
        "rx_pkts": now["rdma_rx_bytes"] // PACKET_BYTES,
        "tx_pkts": now["rdma_tx_bytes"] // PACKET_BYTES,
        "rx_roce_discards": now["discards"],
        "to_retransmits": now["timeouts"],
        "seq_err_naks_rcvd": now["sequence_errors"],
        "oos_drop_count": now["out_of_sequence"],
        "rx_ecn_marked_pkts": now["ecn_marked"],
        "tx_cnp_pkts": now["cnp_sent"],
        "rx_cnp_pkts": now["cnp_handled"],
    }


def infiniband_values(nic: NicState, second: int) -> dict[str, int]:
    """What an InfiniBand port shows in ``counters`` that is not 0; data in words of 4 bytes."""
    now = counted(nic).at(second)
    received, sent = now["rdma_rx_bytes"], now["rdma_tx_bytes"]
    return {
        "port_rcv_data": received // 4,
        "port_rcv_packets": received // PACKET_BYTES,
        "unicast_rcv_packets": received // PACKET_BYTES,
        "port_xmit_data": sent // 4,
        "port_xmit_packets": sent // PACKET_BYTES,
        "unicast_xmit_packets": sent // PACKET_BYTES,
        "symbol_error": min(now["symbol_errors"], 65_535),
        "link_downed": min(now["link_losses"] - 1, 255),
        "link_error_recovery": min(now["ib_link_recoveries"], 255),
        "port_rcv_errors": min(now["ib_receive_errors"], 65_535),
        "port_xmit_discards": min(now["ib_discards"], 65_535),
        "port_xmit_wait": now["ib_wait"],
    }


_AER: Final = {
    "correctable": ("RxErr BadTLP BadDLLP Rollover Timeout NonFatalErr CorrIntErr HeaderOF", "COR"),
    "nonfatal": (
        "Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt RxOF MalfTLP ECRC UnsupReq ACSViol "
        "UncorrIntErr BlockedTLP AtomicOpBlocked TLPBlockedErr PoisonTLPBlocked",
        "NONFATAL",
    ),
    "fatal": (
        "Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt RxOF MalfTLP ECRC UnsupReq ACSViol "
        "UncorrIntErr BlockedTLP AtomicOpBlocked TLPBlockedErr PoisonTLPBlocked",
        "FATAL",
    ),
}
"""Names of the kernel (drivers/pci/pcie/aer.c); counted is what comes first of each kind."""

_COUNTED: Final = {"correctable": "BadTLP", "nonfatal": "CmpltTO", "fatal": "DLP"}


def _errors_of_pcie(nic: NicState, second: int) -> Entries:
    now = counted(nic).at(second)
    for kind, (names, total) in _AER.items():
        count = now[f"aer_{kind}"]
        lines = [f"{name} {count if name == _COUNTED[kind] else 0}" for name in names.split()]
        lines.append(f"TOTAL_ERR_{total} {count}")
        yield File(f"{pci_folder(nic)}/aer_dev_{kind}", "".join(f"{line}\n" for line in lines))
