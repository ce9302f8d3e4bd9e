"""``ibv_devinfo``: the RDMA devices and the state of their ports, short and with ``-v``."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import MTU_CODES, HostState, NicState, active_mtu_bytes, port_state
from commcheck.formats.gid_table import Gid

TOOLS: Final = ("ibv_devinfo",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every device, and of all."""
    nics = [nic for nic in host.nics if nic.present]
    for nic in nics:
        yield Answer(("ibv_devinfo", "-d", nic.hca), render(nic))
        yield Answer(("ibv_devinfo", "-v", "-d", nic.hca), render(nic, verbose=True))
    yield Answer(("ibv_devinfo",), "".join(map(render, nics)))


def render(nic: NicState, *, verbose: bool = False) -> str:
    """One HCA of ``ibv_devinfo``."""
    board = "" if nic.board_id is None else f"\tboard_id:\t\t\t{nic.board_id}\n"
    return (
        f"hca_id:\t{nic.hca}\n"
        "\ttransport:\t\t\tInfiniBand (0)\n"
        f"\tfw_ver:\t\t\t\t{nic.firmware}\n"
        f"\tnode_guid:\t\t\t{nic.guid}\n"
        f"\tsys_image_guid:\t\t\t{nic.image_guid}\n"
        f"\tvendor_id:\t\t\t0x{nic.vendor_id:04x}\n"
        f"\tvendor_part_id:\t\t\t{nic.part_id}\n"
        f"\thw_ver:\t\t\t\t0x{nic.hw_ver:X}\n"
        f"{board}"
        "\tphys_port_cnt:\t\t\t1\n"
        f"{_CAPABILITIES if verbose else ''}"
        f"{_port(nic)}"
        f"{_more_of_port(nic) if verbose else ''}"
        "\n"
    )


def _port(nic: NicState) -> str:
    if nic.link_layer == "InfiniBand":
        mtu = 4096  # of the fabric, whatever the netdev's
    else:
        mtu = active_mtu_bytes(nic.mtu_bytes if nic.link_up else 1500)
    code, word = port_state(nic)
    return (
        "\t\tport:\t1\n"
        f"\t\t\tstate:\t\t\tPORT_{word} ({code})\n"
        "\t\t\tmax_mtu:\t\t4096 (5)\n"
        f"\t\t\tactive_mtu:\t\t{mtu} ({MTU_CODES[mtu]})\n"
        f"\t\t\tsm_lid:\t\t\t{nic.sm_lid}\n"
        f"\t\t\tport_lid:\t\t{nic.lid}\n"
        "\t\t\tport_lmc:\t\t0x00\n"
        f"\t\t\tlink_layer:\t\t{nic.link_layer}\n"
    )


# --- with -v ------------------------------------------------------------------------------------

_SPEEDS: Final = {200: ("200.0 Gbps", 256), 100: ("100.0 Gbps", 128), 50: ("50.0 Gbps", 64),
                  25: ("25.0 Gbps", 32), 10: ("10.0 Gbps", 4)}  # fmt: skip
"""Gb/s of a lane, and IBV_SPEED_* of the verbs API."""

_BY_LAYER: Final = {
    "Ethernet": ("0x04010000", "invalid value (0)", 1, 0),
    "InfiniBand": ("0xa751e848", "4 (3)", 128, 18),
}
"""Capabilities, virtual lanes, length of the partition table, timeout of the subnet."""


