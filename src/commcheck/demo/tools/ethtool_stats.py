"""``ethtool -S``: the counters of a port by its driver's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from commcheck.demo.counts import PACKET_BYTES
from commcheck.demo.parts import Answer
from commcheck.demo.paths import counted, roce_priority
from commcheck.demo.state import HostState, NicState

TOOLS: Final = ("ethtool",)

_MLX5: Final = """
rx_packets rx_bytes tx_packets tx_bytes tx_tso_packets tx_tso_bytes tx_tso_inner_packets
tx_tso_inner_bytes tx_added_vlan_packets tx_nop tx_mpwqe_blks tx_mpwqe_pkts rx_lro_packets
rx_lro_bytes rx_gro_packets rx_gro_bytes rx_gro_skbs rx_ecn_mark rx_removed_vlan_packets
rx_csum_unnecessary rx_csum_none rx_csum_complete tx_csum_none tx_csum_partial tx_queue_stopped
tx_queue_dropped tx_xmit_more tx_recover tx_cqes tx_queue_wake tx_cqe_err rx_wqe_err
rx_oversize_pkts_sw_drop rx_buff_alloc_err rx_recover rx_out_of_buffer rx_if_down_packets
rx_steer_missed_packets rx_oversize_pkts_buffer rx_vport_unicast_packets rx_vport_unicast_bytes
tx_vport_unicast_packets tx_vport_unicast_bytes rx_vport_rdma_unicast_packets
rx_vport_rdma_unicast_bytes tx_vport_rdma_unicast_packets tx_vport_rdma_unicast_bytes
tx_packets_phy rx_packets_phy rx_crc_errors_phy tx_bytes_phy rx_bytes_phy tx_multicast_phy
tx_broadcast_phy rx_multicast_phy rx_broadcast_phy rx_in_range_len_errors_phy
rx_out_of_range_len_phy rx_oversize_pkts_phy rx_symbol_err_phy tx_mac_control_phy
rx_mac_control_phy rx_unsupported_op_phy rx_pause_ctrl_phy tx_pause_ctrl_phy rx_discards_phy
tx_discards_phy tx_errors_phy rx_undersize_pkts_phy rx_fragments_phy rx_jabbers_phy
rx_64_bytes_phy rx_4096_to_8191_bytes_phy link_down_events_phy rx_pcs_symbol_err_phy
rx_corrected_bits_phy rx_err_lane_0_phy rx_err_lane_1_phy rx_err_lane_2_phy rx_err_lane_3_phy
rx_buffer_passed_thres_phy rx_pci_signal_integrity tx_pci_signal_integrity
outbound_pci_stalled_rd outbound_pci_stalled_wr outbound_pci_stalled_rd_events
outbound_pci_stalled_wr_events
"""

_MLX5_PRIO: Final = """
rx_{}_bytes rx_{}_packets rx_{}_discards tx_{}_bytes tx_{}_packets
"""

_MLX5_PAUSE: Final = """
rx_{}_pause rx_{}_pause_duration tx_{}_pause tx_{}_pause_duration rx_{}_pause_transition
"""

_MLX5_END: Final = """
tx_pause_storm_warning_events tx_pause_storm_error_events module_unplug module_bus_stuck
module_high_temp module_bad_shorted ch0_events ch0_poll rx0_packets rx0_bytes tx0_packets
tx0_bytes
"""

_BNXT: Final = """
rx_ucast_packets rx_mcast_packets rx_bcast_packets rx_discards rx_errors rx_ucast_bytes
tx_ucast_packets tx_discards tx_errors tx_ucast_bytes rx_total_l4_csum_errors rx_total_resets
rx_total_buf_errors rx_total_oom_discards rx_total_netpoll_discards rx_total_ring_discards
tx_total_resets tx_total_ring_discards total_missed_irqs rx_64b_frames rx_good_frames
rx_fcs_err_frames rx_ctrl_frames rx_pause_frames rx_pfc_frames rx_align_err_frames
rx_ovrsz_frames rx_jbr_frames rx_mtu_err_frames rx_tagged_frames rx_good_frames
rx_pfc_ena_frames_pri{N} rx_sch_crc_err_frames rx_undrsz_frames rx_bytes rx_runt_bytes
rx_runt_frames rx_stat_discard rx_stat_err tx_64b_frames tx_good_frames tx_pause_frames
tx_pfc_frames tx_jabber_frames tx_fcs_err_frames tx_err tx_pfc_ena_frames_pri{N} tx_bytes
tx_stat_discard tx_stat_error link_down_events continuous_pause_events resume_pause_events
continuous_roce_pause_events resume_roce_pause_events rx_bytes_cos{N} rx_packets_cos{N}
pfc_pri{N}_rx_duration_us+pfc_pri{N}_rx_transitions rx_bits rx_buffer_passed_threshold
rx_pcs_symbol_err rx_corrected_bits rx_discard_bytes_cos{N} rx_discard_packets_cos{N}
rx_fec_corrected_blocks rx_fec_uncorrectable_blocks rx_bytes_pri{N} rx_packets_pri{N}
tx_bytes_pri{N} tx_packets_pri{N}
"""


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every port."""
    for nic in host.ports:
        if nic.present and nic.link_layer == "Ethernet":
            yield Answer(("ethtool", "-S", nic.netdev), stats(nic, host.second))


def stats(nic: NicState, second: int) -> str:
    """The answer of the port's driver, ``second`` seconds after the first look."""
    values = (bnxt_values if nic.driver == "bnxt_en" else mlx5_values)(nic, second)
    return render(layout(nic), values)


