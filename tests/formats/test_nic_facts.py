"""Every recording of the tools of NIC, link and switch: its facts, or why it has none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats import (
    cma_roce,
    ethtool_driver,
    ethtool_fec,
    ethtool_module,
    ethtool_ring,
    fi_info,
    ibdev2netdev,
    ibstat,
    ibstatus,
    iommu,
    ip_addresses,
    ipv4_conf,
    lldpctl,
    lldptool,
    lspci,
    mlxconfig,
    mlxlink,
    nccl_conf,
    niccli,
    nvidia_topo,
    port_state,
    proc_limits,
    rdma_link,
    roce_marking,
    show_gids,
)
from commcheck.formats.ethtool_driver import EthtoolDriver
from commcheck.formats.ethtool_fec import EthtoolFec
from commcheck.formats.ethtool_module import EthtoolModule
from commcheck.formats.ethtool_ring import EthtoolRing
from commcheck.formats.ibdev2netdev import PortNetdev
from commcheck.formats.lldp import Neighbour
from commcheck.formats.lldptool import PfcTlv
from commcheck.formats.mlxconfig import Mlxconfig
from commcheck.formats.mlxlink import Mlxlink
from commcheck.formats.niccli import NicCliDevice
from commcheck.formats.proc_limits import LockedMemory
from commcheck.formats.qos import Qos, TrafficClass
from commcheck.formats.rdma_port import RdmaPort
from commcheck.formats.roce_marking import RoceMarking
from commcheck.formats.show_gids import GidRow

RECORDED = Path(__file__).parents[1] / "recorded"

Parse = Callable[..., Any]


def text_of(name: str) -> str:
    return (RECORDED / name).read_bytes().decode()


IB = RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", "InfiniBand", 400, lid=17, sm_lid=1)
ROCE = replace(IB, link_layer="Ethernet", lid=0, sm_lid=0)
SYSFS_IB = replace(IB, lanes=4, signal="NDR", pkeys=((0, 0xFFFF),))
SYSFS_ROCE = replace(SYSFS_IB, link_layer="Ethernet", lid=0, sm_lid=0)
LINK = RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", netdev="ens1np0")

LL0 = "fe80:0000:0000:0000:a288:c2ff:fe5a:1b40"
V4 = "0000:0000:0000:0000:0000:ffff:0a64:0115"
ULA = "fd00:0000:0000:00a1:0000:0000:0000:0015"


def gids(*rows: tuple[str, int, str | None], netdev: str = "ens1np0") -> tuple[GidRow, ...]:
    """Rows of mlx5_0: (gid, version, ipv4)."""
    return tuple(
        GidRow("mlx5_0", 1, index, gid, ipv4, version, netdev)
        for index, (gid, version, ipv4) in enumerate(rows)
    )


LINK_LOCAL = ((LL0, 1, None), (LL0, 2, None))
IPV4 = ((V4, 1, "10.100.1.21"), (V4, 2, "10.100.1.21"))

NO_LIGHT = tuple((lane, -math.inf) for lane in (5, 6, 7, 8))
MODULE = EthtoolModule(
    identifier="OSFP 8X Pluggable Transceiver",
    vendor="NVIDIA",
    part_number="MMA4Z00-NS400",
    state="ModuleReady",
    fault=None,
    temperature_c=52.03,
    temperature_alarm_c=None,
    temperature_warning_c=None,
    rx_low_alarm_dbm=None,
    rx_low_warning_dbm=None,
    rx_dbm=((1, 0.35), (2, 0.42), (3, 0.18), (4, 0.30), *NO_LIGHT),
    tx_dbm=((1, 0.95), (2, 0.93), (3, 1.01), (4, 0.97), *NO_LIGHT),
    bias_ma=tuple((lane, 6.92 if lane <= 4 else 0.0) for lane in range(1, 9)),
    flags=(),
)
DARK = tuple(
    (f"laser rx power low {word}", lane) for lane in (1, 2, 3, 4) for word in ("alarm", "warning")
)

MLXLINK = Mlxlink(
    state="Active",
    phys_state="LinkUp",
    speed="400G",
    width="4x",
    fec="Standard_RS-FEC - (544,514)",
    recommendation="No issue was observed",
    opcode=0,
    raw_ber=2e-8,
    effective_ber=0.0,
    effective_errors=0,
    link_downs=0,
)
NO_LINK = replace(
    MLXLINK,
    speed=None,
    width=None,
    fec=None,
    raw_ber=None,
    effective_ber=None,
    effective_errors=None,
    link_downs=None,
)

LEAF = Neighbour(
    "leaf-01",
    "5c:07:58:1f:9a:00",
    "Ethernet12",
    "gpu-01:ens1np0",
    9216,
    frozenset({3}),
    False,
)

THOR = Qos(
    pfc=frozenset({3}),
    trust="dscp",
    dscp_prio=((26, 3), (48, 7)),
    traffic_classes=(
        TrafficClass(0, (0, 1, 2, 4, 5, 6), "ets", 50),
        TrafficClass(1, (3,), "ets", 50),
        TrafficClass(2, (7,), "strict"),
    ),
)

FACTS: list[tuple[Parse, str, Any]] = [
    (show_gids.parse, "show_gids/index-shifted.txt",
     gids(*LINK_LOCAL, (ULA, 1, None), (ULA, 2, None), *IPV4)),
    (show_gids.parse, "show_gids/no-ipv4.txt", gids(*LINK_LOCAL)),
    (show_gids.parse, "show_gids/v1-only.txt", gids((LL0, 1, None), IPV4[0])),
    (show_gids.parse, "show_gids/vlan.txt", gids(*LINK_LOCAL)
     + tuple(replace(row, netdev="ens1np0.100") for row in gids(*LINK_LOCAL, *IPV4)[2:])),
    (show_gids.parse, "show_gids/ib.txt",
     (GidRow("mlx5_0", 1, 0, "fe80:0000:0000:0000:a088:c203:005a:1b40", None, 1, None),)),
    (show_gids.parse, "show_gids/none.txt", ()),
    (ibdev2netdev.parse, "ibdev2netdev/good.txt",
     tuple(PortNetdev(f"mlx5_{n}", 1, f"ens{n + 1}np0", True) for n in range(8))),
    (ibdev2netdev.parse, "ibdev2netdev/one-down.txt",
     (PortNetdev("mlx5_0", 1, "ens1np0", True), PortNetdev("mlx5_1", 1, "ens2np0", False))),
    (ibdev2netdev.parse, "ibdev2netdev/ib.txt",
     (PortNetdev("mlx5_0", 1, "ib0", True), PortNetdev("mlx5_1", 1, "ib1", False))),
    (ibdev2netdev.parse, "ibdev2netdev/old-style.txt",
     (PortNetdev("mlx4_0", 1, "ib0"), PortNetdev("mlx4_0", 2, "ib1"))),
    (ibdev2netdev.parse, "ibdev2netdev/verbose.txt",
     (PortNetdev("mlx5_0", 1, "ens1np0", True), PortNetdev("mlx5_1", 1, "ens2np0", False))),
    (ibstat.parse, "ibstat/ib-ndr-good.txt", (IB, replace(IB, hca="mlx5_1", lid=18))),
    (ibstat.parse, "ibstat/roce-400g-good.txt", (ROCE,)),
    (ibstat.parse, "ibstat/effective-speed-new.txt", (IB,)),
    (ibstat.parse, "ibstat/ib-rate-100.txt", (replace(IB, rate_gbits=100),)),
    (ibstat.parse, "ibstat/ib-initializing.txt",
     (replace(IB, state="INIT", lid=65535, sm_lid=0),)),
    (ibstat.parse, "ibstat/ib-disabled.txt",
     (replace(IB, state="DOWN", phys_state="Disabled", rate_gbits=40, lid=0, sm_lid=0),)),
    (ibstat.parse, "ibstat/ib-polling.txt",
     (IB, replace(IB, hca="mlx5_1", state="DOWN", phys_state="Polling", rate_gbits=10,
                  lid=65535, sm_lid=0))),
    (ibstat.parse, "ibstat/empty.txt", ()),
    (ibstatus.parse, "ibstatus/roce-good.txt", (replace(SYSFS_ROCE, pkeys=None),)),
    (ibstatus.parse, "ibstatus/ib-width-1x.txt",
     (replace(SYSFS_IB, rate_gbits=100, lanes=1, pkeys=None),)),
    (ibstatus.parse, "ibstatus/ib-xdr-800.txt",
     (replace(SYSFS_IB, rate_gbits=800, signal="XDR", lid=33, pkeys=None),)),
    (port_state.parse, "sysfs/port-roce-400g.txt", SYSFS_ROCE),
    (port_state.parse, "sysfs/port-ib-ndr.txt",
     replace(SYSFS_IB, pkeys=((0, 0xFFFF), (1, 0x8001)))),
    (port_state.parse, "sysfs/port-ib-no-sm.txt",
     replace(SYSFS_IB, state="INIT", lid=65535, sm_lid=0)),
    (port_state.parse, "sysfs/port-ib-1x.txt", replace(SYSFS_IB, rate_gbits=100, lanes=1)),
    (port_state.parse, "sysfs/port-ib-edr.txt", replace(SYSFS_IB, rate_gbits=100, signal="EDR")),
    (port_state.parse, "sysfs/port-ib-limited.txt", replace(SYSFS_IB, pkeys=((0, 0x7FFF),))),
    (port_state.parse, "sysfs/port-ib-tenant-second.txt",
     replace(SYSFS_IB, pkeys=((0, 0x7FFF), (2, 0x800B)))),
    (port_state.parse, "sysfs/port-down.txt",
     replace(SYSFS_ROCE, state="DOWN", phys_state="Disabled", rate_gbits=40, signal="QDR")),
    (rdma_link.parse, "rdma/link-roce-good.json",
     tuple(replace(LINK, hca=f"mlx5_{n}", netdev=f"ens{n + 1}np0") for n in range(8))),
    (rdma_link.parse, "rdma/link-roce-good.txt",
     tuple(replace(LINK, hca=f"mlx5_{n}", netdev=f"ens{n + 1}np0") for n in range(8))),
    (rdma_link.parse, "rdma/link-details.txt", (LINK,)),
    (rdma_link.parse, "rdma/link-one-down.txt",
     (LINK, RdmaPort("mlx5_1", 1, "DOWN", "Disabled", netdev="ens2np0"))),
    (rdma_link.parse, "rdma/link-no-netdev.txt",
     (LINK, replace(LINK, hca="mlx5_1", netdev=None))),
    *[
        (rdma_link.parse, f"rdma/link-ib.{form}",
         (RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", lid=17, sm_lid=1),
          RdmaPort("mlx5_1", 1, "INIT", "LinkUp", lid=65535, sm_lid=0)))
        for form in ("txt", "json")
    ],
    (rdma_link.parse, "rdma/link-empty.json", ()),
    (cma_roce.parse, "cma_roce/mode-v1.txt", 1),
    (cma_roce.parse, "cma_roce/mode-v2.txt", 2),
    (cma_roce.parse_tos, "cma_roce/tos-0.txt", 0),
    (cma_roce.parse_tos, "cma_roce/tos-106.txt", 106),
    (roce_marking.parse, "sysfs/roce-all-good.txt",
     RoceMarking("set", 106, frozenset(range(8)), frozenset(range(8)), 48, 6, 2, 106)),
    (ethtool_driver.parse, "ethtool/driver-mlx5.txt",
     EthtoolDriver("mlx5_core", "24.10-1.1.4", "28.43.1014", "MT_0000000838", None,
                   "0000:81:00.0")),
    (ethtool_driver.parse, "ethtool/driver-mlx5-inbox.txt",
     EthtoolDriver("mlx5_core", "5.15.0-118-generic", "22.39.2048", "MT_0000000359", None,
                   "0000:c1:00.1")),
    (ethtool_driver.parse, "ethtool/driver-bnxt.txt",
     EthtoolDriver("bnxt_en", "1.10.3-231.0.162.0", "231.0.153.0", None, "231.1.162.1",
                   "0000:06:00.0")),
    (ethtool_driver.parse, "ethtool/driver-efa-host-ena.txt",
     EthtoolDriver("ena", "2.12.0g", None, None, None, "0000:00:05.0")),
    (ethtool_fec.parse, "ethtool/fec-rs.txt", EthtoolFec("ens1np0", ("Auto", "RS"), ("RS",))),
    (ethtool_fec.parse, "ethtool/fec-off.txt", EthtoolFec("ens1np0", ("Off",), ("Off",))),
    (ethtool_ring.parse, "ethtool/ring-default.txt",
     EthtoolRing("ens1np0", 1024, 1024, 8192, 8192)),
    (ethtool_ring.parse, "ethtool/ring-max-old.txt", EthtoolRing("eth2", 8192, 8192, 8192, 8192)),
    (ethtool_module.parse, "ethtool/module-good.txt", MODULE),
    (ethtool_module.parse, "ethtool/module-hot.txt",
     replace(MODULE, temperature_c=84.11, flags=(("module temperature high alarm", 0),))),
    (ethtool_module.parse, "ethtool/module-fault.txt",
     replace(MODULE, state="ModuleFault", fault="TEC runaway")),
    (ethtool_module.parse, "ethtool/module-dead-lane.txt",
     replace(MODULE, rx_dbm=((1, 0.35), (2, -40.0), (3, 0.18), (4, 0.30), *NO_LIGHT),
             flags=DARK[2:4])),
    (ethtool_module.parse, "ethtool/module-dark-inf.txt",
     replace(MODULE, rx_dbm=tuple((lane, -math.inf) for lane in range(1, 9)), flags=DARK)),
    (ethtool_module.parse, "ethtool/module-qsfp28-old-layout.txt",
     replace(MODULE, identifier="QSFP28", vendor="Mellanox", part_number="MMA1B00-C100D",
             state=None, temperature_c=38.21,
             rx_dbm=tuple((lane, -0.54) for lane in (1, 2, 3, 4)),
             tx_dbm=tuple((lane, -0.22) for lane in (1, 2, 3, 4)),
             bias_ma=tuple((lane, 6.75) for lane in (1, 2, 3, 4)))),
    (ethtool_module.parse, "ethtool/module-qsfp56-sr4.txt",
     replace(MODULE, identifier="QSFP28", vendor="Mellanox", part_number="MMA1T00-VS",
             state=None, temperature_c=41.3, temperature_alarm_c=80.0,
             temperature_warning_c=70.0, rx_low_alarm_dbm=-12.8,
             rx_dbm=tuple((lane, -0.02) for lane in (1, 2, 3, 4)),
             tx_dbm=tuple((lane, 0.5) for lane in (1, 2, 3, 4)),
             bias_ma=tuple((lane, 7.104) for lane in (1, 2, 3, 4)))),
    (ethtool_module.parse, "ethtool/module-qsfp28-copper.txt",
     replace(MODULE, identifier="QSFP28", vendor="Mellanox", part_number="MCP1600-C002",
             state=None, temperature_c=0.0, rx_dbm=(), tx_dbm=(), bias_ma=())),
    (mlxlink.parse, "mlxlink/good-400g.txt", MLXLINK),
    (mlxlink.parse, "mlxlink/good-ndr.txt",
     replace(MLXLINK, speed="IB-NDR", fec="Ethernet_Consortium_LL_50G_RS_FEC_PLR -(272,257+1)")),
    (mlxlink.parse, "mlxlink/good-400g-ansi.txt", MLXLINK),
    (mlxlink.parse, "mlxlink/good-400g.json", MLXLINK),
    (mlxlink.parse, "mlxlink/bad-si-but-low-ber.txt",
     replace(MLXLINK, opcode=15, recommendation="Bad signal integrity", raw_ber=2e-9)),
    (mlxlink.parse, "mlxlink/high-raw-ber.txt",
     replace(MLXLINK, opcode=15, recommendation="Bad signal integrity", raw_ber=3e-5,
             effective_ber=2e-9, effective_errors=77120, link_downs=23)),
    (mlxlink.parse, "mlxlink/down-no-cable.txt",
     replace(NO_LINK, state="Polling", phys_state="ETH_AN_FSM_ENABLE", opcode=1024,
             recommendation="Cable is unplugged")),
    (mlxlink.parse, "mlxlink/down-disabled.txt",
     replace(NO_LINK, state="Disable", phys_state="Disabled", opcode=1, recommendation="The port "
             "is closed by command. Please check that the interface is enabled")),
    (mlxconfig.parse, "mlxconfig/query-ib-mode.txt",
     Mlxconfig("0000:c1:00.0", "ConnectX6", (("LINK_TYPE_P1", "IB(1)"),
               ("PCI_WR_ORDERING", "per_mkey(0)"), ("ATS_ENABLED", "False(0)")))),
    (niccli.parse, "niccli/get-qos-good.txt", THOR),
    (niccli.parse, "niccli/get-qos-pfc-none.txt", replace(THOR, pfc=frozenset())),
    (niccli.parse_dscp2prio, "niccli/dscp2prio.txt", ((26, 3), (48, 7))),
    (niccli.parse_list, "niccli/list.txt",
     (NicCliDevice(1, "BCM57608", "231.2.63.0", "0000:06:00.0"),
      NicCliDevice(2, "BCM57608", "231.2.63.0", "0000:26:00.0"))),
    (lldptool.parse, "lldptool/neighbor.txt",
     (replace(LEAF, port_description="gpu-a01:ens1np0", peer_pfc=None, peer_pfc_willing=None),)),
    (lldptool.parse, "lldptool/neighbor-whole.txt",
     (replace(LEAF, port="400GE1/0/12", port_description="gpu-a01 ens1np0",
              peer_pfc=frozenset({3}), peer_pfc_willing=False),)),
    (lldptool.parse_pfc, "lldptool/pfc-tlv.txt", PfcTlv(frozenset({3}), True)),
    (lldptool.parse_pfc, "lldptool/pfc-tlv-none.txt", PfcTlv(frozenset(), True)),
    (lldptool.parse_pfc, "lldptool/config-enabled.txt", PfcTlv(frozenset({3}))),
    (lldpctl.parse, "lldpctl/leaf-pfc3.json", (LEAF,)),
    (lldpctl.parse, "lldpctl/lldpd-1.0.16.json", (LEAF,)),
    (lldpctl.parse, "lldpctl/leaf-pfc-off.json",
     (replace(LEAF, peer_pfc=frozenset(), peer_pfc_willing=True),)),
    (lldpctl.parse, "lldpctl/nameless-no-dcbx.json",
     (Neighbour(None, "5c:07:58:1f:9a:00", "Ethernet12"),)),
    (lldpctl.parse, "lldpctl/description-other-host.json",
     (replace(LEAF, port_description="gpu-02:ens1np0"),)),
    (lldpctl.parse, "lldpctl/two-neighbours.json",
     (LEAF, Neighbour(None, "aa:bb:cc:00:00:01", "aa:bb:cc:00:00:02"))),
    (lldpctl.parse, "lldpctl/no-neighbour.json", ()),
    (fi_info.parse, "efa/fi_info-good.txt", frozenset(f"rdmap{n}s0" for n in (79, 80, 81, 82))),
    (fi_info.parse, "efa/fi_info-none.txt", frozenset()),
    (proc_limits.parse, "procfs/limits-unlimited.txt", LockedMemory(None, None)),
    (proc_limits.parse, "procfs/limits-64k.txt", LockedMemory(65536, 65536)),
    (proc_limits.parse, "procfs/limits-hard-unlimited.txt", LockedMemory(8388608, None)),
]  # fmt: skip

FAILURES: list[tuple[Parse, str, int, str]] = [
    (ibdev2netdev.parse, "ibdev2netdev/none.txt", 255, "no HCA of its vendor"),
    (ibstat.parse, "ibstat/device-missing.txt", 255, "can't be found"),
    (ibstatus.parse, "ibstatus/no-devices.txt", 255, "No devices"),
    (rdma_link.parse, "rdma/no-netlink.txt", 1, "no RDMA core"),
    (cma_roce.parse, "cma_roce/module-not-loaded.txt", 1, "rdma_cm is not loaded"),
    (cma_roce.parse, "cma_roce/not-root.txt", 1, "needs root"),
    (roce_marking.parse, "generic-permission", 2, "may not be read"),
    (ethtool_module.parse, "sudo", 1, "terminal is required"),
    (mlxlink.parse, "mlxlink/no-device.txt", 1, "Failed to open device"),
    (mlxlink.parse, "mlxlink/not-root.txt", 1, "run as root"),
    (mlxconfig.parse, "mlxconfig/no-devices.txt", 3, "Failed to get devices"),
    (mlxconfig.parse, "mlxconfig/param-missing.txt", 3, "ROCE_CC_PRIO_MASK_P2"),
    (lldptool.parse, "lldptool/not-running.txt", 1, "lldpad does not run"),
    (lldpctl.parse, "lldpctl/not-running.txt", 1, "lldpd does not run"),
    (ethtool_driver.parse, "ethtool/no-such-device.txt", 75, "exit code 75"),
    (ethtool_ring.parse, "ethtool/no-such-device.txt", 75, "exit code 75"),
    (ethtool_fec.parse, "ethtool/no-such-device.txt", 75, "exit code 75"),
    (proc_limits.parse, "sysfs/infiniband-absent.txt", 1, "exit code 1"),
]

OTHERS = {
    "generic-permission": "grep: /sys/class/net/ens1np0/ecn: Permission denied\n",
    "sudo": "sudo: a terminal is required to read the password\n",
}


@pytest.mark.parametrize(("parse", "name", "facts"), FACTS, ids=[name for _, name, _ in FACTS])
def test_facts(parse: Parse, name: str, facts: Any) -> None:
    text = text_of(name)
    assert parse(Output(text)) == facts
    assert parse(Output(text.replace("\n", "\r\n"))) == facts


@pytest.mark.parametrize(("parse", "name", "rc", "reason"), FAILURES)
def test_failures_are_no_reading(parse: Parse, name: str, rc: int, reason: str) -> None:
    text = OTHERS.get(name) or text_of(name)
    with pytest.raises(CommandFailed) as caught:
        parse(Output("", text, rc))
    assert reason in caught.value.reason


def test_show_gids_of_two_hcas() -> None:
    rows = show_gids.parse(Output(text_of("show_gids/good-2hca.txt")))
    assert rows[:4] == gids(*LINK_LOCAL, *IPV4)
    assert [(row.hca, row.index, row.ipv4) for row in rows[6:]] == [
        ("mlx5_1", 2, "10.100.2.21"),
        ("mlx5_1", 3, "10.100.2.21"),
    ]


def test_mlxconfig_words() -> None:
    card = mlxconfig.parse(Output(text_of("mlxconfig/query-eth-good.txt")))
    assert (card.device, card.device_type) == ("81:00.0", "ConnectX7")
    assert card.value("PCI_WR_ORDERING") == "force_relax"
    assert card.value("LINK_TYPE_P1") == "ETH"
    assert card.value("LLDP_NB_DCBX_P1") == "False"
    assert card.value("MAX_ACC_OUT_READ") == "128"
    assert card.value("NO_SUCH_THING") is None


LSPCI = {
    # speed, width, the most of both, payload, request, relaxed ordering
    "cx7-good.txt": (32.0, 16, 32.0, 16, 512, 4096, True),
    "cx7-mrrs-512-ro-off.txt": (32.0, 16, 32.0, 16, 512, 512, False),
    "cx7-speed-16gt.txt": (16.0, 16, 32.0, 16, 512, 4096, True),
    "cx7-width-x8.txt": (32.0, 8, 32.0, 16, 512, 4096, True),
    "cx6-old-pciutils-ok-marks.txt": (16.0, 8, 16.0, 16, 512, 4096, True),
}


@pytest.mark.parametrize("name", LSPCI)
def test_lspci_of_a_nic(name: str) -> None:
    (nic,) = lspci.parse(Output(text_of(f"lspci/{name}")))
    assert LSPCI[name] == (
        nic.speed_gts,
        nic.width,
        nic.max_speed_gts,
        nic.max_width,
        nic.max_payload_bytes,
        nic.max_read_request_bytes,
        nic.relaxed_ordering,
    )
    assert (nic.slot, nic.kind, nic.told, nic.acs) == ("0000:81:00.0", "Endpoint", True, None)


@pytest.mark.parametrize(
    ("name", "acs"),
    [
        ("switch-acs-on.txt", {"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"}),
        ("switch-acs-off.txt", set()),
        ("switch-acs-srcvalid-only.txt", {"SrcValid"}),
    ],
)
def test_lspci_of_a_bridge(name: str, acs: set[str]) -> None:
    (bridge,) = lspci.parse(Output(text_of(f"lspci/{name}")))
    assert (bridge.kind, bridge.buses) == ("Downstream Port", (0x81, 0x81))
    assert bridge.acs == frozenset(acs)
    assert bridge.is_above("0000:81:00.0")
    assert not bridge.is_above("0000:82:00.0")
    assert not bridge.is_above("0001:81:00.0")


@pytest.mark.parametrize("port", ["Port #0", "Port #8"])
def test_lspci_that_is_older_than_the_link(port: str) -> None:
    text = text_of("lspci/switch-acs-on.txt")
    for known in ("LnkCap:\tPort #0, Speed 32GT/s", "LnkSta:\tSpeed 32GT/s"):
        old = known.replace("32GT/s", "unknown").replace("Port #0", port)
        text = text.replace(known, old)
    (bridge,) = lspci.parse(Output(text))
    assert (bridge.speed_gts, bridge.width, bridge.max_speed_gts) == (None, 16, None)
    assert bridge.acs is not None


def test_a_device_that_has_left_the_bus_hides_no_other() -> None:
    gone = (
        "0000:c1:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev ff) (prog-if ff)\n"
        "\t!!! Unknown header type 7f\n\tKernel driver in use: pcieport\n\n"
    )
    first, second = lspci.parse(Output(gone + text_of("lspci/switch-acs-on.txt")))
    assert (first.answers, first.told, second.answers) == (False, False, True)


def test_lspci_without_root_tells_that_it_was_denied() -> None:
    (nic,) = lspci.parse(Output(text_of("lspci/nonroot-access-denied.txt")))
    assert (nic.told, nic.width, nic.max_read_request_bytes) == (False, None, None)


def test_a_module_that_ethtool_does_not_know() -> None:
    with pytest.raises(CommandFailed, match="modules of identifier 0x1e"):
        ethtool_module.parse(Output(text_of("ethtool/module-unknown-dump.txt")))


def test_an_empty_cage_and_a_driver_without_fec() -> None:
    absent = Output("", text_of("ethtool/module-absent.txt"), 1)
    assert ethtool_module.parse(absent) is None
    unable = Output("", "netlink error: Operation not supported\n", 1)
    assert ethtool_module.parse(unable) is None
    assert ethtool_fec.parse(Output("", "netlink error: Operation not supported\n", 95)) is None
    with pytest.raises(CommandFailed):
        ethtool_module.parse(Output("", "netlink error: Operation not permitted\n", 1))


NO = "No such file or directory"
NO_TC = f"grep: /sys/class/infiniband/mlx5_0/tc/1/traffic_class: {NO}\n"
NO_ECN = f"grep: /sys/class/net/ens1np0/ecn: {NO}\n"
NO_CMA = f"grep: /sys/kernel/config/rdma_cm/mlx5_0/ports/1: {NO}\n"
ALL = frozenset(range(8))


@pytest.mark.parametrize(
    ("name", "said", "facts"),
    [
        ("sysfs/roce-cma-v1.txt", NO_ECN, RoceMarking("unset", cma_roce_version=1, cma_tos=0)),
        ("sysfs/roce-tclass-160.txt", NO_ECN + NO_CMA, RoceMarking("set", 160)),
        ("sysfs/ecn-good.txt", NO_CMA, RoceMarking("unset", None, ALL, ALL, 48, 6)),
        (
            "sysfs/ecn-off-prio3.txt",
            NO_CMA + NO_TC,
            RoceMarking("missing", None, ALL - {3}, ALL - {3}, 0, 7),
        ),
        ("sysfs/traffic-class-unset.txt", NO_ECN + NO_CMA, RoceMarking("unset")),
        ("sysfs/traffic-class-unset.txt", NO_TC + NO_ECN + NO_CMA, RoceMarking("missing")),
    ],
)
def test_which_of_the_roce_files_are_missing(name: str, said: str, facts: RoceMarking) -> None:
    text = text_of(name)
    assert roce_marking.parse(Output(text, said, 2)) == facts
    for end in range(len(text) - 1):
        try:
            assert roce_marking.parse(Output(text[:end], said, 2)) in (
                facts,
                # What comes last and stands for itself is not known, and not wrong.
                replace(facts, cnp_dscp=None, cnp_priority=None),
                replace(facts, cnp_priority=None),
                replace(facts, cma_tos=None),
                replace(facts, traffic_class_state="unset", traffic_class=None),
            )
        except ParseError:
            continue


def test_rules_for_single_flows_are_no_global_traffic_class() -> None:
    flow = "/sys/class/infiniband/mlx5_0/tc/1/traffic_class:src_ip=10.1.2.3,tclass=96\n"
    assert roce_marking.parse(Output(flow, NO_ECN + NO_CMA, 2)) == RoceMarking("unset")
    with pytest.raises(ParseError):
        roce_marking.parse(Output("", "", 0))


def test_nccl_conf() -> None:
    text = "# tuned\nNCCL_IB_TC=106\n NCCL_IB_GID_INDEX = 3 # index\nOTHER=1\nNCCL_DEBUG=WARN"
    assert nccl_conf.parse(Output(text)) == (
        ("NCCL_IB_TC", "106"),
        ("NCCL_IB_GID_INDEX", "3"),
        ("NCCL_DEBUG", "WARN"),
    )
    missing = "cat: /etc/nccl.conf: No such file or directory\n"
    assert nccl_conf.parse(Output("", missing, 1)) == ()
    with pytest.raises(CommandFailed):
        nccl_conf.parse(Output("", "cat: /etc/nccl.conf: Permission denied\n", 1))


def test_iommu() -> None:
    devices = Output(text_of("sysfs/iommu-devices.txt"))
    through = iommu.parse(Output(text_of("sysfs/iommu-types-pt.txt")), devices)
    assert {kind for _, kind in through.translation} == {"identity"}
    translated = iommu.parse(Output(text_of("sysfs/iommu-types-dma.txt")), devices)
    assert translated.of("0000:81:00.0") == "DMA-FQ"
    assert translated.of("0000:82:00.0") == "DMA"
    assert translated.of("0000:99:00.0") is None
    nothing = "find: '/sys/kernel/iommu_groups': No such file or directory\n"
    assert iommu.parse(Output("", "", 2), Output("", nothing, 1)).translation == ()
    with pytest.raises(ParseError):
        iommu.parse(Output(text_of("sysfs/iommu-types-pt.txt")), Output(""))
    with pytest.raises(CommandFailed):
        iommu.parse(Output("", "grep: x: Permission denied\n", 2), devices)


def test_ipv4_settings_are_the_larger_of_netdev_and_all() -> None:
    good = ipv4_conf.parse(Output(text_of("procfs/ipv4-conf-good.txt")))
    assert [good.of("ens1np0", name) for name in ("arp_announce", "arp_ignore", "rp_filter")] == [
        2,
        1,
        2,
    ]
    default = ipv4_conf.parse(Output(text_of("procfs/ipv4-conf-default.txt")))
    assert default.of("ens1np0", "rp_filter") == 1
    assert default.of("ens9np0", "rp_filter") is None


def test_addresses_and_rules() -> None:
    own = ip_addresses.parse(
        Output(text_of("ip/addr-own-subnets.json")), Output(text_of("ip/rule-by-source.json"))
    )
    assert [str(each) for each in own.of("ens1np0")] == ["10.100.1.21/24"]
    assert own.ruled == {"10.100.1.21", "10.100.2.21"}
    one = ip_addresses.parse(
        Output(text_of("ip/addr-one-subnet.json")), Output(text_of("ip/rule-default.json"))
    )
    assert one.of("ens1np0")[0].network == one.of("ens2np0")[0].network
    assert one.ruled == frozenset()
    assert one.of("ens9np0") == ()


@pytest.mark.parametrize(
    ("name", "word", "nics"),
    [
        ("topo-h100-good.txt", "PIX", 8),
        ("topo-nic-far.txt", "NODE", 8),
        ("topo-a100-4nic-pxb.txt", "PXB", 4),
        ("topo-nvlink-lost.txt", "PIX", 8),
    ],
)
def test_topology(name: str, word: str, nics: int) -> None:
    topo = nvidia_topo.parse(Output(text_of(f"nvidia-smi/{name}")))
    assert topo.gpus == tuple(f"GPU{n}" for n in range(8))
    assert topo.nics == tuple(f"mlx5_{n}" for n in range(nics))
    assert topo.of("GPU0")["mlx5_0"] == word


def test_topology_of_an_older_driver_names_the_nics_in_the_heading() -> None:
    text = "\t\x1b[4mGPU0\tGPU1\tmlx5_0\tCPU Affinity\x1b[0m\n"
    text += "GPU0\t X \tNV12\tPIX\t0-47\nGPU1\tNV12\t X \tPXB\t0-47\nmlx5_0\tPIX\tPXB\t X \t\n"
    text += "\nLegend:\n\n  X    = Self\n"
    topo = nvidia_topo.parse(Output(text))
    assert (topo.gpus, topo.nics) == (("GPU0", "GPU1"), ("mlx5_0",))
    assert topo.of("GPU1") == {"mlx5_0": "PXB"}
    for old, new in [("X \tPXB", "X \tPX"), ("GPU1\tNV12\t X \tPXB\t0-47\n", ""), ("Legend:", "")]:
        with pytest.raises(ParseError):
            nvidia_topo.parse(Output(text.replace(old, new, 1)))