def _more_of_port(nic: NicState) -> str:
    flags, lanes, pkeys, timeout = _BY_LAYER[nic.link_layer]
    speed, code = _SPEEDS[nic.speed_mbits // 4000]
    return (
        "\t\t\tmax_msg_sz:\t\t0x40000000\n"
        f"\t\t\tport_cap_flags:\t\t{flags}\n"
        "\t\t\tport_cap_flags2:\t0x0000\n"
        f"\t\t\tmax_vl_num:\t\t{lanes}\n"
        "\t\t\tbad_pkey_cntr:\t\t0x0\n"
        "\t\t\tqkey_viol_cntr:\t\t0x0\n"
        "\t\t\tsm_sl:\t\t\t0\n"
        f"\t\t\tpkey_tbl_len:\t\t{pkeys}\n"
        "\t\t\tgid_tbl_len:\t\t16\n"
        f"\t\t\tsubnet_timeout:\t\t{timeout}\n"
        "\t\t\tinit_type_reply:\t0\n"
        "\t\t\tactive_width:\t\t4X (2)\n"
        f"\t\t\tactive_speed:\t\t{speed} ({code})\n"
        "\t\t\tphys_state:\t\tLINK_UP (5)\n"
        f"{''.join(_gid(gid, nic.link_layer) for gid in nic.gids)}"
    )


def _gid(gid: Gid, link_layer: str) -> str:
    text, kind = gid.gid, ""
    if link_layer == "Ethernet":
        kind = f", RoCE v{gid.roce_version}"
    if gid.roce_version == 2:
        address = ipaddress.IPv6Address(gid.gid)
        v4 = address.ipv4_mapped
        text = f"::ffff:{v4}" if v4 else str(address)
    return f"\t\t\tGID[{gid.index:3d}]:\t\t{text}{kind}\n"


_CAPABILITIES: Final = """\
\tmax_mr_size:\t\t\t0xffffffffffffffff
\tpage_size_cap:\t\t\t0xfffffffffffff000
\tmax_qp:\t\t\t\t131072
\tmax_qp_wr:\t\t\t32768
\tdevice_cap_flags:\t\t0x21361c36
\t\t\t\t\tBAD_PKEY_CNTR
\t\t\t\t\tBAD_QKEY_CNTR
\t\t\t\t\tAUTO_PATH_MIG
\t\t\t\t\tCHANGE_PHY_PORT
\t\t\t\t\tPORT_ACTIVE_EVENT
\t\t\t\t\tSYS_IMAGE_GUID
\t\t\t\t\tRC_RNR_NAK_GEN
\t\t\t\t\tMEM_WINDOW
\t\t\t\t\tUD_IP_CSUM
\t\t\t\t\tXRC
\t\t\t\t\tMEM_MGT_EXTENSIONS
\t\t\t\t\tMEM_WINDOW_TYPE_2B
\t\t\t\t\tMANAGED_FLOW_STEERING
\tmax_sge:\t\t\t30
\tmax_sge_rd:\t\t\t30
\tmax_cq:\t\t\t\t16777216
\tmax_cqe:\t\t\t4194303
\tmax_mr:\t\t\t\t16777216
\tmax_pd:\t\t\t\t8388608
\tmax_qp_rd_atom:\t\t\t16
\tmax_ee_rd_atom:\t\t\t0
\tmax_res_rd_atom:\t\t2097152
\tmax_qp_init_rd_atom:\t\t16
\tmax_ee_init_rd_atom:\t\t0
\tatomic_cap:\t\t\tATOMIC_HCA (1)
\tmax_ee:\t\t\t\t0
\tmax_rdd:\t\t\t0
\tmax_mw:\t\t\t\t16777216
\tmax_raw_ipv6_qp:\t\t0
\tmax_raw_ethy_qp:\t\t0
\tmax_mcast_grp:\t\t\t2097152
\tmax_mcast_qp_attach:\t\t240
\tmax_total_mcast_qp_attach:\t503316480
\tmax_ah:\t\t\t\t2147483647
\tmax_fmr:\t\t\t0
\tmax_srq:\t\t\t8388608
\tmax_srq_wr:\t\t\t32767
\tmax_srq_sge:\t\t\t31
\tmax_pkeys:\t\t\t128
\tlocal_ca_ack_delay:\t\t16
\tgeneral_odp_caps:
\trc_odp_caps:
\t\t\t\t\tNO SUPPORT
\tuc_odp_caps:
\t\t\t\t\tNO SUPPORT
\tud_odp_caps:
\t\t\t\t\tNO SUPPORT
\txrc_odp_caps:
\t\t\t\t\tNO SUPPORT
\tcompletion_timestamp_mask not supported
\tcore clock not supported
\tdevice_cap_flags_ex:\t\t0x0
\ttso_caps:
\t\tmax_tso:\t\t\t0
\trss_caps:
\t\tmax_rwq_indirection_tables:\t\t\t0
\t\tmax_rwq_indirection_table_size:\t\t\t0
\t\trx_hash_function:\t\t\t\t0x0
\t\trx_hash_fields_mask:\t\t\t\t0x0
\tmax_wq_type_rq:\t\t\t0
\tpacket_pacing_caps:
\t\tqp_rate_limit_min:\t0kbps
\t\tqp_rate_limit_max:\t0kbps
\ttag matching not supported
\tnum_comp_vectors:\t\t63
"""
"""What the card can do at most: alike on all that the recordings know."""