def render(names: Iterable[str], values: Mapping[str, int]) -> str:
    """The counters in their order; one without a value is 0."""
    lines = "".join(f"     {name}: {values.get(name, 0)}\n" for name in names)
    return f"NIC statistics:\n{lines}"


def layout(nic: NicState) -> list[str]:
    """The names that the driver shows: mlx5 has pause counters only where pausing is on."""
    if nic.driver == "bnxt_en":
        return [each for names in _BNXT.split() for each in _of_every_priority(names)]
    pausing = ["global"] if nic.pause_rx or nic.pause_tx else map(_prio, sorted(nic.qos.pfc))
    return [
        *_MLX5.split(),
        *(name.format(_prio(prio)) for prio in range(8) for name in _MLX5_PRIO.split()),
        *(name.format(each) for each in pausing for name in _MLX5_PAUSE.split()),
        *_MLX5_END.split(),
    ]


def _prio(prio: int) -> str:
    return f"prio{prio}"


def _of_every_priority(names: str) -> Iterator[str]:
    """``a+b`` is one after the other, for each priority where ``{N}`` is in them."""
    for prio in range(8 if "{N}" in names else 1):
        yield from names.format(N=prio).split("+")


def mlx5_values(nic: NicState, second: int) -> dict[str, int]:
    """What an mlx5 port shows that is not 0."""
    prio, now = _prio(roce_priority(nic)), counted(nic).at(second)
    rx, tx = now["rdma_rx_bytes"], now["rdma_tx_bytes"]
    pausing = "global" if nic.pause_rx or nic.pause_tx else prio
    lane_bits = now["corrected_bits"] // 4
    return {
        "rx_packets": 1_840_221,
        "rx_bytes": 402_119_811,
        "tx_packets": 1_611_032,
        "tx_bytes": 311_204_551,
        "rx_vport_rdma_unicast_packets": rx // PACKET_BYTES,
        "rx_vport_rdma_unicast_bytes": rx,
        "tx_vport_rdma_unicast_packets": tx // PACKET_BYTES,
        "tx_vport_rdma_unicast_bytes": tx,
        "rx_packets_phy": rx // PACKET_BYTES + 1_840_221,
        "tx_packets_phy": tx // PACKET_BYTES + 1_611_032,
        "rx_bytes_phy": rx + 402_119_811,
        "tx_bytes_phy": tx + 311_204_551,
        f"rx_{prio}_bytes": rx,
        f"rx_{prio}_packets": rx // PACKET_BYTES,
        f"rx_{prio}_discards": now["discards"],
        f"tx_{prio}_bytes": tx,
        f"tx_{prio}_packets": tx // PACKET_BYTES,
        "rx_discards_phy": now["discards"],
        "rx_out_of_buffer": now["out_of_buffer"],
        "rx_symbol_err_phy": now["symbol_errors"],
        "rx_crc_errors_phy": now["crc_errors"],
        "rx_pcs_symbol_err_phy": now["uncorrectable"],
        "rx_corrected_bits_phy": now["corrected_bits"],
        **{f"rx_err_lane_{lane}_phy": lane_bits for lane in range(4)},
        "link_down_events_phy": now["link_losses"],
        "rx_pci_signal_integrity": now["pcie_signal"],
        "outbound_pci_stalled_wr_events": now["pcie_stalls"],
        f"rx_{pausing}_pause": now["pauses_received"],
        f"rx_{pausing}_pause_duration": now["paused_us"],
        f"rx_{pausing}_pause_transition": now["pauses_received"] // 2,
        f"tx_{pausing}_pause": now["pauses_sent"],
        f"tx_{pausing}_pause_duration": now["pausing_us"],
        "tx_pause_storm_error_events": now["pause_storms"],
    }


def bnxt_values(nic: NicState, second: int) -> dict[str, int]:
    """What a bnxt_en port shows that is not 0."""
    prio, now = roce_priority(nic), counted(nic).at(second)
    rx, tx = now["rdma_rx_bytes"], now["rdma_tx_bytes"]
    return {
        "rx_good_frames": rx // PACKET_BYTES,
        "tx_good_frames": tx // PACKET_BYTES,
        "rx_fcs_err_frames": now["crc_errors"],
        "rx_pfc_frames": now["pauses_received"],
        f"rx_pfc_ena_frames_pri{prio}": now["pauses_received"],
        f"pfc_pri{prio}_rx_duration_us": now["paused_us"],
        f"pfc_pri{prio}_rx_transitions": now["pauses_received"] // 2,
        "tx_pfc_frames": now["pauses_sent"],
        f"tx_pfc_ena_frames_pri{prio}": now["pauses_sent"],
        "continuous_roce_pause_events": now["pause_storms"],
        "rx_bytes": rx,
        "tx_bytes": tx,
        "rx_stat_discard": now["discards"],
        "rx_discard_packets_cos0": now["discards"],
        "link_down_events": now["link_losses"],
        "rx_pcs_symbol_err": now["symbol_errors"],
        "rx_corrected_bits": now["corrected_bits"],
        "rx_fec_uncorrectable_blocks": now["uncorrectable"],
        f"rx_bytes_pri{prio}": rx,
        f"rx_packets_pri{prio}": rx // PACKET_BYTES,
        f"tx_bytes_pri{prio}": tx,
        f"tx_packets_pri{prio}": tx // PACKET_BYTES,
    }
