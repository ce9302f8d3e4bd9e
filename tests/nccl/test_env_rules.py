"""Every rule on environments: where something is wrong, where nothing is, where it cannot tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commcheck.formats.gid_table import Gid
from commcheck.formats.pci_tree import PciTree
from commcheck.formats.qos import Qos
from commcheck.model import Status
from commcheck.nccl.environment.judge import RULES, judge
from commcheck.nccl.environment.model import (
    CONF,
    ECHO,
    NOTHING,
    Case,
    Environment,
    HostFacts,
    Port,
    Setting,
)
from commcheck.nccl.job_files import NamedFile
from commcheck.nccl.ruling import Ruling

QOS = Qos(
    pfc=frozenset({3}), trust="dscp", dscp_prio=tuple((code, code >> 3) for code in range(64))
)
V2 = Gid(3, "0000:0000:0000:0000:0000:ffff:0a00:0001", 2, "eth2")
V1 = replace(V2, roce_version=1)


def port(hca: str, *, link: str = "Ethernet", gids: tuple[Gid, ...] | None = (V2,)) -> Port:
    return Port(hca, 1, link, True, QOS, None, True, gids)


HOST = HostFacts(
    name="gpu-01",
    ports=(port("mlx5_0"), port("mlx5_1")),
    netdevs=("eth0", "docker0"),
    rails=("mlx5_0", "mlx5_1"),
    rdma=True,
    link="Ethernet",
    nvlink=True,
    hopper=True,
    gdr=True,
    peermem=False,
    rail_only=True,
    lossless=True,
    npu_pfc=frozenset({4}),
)
UNREAD = replace(HOST, ports=(port("mlx5_0", gids=None),))
STORAGE = replace(HOST, ports=(*(HOST.ports or ()), port("mlx5_10")))


def env(text: str, *, kind: str = "dump", **more: object) -> Environment:
    """``NAME=value NAME=value``, ``~~`` for a blank in a value; ``@2.21.5`` is the release."""
    words = text.split()
    version = next(
        (tuple(map(int, word[1:].split("."))) for word in words if word.startswith("@")), None
    )
    pairs = [word.partition("=") for word in words if not word.startswith("@")]
    settings = {name: Setting(value.replace("~~", " "), "there") for name, _, value in pairs}
    return Environment(
        who=("rank 0",),
        kind=kind,
        host="gpu-01",
        settings=settings,
        version=version,  # type: ignore[arg-type] # three numbers are written above
        **more,  # type: ignore[arg-type] # the fields of an environment
    )


FAR = "WORLD_SIZE=16 LOCAL_WORLD_SIZE=8"
ECMP = replace(HOST, ecmp=True)
GUEST = replace(HOST, virtual=True, flat=True)
VIRTUAL = replace(HOST, ports=(replace(port("mlx5_0"), is_vf=True),))
MANY = replace(HOST, netdevs=("eth0", "eth1", "docker0"))
TOPOLOGY = NamedFile(
    "NCCL_TOPO_FILE", "/opt/topo.xml", "read", "system", "1", True, ("0000:18:00.0",)
)


def with_file(**other: object) -> HostFacts:
    """A host on which every rank sees the topology file, with what is different of it."""
    tree = PciTree({"0000:18:00.0": ("pci0000:15", "0000:15:01.0", "0000:18:00.0")})
    return replace(HOST, files=(replace(TOPOLOGY, **other),), pci=tree)  # type: ignore[arg-type] # its fields


# rule, variables, facts, state and worst status ("fail", "warn", "" where nothing is wrong)
TABLE = [
    ("ENV-002", "NCCL_IB_TIMOUT=22", NOTHING, "warn"),
    ("ENV-002", "NCCL_IB_TIMEOUT=22 NCCL_VERSION=2.15.5-1 NCCL_UCX_TLS=x", NOTHING, "right"),
    ("ENV-002", "NCCL_P2P_NET_CHUNKSIZE=1 NCCL_P2P_PCI_CHUNKSIZE=1", NOTHING, "right"),
    ("ENV-002", "NCCL_P2P_NVL_CHUNKSIZE=1 NCCL_IB_OOO_RQ=1", NOTHING, "right"),
    ("ENV-002", "NCCL_SYM_CTAS=1 NCCL_GPUVIZ_READ_INTERVAL_IN_MICROSECONDS=1", NOTHING, "right"),
    ("ENV-002", "NCCL_NET_PLUGIN_TELEMETRY_MODE=1 NCCL_MIN_ZCOPY_SIZE=4096", NOTHING, "right"),
    ("ENV-002", "NCCL_OURS_X=1", replace(HOST, known=("NCCL_OURS_",)), "right"),
    ("ENV-002", "TORCH_NCCL_BLOCKING_WIAT=1", NOTHING, "warn"),
    ("ENV-002", "HCCL_RDMA_TCC=132", NOTHING, "warn"),
    ("ENV-002", "NCCL_NEW=1 @2.99.1", NOTHING, "unknown"),
    ("ENV-003", "NCCL_IB_GDR_LEVEL=3", NOTHING, "warn"),
    ("ENV-003", "NCCL_PROXY_PROFILE=1 @2.28.3", NOTHING, "warn"),
    ("ENV-003", "NCCL_NET_GDR_LEVEL=PHB", NOTHING, "right"),
    ("ENV-004", "NCCL_IB_FIFO_TC=1 @2.18.1", NOTHING, "warn"),
    ("ENV-004", "NCCL_IB_FIFO_TC=1 @2.24.3", NOTHING, "right"),
    ("ENV-004", "NCCL_IB_FIFO_TC=1", NOTHING, "unknown"),
    ("ENV-004", "NCCL_P2P_PCI_CHUNKSIZE=131072 @2.14.3", NOTHING, "warn"),
    ("ENV-005", "NCCL_IB_DISABLE=true", NOTHING, "fail"),
    ("ENV-005", "NCCL_BUFFSIZE=8M", NOTHING, "fail"),
    ("ENV-005", "NCCL_P2P_DISABLE=yes", NOTHING, "fail"),
    ("ENV-005", "NCCL_P2P_NET_CHUNKSIZE=512K", NOTHING, "fail"),
    ("ENV-005", "NCCL_IB_TC=0x6a NCCL_ALGO=Ring", NOTHING, "right"),
    ("ENV-006", "NCCL_IB_QPS_PER_CONNECTION=010", NOTHING, "warn"),
    ("ENV-006", "NCCL_IB_QPS_PER_CONNECTION=0", NOTHING, "right"),
    ("ENV-007", "NCCL_IB_TC=106", NOTHING, "unknown"),
    ("ENV-008", "NCCL_SOCKET_IFNAME=eth0~~#~~storage", NOTHING, "fail"),
    ("ENV-008", "NCCL_IB_TIMEOUT=22~~#~~big", NOTHING, "warn"),
    ("ENV-008", "NCCL_IB_HCA=mlx5_0,~~mlx5_1", NOTHING, "fail"),
    ("ENV-008", "NCCL_SOCKET_IFNAME=eth0", NOTHING, "right"),
    # As MindCluster's documents write it: HCCL takes blanks out of these.
    ("ENV-008", "HCCL_OP_RETRY_ENABLE=L0:0,~~L1:1,~~L2:1", NOTHING, "right"),
    ("ENV-008", "HCCL_OP_RETRY_PARAMS=MaxCnt:3,~~HoldTime:5000", NOTHING, "right"),
    ("ENV-008", "HCCL_DFS_CONFIG=task_exception:on,~~inconsistent_check:off", NOTHING, "right"),
    ("ENV-008", "HCCL_OP_RETRY_ENABLE=L1:1,~~L2:1~~#~~A3", NOTHING, "fail"),
    ("ENV-008", "HCCL_SOCKET_IFNAME=eth0,~~eth1", NOTHING, "fail"),
    ("ENV-010", f"NCCL_IB_DISABLE=1 {FAR}", HOST, "fail"),
    ("ENV-010", "NCCL_IB_DISABLE=1 WORLD_SIZE=8 LOCAL_WORLD_SIZE=8", HOST, "warn"),
    ("ENV-010", "NCCL_IB_DISABLE=1", replace(HOST, rdma=False), "right"),
    ("ENV-010", "NCCL_IB_DISABLE=1", replace(HOST, network="Libfabric"), "right"),
    ("ENV-010", "NCCL_IB_DISABLE=true", HOST, "right"),
    ("ENV-010", "NCCL_IB_DISABLE=1", NOTHING, "unknown"),
    ("ENV-011", f"NCCL_NET=socket {FAR}", HOST, "fail"),
    ("ENV-011", "NCCL_NET_PLUGIN=none", replace(HOST, network="Libfabric"), "fail"),
    ("ENV-011", "NCCL_NET_PLUGIN=none", HOST, "right"),
    ("ENV-011", "NCCL_NET=Socket", NOTHING, "unknown"),
    ("ENV-012", "NCCL_NET=RoCE", NOTHING, "fail"),
    ("ENV-012", "NCCL_NET=IB", NOTHING, "right"),
    ("ENV-012", "NCCL_NET=FasTrak", NOTHING, "unknown"),
    ("ENV-013", "NCCL_IB_HCA=mlx5_0,mlx5_1", STORAGE, "fail"),
    ("ENV-013", "NCCL_IB_HCA==mlx5_0,mlx5_1", STORAGE, "right"),
    ("ENV-013", "NCCL_IB_HCA=mlx5", HOST, "right"),
    ("ENV-013", "NCCL_IB_HCA=mlx5_1", NOTHING, "unknown"),
    ("ENV-013", "NCCL_IB_HCA=mlx5", NOTHING, "right"),
    ("ENV-013", "NCCL_IB_HCA=mlx5_0", NOTHING, "right"),
    ("ENV-014", "NCCL_IB_HCA==mlx5_0,mlx5_7", HOST, "fail"),
    ("ENV-014", "NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_7", HOST, "right"),
    ("ENV-014", "NCCL_IB_HCA==mlx5_0", NOTHING, "unknown"),
    ("ENV-015", "NCCL_IB_HCA==mlx5_0", HOST, "warn"),
    ("ENV-015", "NCCL_IB_HCA=mlx5", HOST, "right"),
    ("ENV-015", "NCCL_IB_HCA==mlx5_0", NOTHING, "unknown"),
    (
        "ENV-016",
        "NCCL_IB_HCA=mlx5",
        replace(HOST, ports=(port("mlx5_0"), port("mlx5_1", link="InfiniBand"))),
        "fail",
    ),
    ("ENV-016", "NCCL_IB_HCA=mlx5", HOST, "right"),
    ("ENV-016", "NCCL_IB_HCA=mlx5", NOTHING, "unknown"),
    ("ENV-017", "NCCL_IB_GID_INDEX=9", HOST, "fail"),
    (
        "ENV-017",
        "NCCL_IB_GID_INDEX=3",
        replace(HOST, ports=(port("mlx5_0", gids=(V1,)), port("mlx5_1"))),
        "fail",
    ),
    (
        "ENV-017",
        "NCCL_IB_GID_INDEX=3",
        replace(HOST, lossless=False, ports=(port("mlx5_0", gids=(V1,)),)),
        "warn",
    ),
    ("ENV-017", "NCCL_IB_GID_INDEX=3", HOST, "right"),
    ("ENV-017", "NCCL_IB_GID_INDEX=3", NOTHING, "unknown"),
    ("ENV-017", "NCCL_IB_GID_INDEX=3", UNREAD, "unknown"),
    ("ENV-018", "NCCL_IB_GID_INDEX=3 @2.18.1", HOST, "right"),
    ("ENV-018", "NCCL_IB_GID_INDEX=3", HOST, "unknown"),
    ("ENV-019", "@2.18.1", HOST, "warn"),
    ("ENV-019", "@2.21.5", HOST, "right"),
    ("ENV-019", "", HOST, "unknown"),
    ("ENV-020", "NCCL_IB_TC=26", HOST, "fail"),
    ("ENV-020", "NCCL_DEBUG=WARN", HOST, "fail"),
    ("ENV-020", "NCCL_IB_TC=106", HOST, "right"),
    ("ENV-020", "NCCL_IB_TC=96", HOST, "right"),
    (
        "ENV-020",
        "NCCL_IB_TC=26",
        replace(HOST, ports=(replace(port("mlx5_0"), tclass=106),)),
        "right",
    ),
    ("ENV-020", "NCCL_IB_TC=106", NOTHING, "unknown"),
    ("ENV-020", "NCCL_IB_TC=106", replace(HOST, network="FasTrak"), "unknown"),
    ("ENV-020", "NCCL_IB_TC=26", replace(HOST, lossless=False), "other"),
    ("ENV-020", "NCCL_IB_TC=26", VIRTUAL, "other"),
    ("ENV-021", "NCCL_IB_TC=26", HOST, "fail"),
    ("ENV-021", "NCCL_IB_TC=160", HOST, "right"),
    ("ENV-021", "NCCL_IB_TC=26", NOTHING, "other"),
    ("ENV-022", "NCCL_IB_SL=3", HOST, "warn"),
    ("ENV-022", "NCCL_IB_SL=3 NCCL_IB_TC=106", HOST, "other"),
    ("ENV-022", "NCCL_IB_SL=3", NOTHING, "unknown"),
    ("ENV-023", "NCCL_IB_TIMEOUT=14 WORLD_SIZE=64 @2.10.3", NOTHING, "warn"),
    ("ENV-023", "NCCL_IB_TIMEOUT=18 @2.23.4", NOTHING, "warn"),
    ("ENV-023", "NCCL_IB_TIMEOUT=22", NOTHING, "right"),
    ("ENV-023", "NCCL_IB_TIMEOUT=18", NOTHING, "unknown"),
    ("ENV-024", "NCCL_IB_TIMEOUT=0", NOTHING, "fail"),
    ("ENV-024", "NCCL_IB_RETRY_CNT=13", NOTHING, "fail"),
    ("ENV-024", "NCCL_IB_RETRY_CNT=7 NCCL_IB_TC=-1", NOTHING, "right"),
    ("ENV-025", "NCCL_IB_TIMEOUT=22", NOTHING, "right"),
    ("ENV-026", "NCCL_IB_QPS_PER_CONNECTION=16", NOTHING, "warn"),
    ("ENV-026", "NCCL_IB_QPS_PER_CONNECTION=4", NOTHING, "right"),
    ("ENV-027", "NCCL_IB_QPS_PER_CONNECTION=4", ECMP, "right"),
    ("ENV-027", "NCCL_DEBUG=WARN", replace(HOST, ecmp=False), "right"),
    ("ENV-027", "NCCL_DEBUG=WARN", HOST, "unknown"),
    ("ENV-027", "NCCL_DEBUG=WARN", replace(HOST, link="InfiniBand"), "other"),
    ("ENV-028", "NCCL_IB_PCI_RELAXED_ORDERING=0", NOTHING, "warn"),
    ("ENV-028", "NCCL_IB_PCI_RELAXED_ORDERING=2", NOTHING, "right"),
    ("ENV-029", "NCCL_NET_GDR_LEVEL=LOC", HOST, "fail"),
    ("ENV-029", "NCCL_DMABUF_ENABLE=0", HOST, "fail"),
    ("ENV-029", "NCCL_NET_GDR_READ=0", HOST, "warn"),
    ("ENV-029", "NCCL_DMABUF_ENABLE=0", replace(HOST, peermem=True), "right"),
    ("ENV-029", "NCCL_NET_GDR_LEVEL=LOC", NOTHING, "unknown"),
    ("ENV-030", "NCCL_NET_GDR_LEVEL=phb", NOTHING, "fail"),
    ("ENV-030", "NCCL_NET_GDR_LEVEL=PHB NCCL_P2P_LEVEL=3", NOTHING, "right"),
    ("ENV-031", "NCCL_NET_GDR_LEVEL=SYS", NOTHING, "warn"),
    ("ENV-031", "NCCL_NET_GDR_LEVEL=PXB", NOTHING, "right"),
    ("ENV-031", "NCCL_NET_GDR_LEVEL=SYS", GUEST, "right"),
    ("ENV-031", "NCCL_NET_GDR_LEVEL=SYS", replace(GUEST, flat=False), "warn"),
    ("ENV-031", "NCCL_NET_GDR_LEVEL=SYS NCCL_TOPO_FILE=/opt/topo.xml", GUEST, "warn"),
    ("ENV-031", "NCCL_NET_GDR_LEVEL=SYS", replace(GUEST, virtual_topology=True), "warn"),
    ("ENV-032", "NCCL_P2P_DISABLE=1", HOST, "fail"),
    ("ENV-032", "NCCL_P2P_DISABLE=1", replace(HOST, nvlink=False), "right"),
    ("ENV-032", "NCCL_P2P_DISABLE=1", NOTHING, "unknown"),
    ("ENV-033", "NCCL_SHM_DISABLE=1", NOTHING, "warn"),
    ("ENV-033", "NCCL_SHM_DISABLE=1 NCCL_P2P_DISABLE=1", NOTHING, "fail"),
    ("ENV-033", "NCCL_SHM_DISABLE=0", NOTHING, "right"),
    ("ENV-034", "NCCL_ALGO=Ring", NOTHING, "warn"),
    ("ENV-034", "NCCL_ALGO=Ring NCCL_GPUDIRECTTCPX_CTRL_DEV=eth0", NOTHING, "right"),
    ("ENV-034", "NCCL_PROTO=Simple,LL128 NCCL_FASTRAK_IFNAME=eth1", NOTHING, "right"),
    ("ENV-034", "NCCL_DEBUG=WARN", NOTHING, "right"),
    ("ENV-035", "NCCL_MAX_NCHANNELS=2", HOST, "warn"),
    ("ENV-035", "NCCL_MAX_CTAS=1", NOTHING, "warn"),
    ("ENV-035", "NCCL_MAX_NCHANNELS=16", HOST, "right"),
    ("ENV-035", "NCCL_MAX_NCHANNELS=2", NOTHING, "unknown"),
    ("ENV-036", "NCCL_MAX_NCHANNELS=16", NOTHING, "right"),
    ("ENV-037", "NCCL_BUFFSIZE=8", NOTHING, "fail"),
    ("ENV-037", "NCCL_BUFFSIZE=524288", NOTHING, "warn"),
    ("ENV-037", "NCCL_BUFFSIZE=8388608", NOTHING, "right"),
    ("ENV-038", "NCCL_NVLS_ENABLE=0", HOST, "warn"),
    ("ENV-038", "NCCL_NVLS_ENABLE=0", replace(HOST, hopper=False), "right"),
    ("ENV-038", "NCCL_NVLS_ENABLE=0", NOTHING, "unknown"),
    ("ENV-038", "NCCL_NVLS_ENABLE=0 NCCL_FASTRAK_IFNAME=eth1", HOST, "right"),
    ("ENV-039", "NCCL_CUMEM_ENABLE=1", NOTHING, "right"),
    ("ENV-040", "NCCL_TOPO_FILE=~/topo.xml", NOTHING, "fail"),
    ("ENV-040", "NCCL_TOPO_FILE=/opt/topo.xml", NOTHING, "unknown"),
    ("ENV-040", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(state="absent"), "fail"),
    ("ENV-040", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(kind="graphs"), "fail"),
    ("ENV-040", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(kind=""), "fail"),
    ("ENV-040", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(version="2"), "fail"),
    ("ENV-040", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(whole=False), "fail"),
    ("ENV-040", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(), "right"),
    ("ENV-040", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(state="unreadable"), "unknown"),
    ("ENV-040", "NCCL_GRAPH_FILE=/g.xml", NOTHING, "unknown"),
    ("ENV-041", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(buses=("0000:99:00.0",)), "fail"),
    ("ENV-041", "NCCL_TOPO_FILE=/opt/topo.xml", with_file(), "right"),
    ("ENV-041", "NCCL_TOPO_FILE=/opt/topo.xml", NOTHING, "unknown"),
    ("ENV-041", "NCCL_DEBUG=WARN", with_file(), "other"),
    ("ENV-042", "NCCL_DEBUG=WARN", GUEST, "warn"),
    ("ENV-042", "NCCL_DEBUG=WARN", replace(GUEST, virtual_topology=True), "right"),
    ("ENV-042", "NCCL_DEBUG=WARN", replace(GUEST, flat=False), "right"),
    ("ENV-042", "NCCL_DEBUG=WARN", replace(GUEST, virtual=False), "right"),
    ("ENV-042", "NCCL_TOPO_FILE=/opt/topo.xml", GUEST, "right"),
    ("ENV-042", "NCCL_DEBUG=WARN", replace(GUEST, flat=None), "unknown"),
    ("ENV-042", "NCCL_DEBUG=WARN", NOTHING, "unknown"),
    ("ENV-043", "NCCL_CROSS_NIC=1", HOST, "fail"),
    ("ENV-044", "NCCL_PXN_DISABLE=1", HOST, "warn"),
    ("ENV-044", "NCCL_PXN_DISABLE=1", replace(HOST, rail_only=False), "right"),
    ("ENV-044", "NCCL_PXN_DISABLE=1", NOTHING, "unknown"),
    ("ENV-043", "NCCL_CROSS_NIC=1", replace(HOST, rail_only=False), "right"),
    ("ENV-043", "NCCL_CROSS_NIC=1", NOTHING, "unknown"),
    ("ENV-045", "SHARP_COLL_LOG_LEVEL=3", NOTHING, "warn"),
    ("ENV-045", "SHARP_COLL_ENABLE_SAT=0 NCCL_COLLNET_ENABLE=0", NOTHING, "other"),
    ("ENV-045", "SHARP_COLL_LOG_LEVEL=3 NCCL_COLLNET_ENABLE=1", NOTHING, "right"),
    ("ENV-046", "NCCL_SOCKET_IFNAME=bond", HOST, "fail"),
    ("ENV-046", "NCCL_SOCKET_IFNAME=docker", HOST, "fail"),
    ("ENV-046", "NCCL_SOCKET_IFNAME=eth", HOST, "right"),
    ("ENV-046", "NCCL_SOCKET_IFNAME=eth", NOTHING, "unknown"),
    ("ENV-047", "NCCL_DEBUG=WARN", MANY, "warn"),
    ("ENV-047", "NCCL_SOCKET_IFNAME=eth0", MANY, "right"),
    ("ENV-047", "NCCL_DEBUG=WARN", replace(MANY, rail_netdevs=frozenset({"eth1"})), "right"),
    ("ENV-047", "NCCL_DEBUG=WARN", HOST, "right"),
    ("ENV-047", "NCCL_DEBUG=WARN", NOTHING, "unknown"),
    ("ENV-048", "GLOO_SOCKET_IFNAME=eth", HOST, "warn"),
    ("ENV-048", "GLOO_SOCKET_IFNAME=eth", NOTHING, "warn"),
    ("ENV-048", "GLOO_SOCKET_IFNAME=^docker0", NOTHING, "warn"),
    ("ENV-048", "GLOO_SOCKET_IFNAME=eth0", HOST, "right"),
    ("ENV-048", "GLOO_SOCKET_IFNAME=eth0", NOTHING, "unknown"),
    ("ENV-049", "NCCL_DEBUG=TRACE", NOTHING, "warn"),
    ("ENV-049", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL", NOTHING, "warn"),
    ("ENV-049", "NCCL_DEBUG=WARN NCCL_DEBUG_SUBSYS=ALL", NOTHING, "right"),
    ("ENV-050", "NCCL_DEBUG=WARN", NOTHING, "right"),
    ("ENV-051", "NCCL_DEBUG=VERBOSE", NOTHING, "fail"),
    ("ENV-051", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NETWORK", NOTHING, "fail"),
    ("ENV-051", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NETWORK @2.30.7", NOTHING, "right"),
    ("ENV-051", "NCCL_DEBUG=info", NOTHING, "right"),
    ("ENV-052", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=^ALLOC", NOTHING, "right"),
    ("ENV-053", "NCCL_DEBUG_FILE=~/nccl.%h", NOTHING, "warn"),
    ("ENV-053", "NCCL_DEBUG_FILE=/var/log/nccl.%h.%p", NOTHING, "right"),
    ("ENV-054", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0", NOTHING, "warn"),
    ("ENV-054", "NCCL_BLOCKING_WAIT=1", NOTHING, "warn"),
    ("ENV-054", "TORCH_NCCL_ASYNC_ERROR_HANDLING=3", NOTHING, "right"),
    ("ENV-055", "TORCH_NCCL_BLOCKING_WAIT=1", NOTHING, "warn"),
    ("ENV-055", "TORCH_DISTRIBUTED_DEBUG=DETAIL", NOTHING, "warn"),
    ("ENV-055", "TORCH_DISTRIBUTED_DEBUG=INFO", NOTHING, "right"),
    ("ENV-055", "CUDA_LAUNCH_BLOCKING=1", NOTHING, "warn"),
    ("ENV-055", "CUDA_LAUNCH_BLOCKING=0", NOTHING, "right"),
    ("ENV-056", "CUDA_DEVICE_MAX_CONNECTIONS=32", NOTHING, "right"),
    ("ENV-056", "CUDA_DEVICE_MAX_CONNECTIONS=1", NOTHING, "unknown"),
    ("ENV-056", "NCCL_DEBUG=WARN", NOTHING, "other"),
    ("ENV-057", "NCCL_COMM_ID=192.0.2.1:2900", NOTHING, "warn"),
    ("ENV-057", "NCCL_DEBUG=WARN", NOTHING, "right"),
    ("ENV-058", "NCCL_HOSTID=node", NOTHING, "right"),
    ("ENV-059", "LD_PRELOAD=/x/libnccl.so.2", NOTHING, "unknown"),
    ("ENV-060", "UCX_NET_DEVICES=mlx5_9:1 NCCL_IB_HCA==mlx5_0", NOTHING, "warn"),
    ("ENV-060", "UCX_IB_TRAFFIC_CLASS=0 NCCL_IB_TC=106", NOTHING, "warn"),
    ("ENV-060", "UCX_NET_DEVICES=mlx5_0:1 NCCL_IB_HCA==mlx5_0", NOTHING, "right"),
    ("ENV-061", "NCCL_DEBUG=WARN", NOTHING, "right"),
    ("ENV-062", "NCCL_IGNORE_DISABLED_P2P=1", NOTHING, "warn"),
    ("ENV-062", "NCCL_IGNORE_DISABLED_P2P=0", NOTHING, "right"),
    ("ENV-063", f"NCCL_DEBUG=WARN {FAR}", NOTHING, "unknown"),
    ("ENV-063", "NCCL_DEBUG=WARN", replace(HOST, rdma=False), "other"),
    ("ENV-064", "NCCL_DEBUG=WARN", NOTHING, "unknown"),
    ("RAS-010", "NCCL_RAS_ADDR=0.0.0.0:28028", NOTHING, "warn"),
    ("RAS-010", "NCCL_RAS_ADDR=192.0.2.7:28028", NOTHING, "warn"),
    ("RAS-010", "NCCL_RAS_ADDR=[::]:28028", NOTHING, "warn"),
    ("RAS-010", "NCCL_RAS_ADDR=localhost:30000", NOTHING, "right"),
    ("RAS-010", "NCCL_RAS_ADDR=[::1]:30000", NOTHING, "right"),
    ("RAS-010", "NCCL_RAS_ADDR=127.0.0.1:30000", NOTHING, "right"),
    ("RAS-010", "NCCL_RAS_ADDR=192.0.2.7:1 NCCL_RAS_ENABLE=0", NOTHING, "other"),
    ("RAS-010", "", NOTHING, "right"),
    ("HENV-001", "HCCL_CONNECT_TIMEOUT=60", NOTHING, "fail"),
    ("HENV-001", "HCCL_DETERMINISTIC=yes", NOTHING, "fail"),
    ("HENV-001", "HCCL_DETERMINISTIC=TRUE", NOTHING, "right"),
    ("HENV-001", "HCCL_INTER_HCCS_DISABLE=false", NOTHING, "right"),
    ("HENV-001", "HCCL_INTER_HCCS_DISABLE=0", NOTHING, "fail"),
    ("HENV-001", "HCCL_SOCKET_FAMILY=af_inet", NOTHING, "fail"),
    ("HENV-001", "HCCL_CONNECT_TIMEOUT=600", NOTHING, "right"),
    ("HENV-003", "HCCL_RDMA_TC=130", HOST, "fail"),
    ("HENV-003", "HCCL_RDMA_TC=104", HOST, "fail"),
    ("HENV-003", "HCCL_RDMA_TC=104 HCCL_RDMA_SL=3", HOST, "fail"),
    ("HENV-003", "HCCL_RDMA_TC=132 HCCL_RDMA_SL=4", HOST, "right"),
    ("HENV-003", "HCCL_RDMA_TC=132 HCCL_RDMA_SL=4", NOTHING, "unknown"),
    ("HENV-003", "HCCL_BUFFSIZE=200", HOST, "right"),
    ("HENV-003", "HCCL_BUFFSIZE=200", replace(HOST, npu_pfc=frozenset({3})), "fail"),
    ("HENV-003", "HCCL_BUFFSIZE=200", replace(HOST, npu_pfc=frozenset(), lossless=False), "right"),
    ("HENV-004", "HCCL_EXEC_TIMEOUT=3600 HCCL_OP_EXPANSION_MODE=AIV", NOTHING, "unknown"),
    ("HENV-004", "HCCL_EXEC_TIMEOUT=0 HCCL_OP_EXPANSION_MODE=AIV", NOTHING, "unknown"),
    ("HENV-004", "HCCL_EXEC_TIMEOUT=1091 HCCL_OP_EXPANSION_MODE=AIV", NOTHING, "right"),
    ("HENV-004", "HCCL_EXEC_TIMEOUT=3600 HCCL_OP_EXPANSION_MODE=AI_CPU", NOTHING, "right"),
    ("HENV-004", "HCCL_CONNECT_TIMEOUT=7200 HCCL_EXEC_TIMEOUT=7200", NOTHING, "right"),
    ("HENV-005", "HCCL_RDMA_RETRY_CNT=3", NOTHING, "warn"),
    ("HENV-005", "HCCL_RDMA_TIMEOUT=20", NOTHING, "right"),
    ("HENV-006", "HCCL_INTRA_ROCE_ENABLE=1 HCCL_INTRA_PCIE_ENABLE=1", NOTHING, "fail"),
    ("HENV-006", "HCCL_INTRA_ROCE_ENABLE=1", NOTHING, "warn"),
    ("HENV-006", "HCCL_INTRA_PCIE_ENABLE=1", NOTHING, "right"),
    ("HENV-006", "HCCL_INTRA_ROCE_ENABLE=0", NOTHING, "fail"),
    ("HENV-006", "HCCL_INTRA_PCIE_ENABLE=0", NOTHING, "fail"),
    ("HENV-006", "HCCL_INTRA_ROCE_ENABLE=0 HCCL_INTRA_PCIE_ENABLE=1", NOTHING, "right"),
    ("HENV-006", "HCCL_INTRA_ROCE_ENABLE=0 HCCL_INTRA_PCIE_ENABLE=0", NOTHING, "right"),
    ("HENV-007", "HCCL_WHITELIST_DISABLE=0", NOTHING, "fail"),
    ("HENV-007", "HCCL_WHITELIST_DISABLE=1", NOTHING, "right"),
    ("HENV-007", "HCCL_WHITELIST_DISABLE=0 HCCL_WHITELIST_FILE=/x", NOTHING, "unknown"),
    ("HENV-008", "HCCL_BUFFSIZE=200", replace(HOST, netdevs=("eth0", "eth1")), "warn"),
    ("HENV-008", "HCCL_IF_IP=192.0.2.1", HOST, "right"),
    ("HENV-008", "HCCL_BUFFSIZE=200", NOTHING, "unknown"),
    ("HENV-009", "HCCL_ENTRY_LOG_ENABLE=1", NOTHING, "warn"),
    ("HENV-009", "HCCL_ENTRY_LOG_ENABLE=0", NOTHING, "right"),
    ("HENV-009", "ASCEND_LAUNCH_BLOCKING=1", NOTHING, "warn"),
    ("HENV-009", "ASCEND_LAUNCH_BLOCKING=0", NOTHING, "right"),
    ("HENV-009", "HCCL_ALGO=level0:NA;level1:NHR", NOTHING, "right"),
    ("HENV-010", "ASCEND_GLOBAL_LOG_LEVEL=1", NOTHING, "warn"),
    ("HENV-010", "ASCEND_GLOBAL_LOG_LEVEL=3", NOTHING, "right"),
    ("HENV-010", "ASCEND_GLOBAL_LOG_LEVEL=4", NOTHING, "unknown"),
    ("HENV-012", "HCCL_ALGO=level0:NA;level1:H-D_R;level2:AHC", NOTHING, "right"),
    ("HENV-012", "HCCL_ALGO=alltoall=level0:NA;level1:pipeline", NOTHING, "right"),
    ("HENV-012", "HCCL_ALGO=allreduce=level0:NA;level1:ring/reduce=level0:NA", NOTHING, "right"),
    ("HENV-012", "HCCL_ALGO=level0:NA;levrl1:ring", NOTHING, "fail"),
    ("HENV-012", "HCCL_ALGO=level0:NA;level1:ring;level1:NB", NOTHING, "fail"),
    ("HENV-012", "HCCL_ALGO=level0:NA;level1:rign", NOTHING, "fail"),
    ("HENV-012", "HCCL_ALGO=level0:NA;", NOTHING, "fail"),
    ("HENV-012", "HCCL_ALGO=ring", NOTHING, "fail"),
    ("HENV-012", "HCCL_ALGO=allreduce=level0:NA/level0:NA", NOTHING, "fail"),
    ("HENV-012", "HCCL_ALGO=all_reduce=level0:NA", NOTHING, "fail"),
    ("HENV-012", "HCCL_ALGO=level0:NA;level1:of_next_year", NOTHING, "unknown"),
    ("HENV-013", "HCCL_RDMA_TIMEOUT=20", NOTHING, "right"),
    ("HENV-013", "HCCL_RDMA_TIMEOUT=22", NOTHING, "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text", "host", "want"), TABLE)
def test_rule(rule: str, text: str, host: HostFacts, want: str) -> None:
    case = Case((env(text),), {"gpu-01": host})
    ruling = judge(case).rulings[rule]
    statuses = {found.status.value for found in ruling.found}
    said = "fail" if "fail" in statuses else "warn" if statuses else ruling.state
    assert said == want, ruling
    assert all(found.rule == rule and found.reason for found in ruling.found)
    if want == "unknown":
        assert ruling.why
        assert ruling.turn_on


REMARKS = [
    ("ENV-018", "NCCL_IB_GID_INDEX=3 @2.21.5", HOST, "picks the index itself"),
    ("ENV-025", "NCCL_IB_TIMEOUT=25", NOTHING, "noticed after 18 min"),
    ("ENV-027", "NCCL_DEBUG=WARN", ECMP, "flows collide"),
    ("ENV-036", "NCCL_MAX_NCHANNELS=16 NCCL_MAX_CTAS=16", NOTHING, "the stricter one wins"),
    ("ENV-039", "NCCL_CUMEM_ENABLE=0", NOTHING, "no buffer registration"),
    ("ENV-050", "NCCL_IB_TC=106", NOTHING, "writes no evidence"),
    ("ENV-052", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT", NOTHING, "leaves out"),
]
"""Rules that never find fault: what they see is worth knowing."""


@pytest.mark.parametrize(("rule", "text", "host", "words"), REMARKS)
def test_remark(rule: str, text: str, host: HostFacts, words: str) -> None:
    judgement = judge(Case((env(text),), {"gpu-01": host}))
    assert judgement.rulings[rule].state == "right"
    assert words in judgement.rulings[rule].why
    assert any(words in remark for remark in judgement.remarks)


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_without_an_environment_nothing_is_known(rule: str) -> None:
    ruling = judge(Case(())).rulings[rule]
    assert (ruling.state, bool(ruling.turn_on)) == ("unknown", True)
    assert judge(Case(())).verdicts[0].kind == "undecidable"


ELSEWHERE = {"ENV-001", "ENV-007", "ENV-009", "ENV-058", "ENV-059", "ENV-061", "ENV-063", "ENV-064",
             "ENV-065", "ENV-066", "HENV-002", "HENV-011", "HENV-014"}  # fmt: skip
"""Rules that look at several environments, at a file or at processes: tests below or with files."""


def test_every_rule_has_a_positive_and_a_negative_case() -> None:
    """What is unknown without any environment, and more, the tests above try of all."""
    positive = {rule for rule, _, _, want in TABLE if want in ("fail", "warn")}
    positive |= {rule for rule, *_ in REMARKS} | ELSEWHERE
    negative = {rule for rule, _, _, want in TABLE if want in ("right", "other")} | ELSEWHERE
    everything = {rule.id for rule in RULES}
    # What is right depends on the framework, or on the NPU, which no variable tells.
    assert everything - positive == {"ENV-056", "HENV-004", "HENV-013"}
    assert everything - negative == set()


def on(host: str, text: str, who: str = "rank 0", kind: str = "process") -> Environment:
    return replace(env(text, kind=kind), host=host, who=(who,))


def said(*environments: Environment) -> dict[str, Status]:
    found = judge(Case(environments)).verdicts
    return {verdict.rule: verdict.status for verdict in found if verdict.cause}


def test_ranks_that_differ() -> None:
    one, two = on("a", "NCCL_ALGO=Ring NCCL_IB_HCA=mlx5_0"), on("b", "NCCL_IB_HCA=mlx5_1", "rank 1")
    assert said(one, two)["ENV-001"] is Status.FAIL
    assert said(on("a", "NCCL_IB_TIMEOUT=22"), on("b", "", "rank 1")) == {"ENV-001": Status.WARN}
    assert said(on("a", "NCCL_IB_HCA==mlx5_0"), on("b", "NCCL_IB_HCA==mlx5_1", "rank 1")) == {}
    assert said(on("a", "NCCL_DEBUG=INFO"), on("b", "", "rank 1")) == {}
    assert said(on("a", "HCCL_BUFFSIZE=200"), on("b", "", "rank 1"))["HENV-002"] is Status.FAIL
    # A log echoes what was read first: what it does not echo may be set all the same.
    echoed = [on("a", "NCCL_IB_TC=106", kind=ECHO), on("b", "NCCL_DEBUG=INFO", "rank 1", ECHO)]
    assert said(*echoed) == {}


def test_what_nccl_uses_against_what_is_set() -> None:
    set_ = on("", "NCCL_IB_TC=26 NCCL_IB_DISABLE=true", kind="dump")
    echo = on("a", "NCCL_IB_TC=106 NCCL_IB_DISABLE=0", "a pid 1", ECHO)
    verdicts = judge(Case((set_, echo))).rulings["ENV-007"].found
    assert [found.reason for found in verdicts] == ["NCCL_IB_TC=26 (there), but NCCL says 106"]
    old = on("a", "NCCL_P2P_LEVEL=LOC", "a pid 1", ECHO)
    assert judge(Case((on("", "NCCL_P2P_LEVEL=0"), old))).rulings["ENV-007"].state == "right"


def test_hosts_that_cannot_be_told_apart_and_libraries() -> None:
    one, two = on("a", "NCCL_HOSTID=x"), on("b", "NCCL_HOSTID=x", "rank 1")
    assert said(one, two) == {"ENV-058": Status.FAIL}
    assert said(one, on("b", "NCCL_HOSTID=y", "rank 1")) == {}
    loaded = on("a", "LD_PRELOAD=/a/libnccl.so.2"), on("b", "LD_PRELOAD=/b/libnccl.so.2", "rank 1")
    assert said(*loaded) == {"ENV-059": Status.FAIL}


def test_what_hccl_uses_against_what_is_set() -> None:
    set_ = on("", "HCCL_RDMA_TC=136 HCCL_CONNECT_TIMEOUT=0120 HCCL_DETERMINISTIC=TRUE", kind="dump")
    echo = on("", "HCCL_RDMA_TC=132 HCCL_DETERMINISTIC=true", "npu", ECHO)
    spaced = on("", "HCCL_OP_RETRY_ENABLE=L0:0,~~L1:1", kind="dump")
    assert said(spaced, on("", "HCCL_OP_RETRY_ENABLE=L0:0,L1:1", "npu", ECHO)) == {}
    rulings = judge(Case((set_, echo))).rulings
    (found,) = rulings["HENV-011"].found
    assert found.reason == "HCCL_RDMA_TC=136 (there), but HCCL says 132"
    assert (found.rule, found.status) == ("HENV-011", Status.FAIL)
    assert rulings["ENV-007"].state == "unknown"
    same = on("", "HCCL_RDMA_TC=132", "npu", ECHO)
    assert judge(Case((on("", "HCCL_RDMA_TC=132", kind="dump"), same))).rulings[
        "HENV-011"
    ].state == "right"  # fmt: skip
    assert judge(Case((set_,))).rulings["HENV-011"].state == "unknown"


def test_memory_of_processes() -> None:
    def ruled(rule: str, text: str, **facts: object) -> str:
        host = replace(HOST, **facts)  # type: ignore[arg-type] # its fields
        ruling = judge(Case((env(text, kind="process"),), {"gpu-01": host})).rulings[rule]
        return ruling.found[0].status.value if ruling.found else ruling.state

    assert ruled("ENV-063", FAR, locked_bytes=65536) == "fail"
    assert ruled("ENV-063", FAR, locked_bytes=2 << 30) == "warn"
    assert ruled("ENV-063", "RANK=0", locked_bytes=65536) == "warn"
    assert ruled("ENV-063", FAR, locked_bytes=-1) == "right"
    assert ruled("ENV-063", FAR) == "unknown"
    assert ruled("ENV-064", FAR, shm_bytes=64 << 20) == "warn"
    assert ruled("ENV-064", FAR, shm_bytes=2 << 30) == "right"
    assert ruled("ENV-064", "LOCAL_WORLD_SIZE=1", shm_bytes=64 << 20) == "right"


def test_jobs_that_share_a_ras_port() -> None:
    one = on("a", "MASTER_ADDR=a MASTER_PORT=1")
    other = on("a", "MASTER_ADDR=a MASTER_PORT=2", "rank 1")
    assert "share one RAS port" in judge(Case((one, other))).rulings["ENV-061"].why
    assert judge(Case((one,))).rulings["ENV-061"] == Ruling("right")


def test_files_and_pods() -> None:
    ignored = (("/etc/nccl.conf:3", "export NCCL_IB_TC=106"),)
    assert said(replace(env("", kind=CONF), ignored=ignored)) == {"ENV-009": Status.WARN}
    assert said(replace(env("NCCL_DEBUG=WARN"), shm_bytes=64 << 20))["ENV-064"] is Status.WARN
    assert said(replace(env("NCCL_DEBUG=WARN"), shm_bytes=-1)) == {}
    assert said(replace(env("NCCL_DEBUG=WARN"), shm_bytes=64 << 20, gpus=1)) == {}


def test_a_healthy_environment_passes_and_lists_what_was_judged() -> None:
    healthy = env(f"NCCL_IB_TC=106 NCCL_DEBUG=WARN NCCL_SOCKET_IFNAME=eth0 {FAR} @2.27.3")
    (verdict,) = judge(Case((healthy,), {"gpu-01": HOST})).verdicts
    assert verdict.status is Status.PASS
    assert "ENV-020" in str(verdict.measured["rules_judged"])
    # The same without the host's facts: what is set and cannot be held against it is told.
    verdicts = judge(Case((healthy,))).verdicts
    assert {v.rule for v in verdicts if v.kind == "undecidable"} == {"ENV-020", "ENV-046"}


def test_one_finding_for_many_ranks() -> None:
    ranks = [on(f"h{n}", "NCCL_NET_GDR_LEVEL=phb", f"rank {n}") for n in range(20)]
    (verdict,) = (v for v in judge(Case(tuple(ranks))).verdicts if v.rule == "ENV-030")
    assert len(verdict.hosts) == 20
    assert len(verdict.measured["evidence"]) == 20  # type: ignore[arg-type] # a list
