# ruff: noqa: E501 - a line of a log is not broken
"""library.log: every rule where something is wrong, where nothing is, and where it cannot tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from checks.library.log import CHECK
from commcheck.check import Unread
from commcheck.model import Cause, Host, Kind, Machine, Origin, Status, Wanted
from commcheck.nccl.case import Case
from commcheck.nccl.causes import (
    CHANNELS_DIFFER,
    CONNECT_FAILED,
    CROSS_RAIL,
    DRIVER_OLD,
    GDR_OFF,
    INIT_STUCK,
    LIBFABRIC_TCP,
    LINK_TYPE,
    MIXED_NETWORKS,
    NIC_LIST,
    NO_DEVICE,
    P2P_REFUSED,
    PLUGIN_MISSING,
    RANKS_MISSING,
    SAME_HOST_NET,
    SAME_HOST_SHM,
    SOCKET_FALLBACK,
    UNEVEN_RAILS,
    VERSIONS,
    WORLD_SIZE,
    WRONG_INTERFACE,
    ZIGZAG,
)
from commcheck.nccl.causes_diag import (
    DIAG_GPU,
    DIAG_NIC,
    DIAG_P2P,
    DIAG_PCI,
)
from commcheck.nccl.causes_errors import (
    ASYNC_EVENT,
    COMPLETION,
    CUDA,
    DESYNC,
    DUPLICATE_GPU,
    FORCED,
    GPU_MEMORY,
    GPU_UNREGISTERED,
    MEMLOCK,
    MISMATCH,
    MNNVL,
    NODES,
    NVLS,
    QP_SETUP,
    RETRY_EXCEEDED,
    SHM,
    SLOW_INIT,
    TIMEOUT,
    TOPOLOGY_FILE,
    UNNAMED,
    UNREACHED,
)
from commcheck.nccl.causes_hccl import (
    HCCL_CODE,
    HCCL_DESYNC,
    HCCL_HEARTBEAT,
    HCCL_HOST_PORT,
    HCCL_LATE,
    HCCL_LEFT,
    HCCL_LINK,
    HCCL_LOSS,
    HCCL_MISSING,
    HCCL_NO_RDMA,
    HCCL_NPU_PORT,
    HCCL_PAIR,
    HCCL_PEER,
    HCCL_RANK_TABLE,
    HCCL_SUPER_POD,
    HCCL_TLS,
    HCCL_VARIABLE,
    HCCL_VERSIONS,
)
from commcheck.nccl.causes_plugins import (
    EFA_FEWER,
    EFA_GDR_OFF,
    EFA_PEER,
    SETTING_REFUSED,
)
from commcheck.nccl.host_log import HostLog
from commcheck.nccl.job_logs import JobLog, JobLogs
from commcheck.nccl.judge import HCCL_RULES, NCCL_RULES
from commcheck.nccl.judge import judge as judge_case
from commcheck.nccl.processes import Users
from commcheck.nccl.site import site_of
from tests.nccl.made import Rank, job, judged, ranks, read, read_all

EMPTY = "step 1 loss 2.0\n"
GOOD = job()
R0, R1, R2, R3 = ranks()
BANNER = "NCCL version 2.21.5+cuda12.4\n"
ROCE = {"platform": "gpu-roce"}
EFA = {"platform": "gpu-efa"}


@dataclass(frozen=True)
class Row:
    """A rule's three cases. ``given`` are inventory variables for all of them."""

    rule: str
    cause: Cause
    wrong: str
    right: str = GOOD
    unknown: str = EMPTY
    status: Status = Status.FAIL
    given: Mapping[str, object] = field(default_factory=dict)
    told_as: str = ""  # where the finding's number differs from the rule's


def late_init(total: str) -> str:
    return GOOD.replace("rank 3 nranks 4 total 1.20", f"rank 3 nranks 4 total {total}")


def without(text: str, *words: str) -> str:
    """The log without lines that hold any of the words."""
    return "".join(
        line for line in text.splitlines(keepends=True) if not any(w in line for w in words)
    )


def ofi(provider: str, *, gdr: bool = True) -> str:
    """A job over libfabric, as the plugin of EFA and Slingshot prints it."""
    text = without(job(network="AWS Libfabric", gdr=gdr), "NET/IB : Using")
    selected = f"NET/OFI Selected Provider is {provider} (found 4 nics)"
    return "".join(rank.info(selected) for rank in ranks()) + text


def counted(odd: int, hosts: int = 4) -> str:
    """Hosts with EFA; the last but one counts ``odd`` devices, the others 16."""
    members = ranks([f"n{number}" for number in range(1, hosts + 1)], 2)
    said = "NET/OFI Selected provider is efa, fabric is efa-direct (found {} nics)"
    few = f"n{hosts - 1}"
    counts = [rank.info(said.format(odd if rank.host == few else 16)) for rank in members]
    return "".join(counts) + without(job(members, network="Libfabric"), "NET/IB : Using")


def plugged(network: str, **more: bool) -> str:
    """A job over a plugin, which lists no NICs as NET/IB does."""
    return without(job(network=network, **more), "NET/IB : Using")  # type: ignore[arg-type] # flags of job


COMPLETED = (
    "NET/IB: Got completion from peer 192.0.2.12<44210> with status=IBV_WC_X({}) "
    "opcode=IBV_WC_SEND(0) vendor_err=129 localGid ::ffff:198.51.100.11 "
    "remoteGids::ffff:198.51.100.12 hca mlx5_0"
)
TIMED = (
    "[rank{0}]:[E0411 13:07:50 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
)
WORK = (
    "[rank{0}]:[E0411 13:07:50 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {0}] "
    "Exception (either an error or timeout) detected by watchdog at work: {1}, last enqueued NCCL "
    "work: {1}, last completed NCCL work: {2}.\n"
)
ZIGZAG_JOB = job([R0, R2, R1, R3])
HCCL = "[{}] HCCL({},python):2025-11-20-12:0{}:00.000.000 [a.cc:1] [7]{}\n"
HCCL_GOOD = HCCL.format("WARNING", 1, 1, "something else entirely")
KEY = HCCL.format("INFO", 1, 0, "[Communicator Key Info]identifier[a] rankSize[4] serverNum[2]")


def hccl_error(text: str, pid: int = 1, minute: int = 1) -> str:
    return HCCL.format("ERROR", pid, minute, text)


def link(source: int, target: int, *, rdma: int = 1, minute: int = 1) -> str:
    """Two ranks to a server."""
    return hccl_error(
        f"Transport init error! createLink para:rank[{source}]-localUserrank[{source}]-localIpAddr"
        f"[192.0.2.3{source // 2}/{source % 2}], remoteRank[{target}]-remoteUserrank[{target}]-"
        f"remoteIpAddr[192.0.2.3{target // 2}/{target % 2}], machineType[1], linkMode[1], "
        f"isUsedRdma[{rdma}], tag[AllReduce_x]",
        pid=10 + source,
        minute=minute,
    )


def timed_out(pid: int, minute: int, limit_s: int = 120) -> str:
    text = f"wait socket establish timeout, role[1] rank[{pid}] timeout[{limit_s} s]"
    return hccl_error(f"[Wait][LinkEstablish]{text}", pid, minute)


def super_pod(rank: int, logical: str, physical: int) -> str:
    return hccl_error(
        f"local rank information: nicType[VNIC_TYPE], logicSuperPodId[{logical}], "
        f"phySuperPodId[{physical}]. Note: Do not configure ranks",
        pid=10 + rank,
    )


def tls(state: str, pid: int) -> str:
    return hccl_error(
        f"|  1(3)  |  16666  |  1(1)  |  0  |  client  | time out |   {state}  | LinkInfo", pid
    )


def failed_task(operator: str, pid: int) -> str:
    return hccl_error(
        f"Task run failed, base information is streamID:[2], taskID[21], tag[{operator}_group1]",
        pid,
    )


def diag(*lines: str, end: str = "NCCL diagnostics completed in 5.0 ms across 4 ranks") -> str:
    kind = "RAS" if "RAS" in end else "NCCL"
    texts = [f"=== {kind} Diagnostics ===", *lines, *([end] if end else [])]
    return "".join(f"n1:100 NCCL DIAG {text}\n" for text in texts)


RAS_END = "RAS diagnostics completed in 41.7 ms across 4 RAS peers"
CUT_RAS = "n1:100 NCCL DIAG === RAS Diagnostics ===\nn1:100 NCCL DIAG [OK] {}\n"
BANDWIDTH = (
    "[OK] net bw: {}/391.5/398.2 Gbit/s min/median/max same-nic bw (across 4 ranks) in comm 0x7"
)
PAIR = (
    "[INFO] p2p: write mismatch srcRank=0 srcCudaDev=0 srcNvmlDev=0 dstRank=1 dstCudaDev=1 "
    "dstNvmlDev=1 path=NVL handle=CUMEM_POSIX_FD expected=0x1 got=0x0; check"
)
LINKED = (
    "[INFO] net bw: mode=same server_rank=1 server_host=n2 server_device=mlx5_3 client_rank=0 "
    "client_host=n1 client_device=mlx5_3 {} in comm 0x7"
)

ROWS = [
    Row("LOG-001", SOCKET_FALLBACK, job(network="Socket", nics=0), given=ROCE,
        unknown=without(GOOD, "Using network")),
    Row("LOG-001", LIBFABRIC_TCP, ofi("tcp", gdr=False), right=ofi("efa"), given=EFA,
        unknown=without(GOOD, "Using network")),
    Row("LOG-002", NO_DEVICE, without(GOOD, "n2:100:160 [0] NCCL INFO NET/IB", "n2:101:161 [1] NCCL INFO NET/IB")
        + R2.info("NET/IB : No device found.") + R3.info("NET/IB : No device found."), given=ROCE,
        unknown=BANNER),
    Row("LOG-003", NO_DEVICE, GOOD + R0.warn("NET/IB : Unable to open device mlx5_3")),
    Row("LOG-004", PLUGIN_MISSING, GOOD, right=job(network="Libfabric"),
        given={"nccl_network": "Libfabric"}, unknown=without(GOOD, "Using network")),
    Row("LOG-006", MIXED_NETWORKS,
        GOOD.replace("n2:101:161 [1] NCCL INFO Using network IB", "n2:101:161 [1] NCCL INFO Using network Socket"),
        unknown=without(GOOD, "Using network")),
    Row("LOG-007", NIC_LIST, job(nics=1), given={"nics": ["mlx5_0", "mlx5_1"]},
        unknown=without(GOOD, "NET/IB : Using")),
    Row("LOG-007", EFA_FEWER, counted(8), given=EFA, right=counted(16)),
    Row("LOG-008", LINK_TYPE, job(link="IB"), given=ROCE, unknown=without(GOOD, "NET/IB : Using")),
    Row("LOG-009", WRONG_INTERFACE, job(oob="docker0:172.17.0.1", complete=False),
        unknown=without(GOOD, "Bootstrap", "NET/IB : Using")),
    Row("LOG-010", WRONG_INTERFACE, R0.warn("Bootstrap : no socket interface found")),
    Row("LOG-011", CONNECT_FAILED,
        GOOD + R0.warn("socketStartConnect: Connect to 192.0.2.9<4444> failed : Connection refused")),
    Row("LOG-013", RANKS_MISSING, job(skip=[3], complete=False),
        unknown=job(skip=[3])),
    Row("LOG-014", INIT_STUCK, without(GOOD, "rank 3 nranks 4 cudaDev 1 nvmlDev 1 busId 28000 commId 0x5f3a9c0d7b21e464 - Init COMPLETE"),
        unknown=without(job(skip=[1, 2, 3]), "Init COMPLETE")),
    Row("LOG-015", WORLD_SIZE,
        GOOD + R0.warn("Bootstrap Root : mismatch in rank count from procs 4 : 8", "bootstrap.cc:1")),
    Row("LOG-016", VERSIONS, GOOD.replace("n2:101:161 [1] NCCL INFO NCCL version 2.27.7", "n2:101:161 [1] NCCL INFO NCCL version 2.26.2"),
        unknown=without(GOOD, "NCCL version")),
    Row("LOG-017", DRIVER_OLD, job(driver=11080), unknown=without(GOOD, "cudaDriverVersion")),
    Row("LOG-018", SAME_HOST_NET, GOOD.replace("0[0] -> 1[1] via P2P/CUMEM", "0[0] -> 1[1] [send] via NET/IB/0/GDRDMA"),
        given={"nvlink_links": 18}, unknown=job(connect=False)),
    Row("LOG-019", SAME_HOST_SHM, GOOD.replace("P2P/CUMEM", "SHM/direct/direct"), given={"nvlink_links": 18},
        unknown=job(connect=False)),
    Row("LOG-020", P2P_REFUSED, GOOD.replace("P2P/CUMEM", "P2P/indirect/3[3]"), status=Status.WARN,
        given={"nvlink_links": 18}, unknown=job(connect=False)),
    Row("LOG-021", P2P_REFUSED, GOOD + R0.warn("P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case")),
    Row("LOG-022", P2P_REFUSED, GOOD + R0.info("P2P is disabled between connected GPUs 0 and 1. You can repress this message"),
        given={"nvlink_links": 18}, unknown=BANNER),
    Row("LOG-023", ZIGZAG, ZIGZAG_JOB, unknown=job(connect=False).replace("Channel 00/02 : 0 1 2 3", "x").replace("Channel 01/02 : 0 1 2 3", "x")),
    Row("LOG-024", UNEVEN_RAILS, GOOD.replace("via NET/IB/1", "via NET/IB/0"), given={"nics": ["mlx5_0", "mlx5_1"]},
        unknown=job(connect=False)),
    Row("LOG-025", GDR_OFF, job(gdr=False), given=ROCE, unknown=job(connect=False)),
    Row("LOG-025", EFA_GDR_OFF, ofi("efa", gdr=False), given={**EFA, "gdr": True}, right=ofi("efa")),
    Row("LOG-025", GDR_OFF, plugged("gIB", gdr=False), given=ROCE, right=plugged("gIB"),
        unknown=plugged("FasTrak", gdr=False)),
    Row("LOG-026", GDR_OFF, "".join(line.replace("/GDRDMA", "") if line.startswith("n2") else line for line in GOOD.splitlines(True)),
        unknown=job(connect=False)),
    Row("LOG-027", GDR_OFF, GOOD + R0.info("GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 9 > 5)"),
        right=GOOD + R0.info("GPU Direct RDMA Enabled for GPU 0 / HCA 0 (distance 4 <= 5), read 1"), unknown=GOOD),
    Row("LOG-028", GDR_OFF, GOOD + R1.info("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"), given=ROCE,
        right=GOOD + R1.info("NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'"), unknown=GOOD),
    Row("LOG-029", GDR_OFF, job(gdr=False), given=ROCE, unknown=without(GOOD, "Connected all")),
    Row("LOG-030", CROSS_RAIL, GOOD.replace("[receive] via NET/IB/1", "[receive] via NET/IB/0"), given={"rail_only": True},
        unknown=job(connect=False)),
    Row("LOG-031", CHANNELS_DIFFER, GOOD.replace("n2:101:161 [1] NCCL INFO 2 coll", "n2:101:161 [1] NCCL INFO 4 coll"),
        unknown=without(GOOD, "coll channels")),
    Row("LOG-032", RETRY_EXCEEDED, GOOD + R0.warn(COMPLETED.format(12)), told_as="LOG-032/033",
        unknown=GOOD + R0.warn(COMPLETED.format(5))),
    Row("LOG-035", COMPLETION, GOOD + R0.warn(COMPLETED.format(10))),
    Row("LOG-036", QP_SETUP, GOOD + R0.warn("Call to ibv_modify_qp failed with error Invalid argument")),
    Row("LOG-036", UNREACHED, GOOD + R0.warn("Call to ibv_modify_qp failed with error No route to host")),
    Row("LOG-037", GPU_UNREGISTERED, GOOD + R0.warn("Call to ibv_reg_mr failed with error Bad address")),
    Row("LOG-037", MEMLOCK, GOOD + R0.warn("Call to ibv_reg_mr failed with error Cannot allocate memory")),
    Row("LOG-038", ASYNC_EVENT, GOOD + R0.warn("NET/IB : mlx5_0:1 Got async event : port error")),
    Row("LOG-039", SHM, GOOD + R0.warn("Error: failed to extend /dev/shm/nccl-abcdef to 33030528 bytes, error: No space left on device (28)")),
    Row("LOG-040", DUPLICATE_GPU, GOOD + R0.warn("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 18000")),
    Row("LOG-041", CUDA, GOOD + R0.warn("Cuda failure 999 'unknown error'")),
    Row("LOG-041", GPU_MEMORY, GOOD + R0.warn("Cuda failure 2 'out of memory'")),
    Row("LOG-042", MISMATCH, GOOD + R0.warn("Message truncated : received 1024 bytes instead of 256")),
    Row("LOG-043", NVLS, GOOD + R0.warn("Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1 'invalid argument'"),
        right=GOOD + R0.info("NVLS multicast support is available on dev 0")),
    Row("LOG-044", TOPOLOGY_FILE, GOOD + R0.warn("Could not open XML topology file /x.xml : No such file or directory")),
    Row("LOG-045", MNNVL, GOOD + R0.warn("MNNVL (cliqueSize 4) is available but not working on this system. Check the IMEX")),
    Row("LOG-046", NODES, job(nodes=4), given=ROCE, unknown=without(GOOD, "nNodes")),
    Row("LOG-047", SLOW_INIT, late_init("75.00"), status=Status.WARN, unknown=without(GOOD, "Init timings")),
    Row("LOG-048", TIMEOUT, GOOD + TIMED.format(0, 7, "ALLREDUCE") + WORK.format(0, 9, 6) + WORK.format(3, 6, 6),
        right=GOOD + WORK.format(0, 9, 9)),
    Row("LOG-049", DESYNC, GOOD + TIMED.format(0, 7, "ALLREDUCE") + TIMED.format(1, 7, "ALLGATHER"),
        right=GOOD + TIMED.format(0, 7, "ALLREDUCE") + TIMED.format(1, 7, "ALLREDUCE")),
    Row("LOG-050", FORCED, GOOD + R0.info("NCCL_ALGO set by environment to Ring"), status=Status.WARN,
        unknown=without(GOOD, "set by environment")),
    Row("LOG-056", UNNAMED, GOOD + R0.warn("socketStartConnect: socket() failed : Too many open files", "misc/socket.cc:4")),
    Row("LOG-057", SETTING_REFUSED, plugged("gIB", complete=False) + "".join(
        rank.warn("NCCL/NET (shim) mismatch enforced: NCCL_P2P_NVL_CHUNKSIZE=524288 (expected 262144)", "config_checker.cc:41")
        for rank in ranks()), right=plugged("gIB")),
    Row("LOG-058", EFA_PEER, ofi("efa") + R0.warn(
        "NET/OFI Request 0x7f00 completed with error. RC: 103. Error: 4126 (Unresponsive receiver (reachable by "
        "EFA device but handshake failed) My host id: i-0 Peer host id: i-1)"), right=ofi("efa")),
    Row("HLOG-001", HCCL_PEER, "EI0006: 2024-08-05-18:15:21.270.506 Getting socket times out.\n", right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-001", HCCL_CODE, "EI9999: 2024-08-05-18:15:21.270.506 Inner error.\n", right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-001", HCCL_CODE, hccl_error("something else entirely"), right=HCCL_GOOD, unknown=KEY, status=Status.WARN),
    Row("HLOG-001", HCCL_VARIABLE, "EI0001: [PID: 3] 2025-11-21-11:38:29.575.404 Environment variable [HCCL_RDMA_SL] is invalid.\n", right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-001", HCCL_RANK_TABLE, hccl_error("[InitGroupStage][RanktableCheck]super_device_id[] is invalid"), right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-001", HCCL_VERSIONS, hccl_error("[InitChannelStage][VersionConflict]local 8.2, remote 8.3"), right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-001", HCCL_HOST_PORT, hccl_error("socket type[2], listen on ip[192.0.2.1] and specific port[60000] fail. Please check the port status"), right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-001", HCCL_NPU_PORT, hccl_error("socket type[1], listen on ip[198.51.100.1] and specific port[16666] fail. Please check the port status"), right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-001", HCCL_LEFT, "EJ0001: 2024-05-21-11:57:54.167.645 Failed to initialize the HCCP process.\n", right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-001", HCCL_LOSS, hccl_error("[create][ra_hdc_period_poll]failed CQE status[12], wr[0]"), right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-002", HCCL_MISSING, hccl_error('fault_info["Failed to connect agent[1,3,]"]'), right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-003", HCCL_LINK, link(0, 2) + link(1, 3) + link(2, 3), right=HCCL_GOOD, unknown=link(0, 1) + link(1, 2) + link(2, 0)),
    Row("HLOG-003", HCCL_PAIR, link(0, 2) + link(2, 0), right=HCCL_GOOD, unknown=timed_out(1, 1)),
    Row("HLOG-003", HCCL_SUPER_POD, link(0, 2) + link(2, 0) + super_pod(0, "pod", 0) + super_pod(2, "pod", 1), right=HCCL_GOOD, unknown=KEY),
    Row("HLOG-004", HCCL_NO_RDMA, link(0, 2, rdma=0), right=link(0, 2), unknown=KEY, status=Status.WARN),
    Row("HLOG-005", HCCL_HEARTBEAT, hccl_error("[HeartbeatAbnormal]local rank [192.0.2.1/0]: crimer rank [192.0.2.2/3] status[LOST] by informer rank [192.0.2.3/0]"),
        right=HCCL_GOOD, unknown="EI0006: 2024-08-05-18:15:21.270.506 Getting socket times out.\n"),
    Row("HLOG-006", HCCL_LATE, timed_out(1, 1) + timed_out(2, 9), right=timed_out(1, 1) + timed_out(2, 2), unknown=KEY),
    Row("HLOG-007", HCCL_TLS, tls("ENABLE", 1) + tls("DISABLE", 2), right=tls("DISABLE", 1) + tls("DISABLE", 2), unknown=HCCL_GOOD),
    Row("HLOG-008", HCCL_DESYNC, failed_task("AllReduce", 1) + failed_task("AllGather", 2),
        right=failed_task("AllReduce", 1) + failed_task("AllReduce", 2), unknown=KEY),
    Row("DIAG-003", DIAG_P2P, diag(PAIR), right=diag("[OK] p2p: all 12 directed GPU P2P edges verified"), unknown=diag(end="")),
    Row("DIAG-004", DIAG_NIC, diag(BANDWIDTH.format(121.4)), right=diag(BANDWIDTH.format(376.1)), given={"line_rate_gbits": 400}),
    Row("DIAG-005", DIAG_NIC, diag("[INFO] net bw: cross-nic rank 1 (n2): 121.4 Gbit/s, >30% off median 391.5 Gbit/s in comm 0x7"),
        right=diag(BANDWIDTH.format(376.1)), unknown=diag(BANDWIDTH.format(376.1), end="")),
    Row("DIAG-006", DIAG_NIC, diag(BANDWIDTH.format(376.1), LINKED.format("tool run timed out")), right=diag(BANDWIDTH.format(376.1)),
        unknown=diag(LINKED.format("tool missing"))),
    Row("DIAG-008", DIAG_GPU, diag("[INFO] GPU inventory: model mismatch across 4 ranks, rank(s) {3} differ from rank 0 (H100)", end=RAS_END),
        right=diag("[OK] GPU inventory: 2x H100 per node consistent across 4 ranks", end=RAS_END), unknown=CUT_RAS.format("GPU inventory: ok")),
    Row("DIAG-009", DIAG_GPU, diag("[INFO] ECC: uncorrected volatile errors on rank(s) {3} (worst=2)", end=RAS_END),
        right=diag("[OK] ECC: no uncorrected volatile errors", end=RAS_END), unknown=CUT_RAS.format("ECC: no uncorrected")),
    Row("DIAG-010", DIAG_GPU, diag("[INFO] NVLink: inactive link(s) on rank(s) {3}", end=RAS_END),
        right=diag("[OK] NVLink: found 18 link(s) per device, all active", end=RAS_END), unknown=CUT_RAS.format("NVLink: found 18")),
    Row("DIAG-012", DIAG_GPU, diag("[INFO] Xid 94 detected 1 time on host n2. Restart the affected application.", end=RAS_END), status=Status.WARN,
        right=diag("[OK] Xid/SXid: no events requiring immediate attention across 2 hosts", end=RAS_END),
        unknown=CUT_RAS.format("Xid/SXid: no events")),
    Row("DIAG-013", DIAG_PCI, diag("[INFO] rdma_topo check: reported an issue on n1", end=RAS_END), status=Status.WARN,
        right=diag("[OK] rdma_topo check: passed on 4/4 ranks", end=RAS_END), unknown=CUT_RAS.format("rdma_topo check: passed")),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_wrong(row: Row) -> None:
    judgement = judged(row.wrong, **row.given)
    ruling = judgement.rulings[row.rule]
    assert ruling.state == "wrong", ruling
    found = ruling.found[0]
    assert (found.cause, found.status, found.rule) == (
        row.cause,
        row.status,
        row.told_as or row.rule,
    )
    assert found.evidence
    assert any(verdict.rule == found.rule for verdict in judgement.verdicts)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_right(row: Row) -> None:
    ruling = judged(row.right, **row.given).rulings[row.rule]
    assert ruling.state == "right", ruling


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_unknown(row: Row) -> None:
    ruling = judged(row.unknown, **row.given).rulings[row.rule]
    assert ruling.state == "unknown", ruling
    assert ruling.why
    assert ruling.turn_on


def test_without_rdma_core_only_a_job_that_has_a_network_suffers() -> None:
    """NVIDIA/nccl#340, NVIDIA/nccl#766: a workstation whose only NIC is Ethernet."""
    line = "Failed to open libibverbs.so[.1]"
    one = job(ONE_HOST, network="Socket", nics=0) + ONE_HOST[0].warn(line)
    (verdict,) = judged(one).verdicts
    assert verdict.status is Status.PASS
    assert judged(one, **ROCE).verdicts[0].status is Status.PASS
    assert judged(one + TIMED.format(0, 7, "ALLREDUCE")).rulings["LOG-048"].state == "wrong"
    two = job(network="Socket", nics=0) + R0.warn(line)
    assert [f.status for f in judged(two).rulings["LOG-003"].found] == [Status.WARN]
    assert [f.status for f in judged(two, **ROCE).rulings["LOG-003"].found] == [Status.FAIL]
    alone = R0.warn(line)
    assert [f.status for f in judged(alone).rulings["LOG-003"].found] == [Status.WARN]
    plugin = without(job(network="AWS Libfabric"), "NET/IB : Using") + alone
    assert judged(plugin, **ROCE).rulings["LOG-003"].state == "other"


OLD = without(job(complete=False), "nNodes")
"""Stuck in init, before 2.20 or before any line that counts the hosts."""


def test_ranks_of_hosts_that_were_not_read_are_not_missing() -> None:
    (verdict,) = judged(of_host("n2", OLD)).verdicts
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "LOG-055")
    assert "2 of 4 ranks may run elsewhere: it shows 1 host" in verdict.reason
    assert judged(of_host("n2", OLD)).rulings["LOG-013"].state == "unknown"
    eight = without(job(ranks(("n1", "n2", "n3", "n4")), complete=False), "nNodes")
    files = {name: of_host(name, eight) for name in ("n1", "n3")}
    assert judged(read_all(files)).rulings["LOG-013"].state == "unknown"
    # One stream of the whole job, or a hole between the ranks of a host: they did not come.
    assert judged("".join(files.values())).rulings["LOG-013"].state == "wrong"
    four = without(job(ranks(("n1", "n2"), 4), skip=[6], complete=False), "nNodes")
    assert judged(of_host("n2", four)).rulings["LOG-013"].state == "wrong"


def test_a_warning_that_no_rule_knows_is_no_pass() -> None:
    """It fails where NCCL's own error follows it, unless the process went on."""
    odd, step = R0.warn("the moon is in the way"), R0.info("transport/net.cc:1298 -> 2")
    (alone,) = judged(GOOD + odd).verdicts
    assert (alone.rule, alone.status) == ("LOG-056", Status.WARN)
    assert "the moon is in the way on n1, and no error followed" in alone.reason
    (ended,) = judged(GOOD + odd + step).verdicts
    assert (ended.rule, ended.status) == ("LOG-056", Status.FAIL)
    (went_on,) = judged(odd + step + GOOD).verdicts
    assert (went_on.rule, went_on.status) == ("LOG-056", Status.WARN)
    (call,) = judged(R0.warn("Call to ibv_reg_mr failed") + GOOD).verdicts
    assert (call.rule, call.status) == ("LOG-056", Status.WARN)
    known = judged(GOOD + R1.warn(COMPLETED.format(12)) + odd + step)
    assert [v.rule for v in known.verdicts] == ["LOG-032/033"]
    late = judged(odd + GOOD + R1.warn(COMPLETED.format(12)))
    assert [v.rule for v in late.verdicts] == ["LOG-032/033"]
    assert judged(odd + TIMED.format(0, 7, "ALLREDUCE")).rulings["LOG-048"].state == "wrong"


@pytest.mark.parametrize(
    "text",
    [
        "Call to ibv_create_qp failed",
        "Call to recv from 192.0.2.12<41234> failed : Connection timed out",
        "NET/OFI Request 0x7f0a completed with error. RC: 113. Error: 4123 (unreachable remote)",
        "NET/OFI Unable to register memory (type = 1) for device 0. RC: 12, Error: Cannot allocate memory",
    ],
)
def test_failed_calls(text: str) -> None:
    (verdict,) = judged(GOOD + R0.warn(text)).verdicts
    assert (verdict.rule, verdict.status) == ("LOG-056", Status.FAIL)


def test_an_error_of_which_only_the_ladder_is_printed() -> None:
    steps = ("misc/socket.cc:564 -> 2", "bootstrap.cc:270 -> 2", "group.cc:64 -> 2 [Async thread]")
    (verdict,) = judged(GOOD + "".join(map(R0.info, steps))).verdicts
    assert (verdict.rule, verdict.status) == ("LOG-056", Status.FAIL)
    assert "misc/socket.cc:564 -> 2 ... group.cc:64 -> 2 [Async thread] on n1" in verdict.reason
    (aside,) = judged(GOOD + R0.info("register.cc:70 -> 1")).verdicts
    assert aside.status is Status.WARN
    (remote,) = judged(GOOD + R0.info("proxy.cc:878 -> 6 [Progress Thread]")).verdicts
    assert (remote.kind, remote.rule) == (Kind.UNDECIDABLE, "LOG-054")
    waiting = TIMED.format(0, 7, "ALLREDUCE") + R0.info("enqueue.cc:9 -> 3")
    assert judged(GOOD + waiting).rulings["LOG-056"].state == "right"


def test_sockets_that_a_peer_closed_at_the_end_are_no_error() -> None:
    """NVIDIA/Fuser#3055: a run that passed its tests ends like this."""
    closed = "".join(map(R0.info, ("misc/socket.cc:47 -> 3", "misc/socket.cc:832 -> 3")))
    (verdict,) = judged(GOOD + closed).verdicts
    assert verdict.status is Status.PASS
    assert judged(job(complete=False) + closed).rulings["LOG-054"].state == "unknown"


@pytest.mark.parametrize(
    ("text", "code", "cause"),
    [
        ("error Connection timed out", "110", UNREACHED),  # up to 2.18
        ("error Connection timed out errno 110", "110", UNREACHED),
        ("error Network is unreachable [errno 101]", "101", UNREACHED),
        ("errno 22", "22", QP_SETUP),
        ("61 No data available, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3, local GID ::, remote GID ::ffff:198.51.100.12", "61", QP_SETUP),
        ("110 Connection timed out, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:198.51.100.11, remote GID fe80::5aa2:e1ff:fe10:2b7c", "110", QP_SETUP),
    ],
)  # fmt: skip
def test_why_a_connection_was_not_set_up(text: str, code: str, cause: Cause) -> None:
    (found,) = (
        judged(GOOD + R0.warn(f"Call to ibv_modify_qp failed with {text}")).rulings["LOG-036"].found
    )
    assert (found.measured["error"], found.cause) == (code, cause)
    assert "see errno" not in found.reason


def test_the_two_addresses_that_do_not_reach_each_other() -> None:
    """NVIDIA/nccl#2013: rails that are not connected; NCCL_CROSS_NIC=0 keeps to them."""
    line = "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_3:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:198.51.100.11, remote GID ::ffff:198.51.100.12"
    (verdict,) = judged(GOOD + R0.warn(line)).verdicts
    assert verdict.remedies[0].command == "ping -c3 -I 198.51.100.11 198.51.100.12"
    assert "NCCL_CROSS_NIC=0" in verdict.remedies[-1].effect.en


def test_a_cuda_failure_of_nvls_is_no_broken_gpu() -> None:
    """NVIDIA/nccl#1788 and #1672; what an earlier failure left behind is none of its own."""
    for failed in (
        "401 'the operation cannot be performed in the present state'",
        "2 'out of memory'",
    ):
        line = R0.warn(f"Cuda failure {failed}", "transport/nvls.cc:254")
        (verdict,) = judged(GOOD + line + R0.info("transport/nvls.cc:409 -> 1")).verdicts
        assert (verdict.rule, verdict.cause) == ("LOG-043", NVLS)
        said = [f"{remedy.command} {remedy.effect.en}" for remedy in verdict.remedies]
        assert "NCCL_NVLS_ENABLE=0" in said[2]
        assert "restart" in said[3]
    sticky = R0.warn(
        "Cuda failure 700 'an illegal memory access was encountered'", "transport/nvls.cc:254"
    )
    assert judged(GOOD + sticky).verdicts[0].rule == "LOG-041"


def test_simple_order_is_told_at_both_levels() -> None:
    text = "Could not find a path for pattern 4, falling back to simple order"
    for line in (R0.warn(text, "graph/search.cc:765"), R0.info(text)):
        assert [v.rule for v in judged(GOOD + line).verdicts] == ["LOG-044"]


def test_warn_level_with_a_warning() -> None:
    odd, done = judged(BANNER + R0.warn("the moon is in the way")).verdicts
    assert (odd.rule, odd.status, done.kind) == ("LOG-056", Status.WARN, Kind.UNDECIDABLE)
    assert "no warning" not in done.reason
    reset = "Call to recv from 192.0.2.12<41234> failed : Connection reset by peer"
    (victim,) = judged(BANNER + R0.warn(reset)).verdicts
    assert (victim.kind, victim.rule) == (Kind.UNDECIDABLE, "LOG-054")
    assert "read the log of 192.0.2.12" in victim.reason


def test_many_unknown_warnings_hide_no_later_error() -> None:
    noise = "".join(R0.warn(f"the moon is in the way {n}") for n in range(60))
    assert judged(GOOD + noise + R0.warn(COMPLETED.format(12))).verdicts[0].rule == "LOG-032/033"


def test_victims_need_the_log_of_the_peer() -> None:
    closed = "socketProgress: Connection closed by remote peer n9<4000>"
    alone = judged(GOOD + R0.warn(closed, "misc/socket.cc:1"))
    assert alone.rulings["LOG-054"].state == "unknown"
    assert "read the log of n9" in alone.verdicts[-1].reason
    explained = judged(GOOD + R1.warn(COMPLETED.format(12)) + R0.warn(closed, "misc/socket.cc:1"))
    assert explained.rulings["LOG-054"].state == "other"
    assert judged(GOOD).rulings["LOG-054"].state == "right"
    assert judged(EMPTY).rulings["LOG-054"].state == "unknown"


def test_reports_of_diagnostics() -> None:
    whole = diag("[OK] p2p: all 12 directed GPU P2P edges verified")
    assert judged(whole).rulings["DIAG-001"].state == "right"
    assert judged(whole).rulings["DIAG-002"].state == "right"
    assert judged(diag(end="")).rulings["DIAG-001"].state == "unknown"
    skipped = diag("[OK] net bw: skipped (single host or no network transport)")
    assert judged(skipped).rulings["DIAG-007"].state == "other"
    differ = diag("[INFO] NCCL environment: mismatch across 4 ranks in comm 0x7 for NCCL_BUFFSIZE")
    assert judged(differ).rulings["DIAG-011"].state == "other"
    part = diag(
        "[INFO] ECC: diagnostics incomplete, gathered 3/4 ranks in comm 0x1/0x2/0x3", end=RAS_END
    )
    assert judged(part).rulings["DIAG-014"].state == "unknown"


RETRIED = R0.info("Call to connect returned Connection refused, retrying")
REMARKS = {
    "LOG-005": (GOOD, job(network="Libfabric"), EMPTY, "normal"),
    "LOG-012": (GOOD + RETRIED, GOOD, job(complete=False) + RETRIED, "a slow start"),
    "LOG-034": (None, GOOD, GOOD + R0.warn(COMPLETED.format(5)), "collect the log of 192.0.2.12"),
    "LOG-051": (
        None,
        GOOD,
        GOOD + R0.info("Connected all trees [repeated 3x across cluster]"),
        "Ray",
    ),
    "LOG-053": ("RCCL version : 2.22.3-develop:abc\n" + GOOD, GOOD, EMPTY, "this is RCCL"),
}
"""Rules that find no fault: what is worth a remark or None, what is not, what hides it, words."""


@pytest.mark.parametrize("rule", REMARKS)
def test_remarks(rule: str) -> None:
    remarked, plain, hidden, words = REMARKS[rule]
    if remarked is not None:
        ruling = judged(remarked).rulings[rule]
        assert ruling.state == "right"
        assert words in ruling.why
    assert judged(plain).rulings[rule].state in ("right", "other")
    ruling = judged(hidden).rulings[rule]
    assert ruling.state == "unknown"
    assert ruling.turn_on
    if remarked is None:
        assert words in f"{ruling.why} {ruling.turn_on}"
    assert judged(EMPTY).rulings[rule].state == "unknown"


def test_flushed_requests_alone_are_no_pass() -> None:
    (verdict,) = judged(GOOD + R0.warn(COMPLETED.format(5))).verdicts
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "LOG-034")


def test_every_rule_has_its_row() -> None:
    apart = {"LOG-054", "DIAG-001", "DIAG-002", "DIAG-007", "DIAG-011", "DIAG-014"}
    tried = {row.rule for row in ROWS} | {*REMARKS} | apart
    assert tried == {rule.id for rule in (*NCCL_RULES, *HCCL_RULES)}
    assert {row.cause.slug for row in ROWS} == {cause.slug for cause in CHECK.causes}


# --- healthy jobs of every kind -----------------------------------------------------------------

ONE_HOST = ranks(("n1",), 4)
HEALTHY = {
    "two hosts, RoCE": GOOD,
    "one host, NVLink only, no NIC at all": job(ONE_HOST, network="Socket", nics=0)
    + ONE_HOST[0].info("NET/IB : No device found."),
    "NVLS": job(ONE_HOST) + "".join(r.info("NVLS multicast support is available on dev 0") for r in ONE_HOST),
    "MNNVL": job(nodes=1, mnnvl=1).replace("NET/IB/0/GDRDMA", "P2P/MNNVL").replace("NET/IB/1/GDRDMA", "P2P/MNNVL")
    .replace(" [send]", "").replace(" [receive]", ""),
    "SHARP": GOOD + R0.info("CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA")
    + R0.info("CollNet 00/0 : 0 [send] via COLLNET/SHARP/1/GDRDMA"),
    "EFA": ofi("efa"),
    "EFA without GPU Direct, as a g5 has it": ofi("efa", gdr=False),
    "Slingshot": ofi("cxi"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy(name: str) -> None:
    (verdict,) = judged(HEALTHY[name]).verdicts
    assert (verdict.status, verdict.rule) == (Status.PASS, "LOG-055"), verdict


@pytest.mark.parametrize("provider", ["tcp", "tcp;ofi_rxm", "sockets", "udp;ofi_rxd"])
def test_libfabric_over_tcp(provider: str) -> None:
    text = ofi(provider, gdr=False)
    (found,) = judged(text, **EFA).verdicts
    assert (found.rule, found.status, found.cause) == ("LOG-001", Status.FAIL, LIBFABRIC_TCP)
    assert f"use libfabric's provider {provider}" in found.reason
    # An instance without EFA may have nothing else.
    assert [v.status for v in judged(text).verdicts] == [Status.WARN]
    newer = text.replace(" (found 4 nics)", ", fabric is 192.0.2.0/24 (found 1 nics)")
    newer = newer.replace("Selected Provider", "Selected provider")
    assert [v.rule for v in judged(newer, **EFA).verdicts] == ["LOG-001"]


def test_gpu_direct_of_libfabric_is_judged_where_it_is_declared() -> None:
    """aws/aws-ofi-nccl#104 and #547: p3dn and the g series have none."""
    plain = ofi("efa", gdr=False)
    rulings = judged(plain, **EFA).rulings
    assert {rulings[rule].state for rule in ("LOG-025", "LOG-029")} == {"unknown"}
    assert "LOG-025" in [v.rule for v in judged(plain, **EFA, gdr=True).verdicts]
    part = "".join(
        line.replace("/GDRDMA", "") if line.startswith("n2") else line
        for line in ofi("efa").splitlines(True)
    )
    (found,) = judged(part).verdicts
    assert (found.rule, found.status, found.hosts) == ("LOG-026", Status.FAIL, ("n2",))
    assert found.cause is EFA_GDR_OFF
    assert not any("nvidia_peermem" in remedy.command for remedy in found.remedies)


OFI_FAILED = "".join(
    rank.warn(
        text,
        "int nccl_net_ofi_create_plugin(nccl_net_ofi_plugin_t**):353",
        "[2026-01-02 10:24:27] ",
    )
    for rank in ranks()
    for text in (
        "NET/OFI Failed to initialize rdma protocol",
        "NET/OFI aws-ofi-nccl initialization failed",
    )
)


def test_a_plugin_of_efa_that_cannot_start_is_why_there_is_tcp() -> None:
    nothing = "".join(rank.info("NET/IB : No device found.") for rank in ranks())
    text = OFI_FAILED + nothing + job(network="Socket", nics=0)
    (found,) = judged(text, **EFA).verdicts
    assert (found.rule, found.status) == ("LOG-001", Status.FAIL)
    assert found.reason.endswith("RDMA NICs: libfabric's plugin could not start")
    assert found.measured["next_check"] == "physical.efa-devices"
    # An image may have the plugin where there is InfiniBand.
    assert [v.status for v in judged(OFI_FAILED + GOOD).verdicts] == [Status.PASS]
    alone = job(ranks(("n1",), 2), network="Socket", nics=0)
    assert [v.status for v in judged(OFI_FAILED + alone).verdicts] == [Status.PASS]


def test_a_host_with_fewer_efa_devices_is_named() -> None:
    (found,) = judged(counted(8), **EFA).verdicts
    assert (found.rule, found.status, found.cause) == ("LOG-007", Status.FAIL, EFA_FEWER)
    assert (found.hosts, found.reason) == (
        ("n3",),
        "NCCL on n3 has 8 EFA devices, 3 of its peers 16",
    )
    assert judged(counted(16), **EFA).rulings["LOG-007"].state == "right"
    # Old plugins count nothing behind the provider.
    bare = counted(16).replace(", fabric is efa-direct (found 16 nics)", "")
    assert judged(bare, **EFA).rulings["LOG-007"].state == "unknown"


@pytest.mark.parametrize(
    ("declared", "network", "state"),
    [
        ("IBext", "IBext_v10", "right"),
        ("IBext_v8", "IBext_v10", "right"),
        ("GPUDirectTCPX", "GPUDirectTCPX_v7", "right"),
        ("NCCL RDMA Plugin", "NCCL RDMA Plugin v10", "right"),
        ("AWS Libfabric", "Libfabric", "right"),
        ("fastrak", "FasTrak", "right"),
        ("gIB", "IB", "wrong"),
        ("FasTrak", "Socket", "wrong"),
    ],
)
def test_a_plugin_is_known_whatever_its_interface(declared: str, network: str, state: str) -> None:
    ruling = judged(plugged(network), nccl_network=declared).rulings["LOG-004"]
    assert ruling.state == state


def test_tcp_by_declaration_says_where_a_plugin_is_to_be_declared() -> None:
    tcp = {"platform": "gpu-tcp"}
    text = job(network="Socket", nics=0)
    ruling = judged(text, **tcp).rulings["LOG-001"]
    assert (ruling.state, "commcheck_nccl_network" in ruling.why) == ("right", True)
    lost = judged(text, **tcp, nccl_network="FasTrak")
    assert lost.rulings["LOG-001"].why == ""
    assert [v.rule for v in lost.verdicts if v.status is Status.FAIL] == ["LOG-004"]


@pytest.mark.parametrize("network", ["gIB", "SPCX", "NCCL RDMA Plugin v10", "IBext_v10"])
def test_gpu_direct_of_a_plugin_over_verbs_is_judged(network: str) -> None:
    """NCCL prints these channels itself: ``via NET/gIB/0/GDRDMA``."""
    assert [v.status for v in judged(plugged(network), **ROCE).verdicts] == [Status.PASS]
    lost = judged(plugged(network, gdr=False), **ROCE).verdicts
    assert [v.rule for v in lost if v.status is Status.FAIL] == ["LOG-025", "LOG-029"]


def test_gpu_direct_that_some_ranks_lack_is_told_behind_any_plugin() -> None:
    whole = plugged("FasTrak")
    part = "".join(
        line.replace("/GDRDMA", "") if line.startswith("n2") else line
        for line in whole.splitlines(True)
    )
    (found,) = judged(part).verdicts
    assert (found.rule, found.hosts) == ("LOG-026", ("n2",))
    # The plugin of A3 need not show it at all: nothing is concluded from none.
    none = plugged("FasTrak", gdr=False)
    assert {judged(none).rulings[rule].state for rule in ("LOG-025", "LOG-026")} == {"unknown"}


def test_a_profile_of_the_provider_overrides_nothing() -> None:
    text = plugged("FasTrak") + R0.info("NCCL_PROTO set by environment to Simple,LL128")
    assert judged(text).rulings["LOG-050"].state == "right"


def test_a_setting_that_is_only_recommended_is_advice() -> None:
    said = "NCCL/NET (shim) mismatch recommended: NCCL_MAX_P2P_NCHANNELS=8 (expected unset)"
    assert [v.status for v in judged(plugged("gIB") + R0.warn(said)).verdicts] == [Status.WARN]


def test_a_job_that_the_provider_refused_is_not_stuck() -> None:
    said = "NCCL/NET (shim) mismatch enforced: NCCL_P2P_NVL_CHUNKSIZE=524288 (expected 262144)"
    text = plugged("gIB", complete=False) + "".join(rank.warn(said) for rank in ranks())
    (found,) = judged(text).verdicts
    assert (found.rule, found.cause) == ("LOG-057", SETTING_REFUSED)
    assert "expected 262144" in found.reason


def test_warn_level_is_no_pass_and_no_finding() -> None:
    (verdict,) = judged(BANNER).verdicts
    assert verdict.kind is Kind.UNDECIDABLE
    assert "NCCL_DEBUG=INFO" in verdict.reason


def test_news_of_the_subnet_manager_are_advice() -> None:
    event = R0.warn("NET/IB : mlx5_0:1 Got async error event: client reregister")
    (verdict,) = judged(GOOD + event).verdicts
    assert (verdict.status, verdict.rule) == (Status.WARN, "LOG-038")


def test_without_an_inventory_tcp_is_only_advice() -> None:
    assert {v.status for v in judged(job(network="Socket", nics=0)).verdicts} == {Status.WARN}


def test_initialised_but_unused_is_no_pass() -> None:
    (verdict,) = judged(job(connect=False)).verdicts
    assert verdict.kind is Kind.UNDECIDABLE
    assert "no path over the network was used yet" in verdict.reason


def test_the_first_cause_stands_first() -> None:
    text = GOOD + R2.warn("Cuda failure 'unknown error'", stamp="[2026-01-01 10:00:09] ")
    text += R1.warn(COMPLETED.format(12), stamp="[2026-01-01 10:00:01] ")
    text += TIMED.format(0, 7, "ALLREDUCE") + TIMED.format(3, 7, "ALLREDUCE")
    judgement = judged(text)
    assert [v.rule for v in judgement.verdicts] == ["LOG-032/033", "LOG-041"]
    assert judgement.verdicts[0].measured["first_cause"] is True
    assert judgement.rulings["LOG-048"].state == "other"


@pytest.mark.parametrize(("minutes", "rule"), [(0, "LOG-032"), (5, "LOG-032/033"), (30, "LOG-033")])
def test_early_and_late_retries(minutes: int, rule: str) -> None:
    stamped = "".join(f"[2026-01-01 10:00:00] {line}\n" for line in GOOD.splitlines())
    late = R0.warn(COMPLETED.format(12), stamp=f"[2026-01-01 10:{minutes:02}:05] ")
    assert judged(stamped + late).verdicts[0].rule == rule


def test_machines_that_log_under_one_name_are_not_blamed() -> None:
    """``gpu-a.rack1`` and ``gpu-a.rack2`` both log as ``gpu-a``."""
    four = [*ranks(("gpu-a",), 2, pid=100), *ranks(("gpu-a",), 2, pid=200)]
    text = job(four, nodes=2)
    for channel in (0, 1):
        step = f"Channel 0{channel}/0 : 1[1] -> 2[0] "
        text = text.replace(f"{step}via P2P/CUMEM", f"{step}[send] via NET/IB/{channel}/GDRDMA")
    judgement = judged(text)
    assert {judgement.rulings[rule].state for rule in ("LOG-018", "LOG-023", "LOG-046")} == {
        "unknown"
    }
    assert {verdict.status for verdict in judgement.verdicts} == {Status.SKIP}


def test_a_log_that_is_cut_shows_no_uneven_rails() -> None:
    """What was printed by then looks uneven on every healthy job."""
    idle = GOOD.replace("via NET/IB/1", "via NET/IB/0")
    assert judged(idle).rulings["LOG-024"].state == "wrong"
    lines = idle.splitlines(True)
    last = max(at for at, line in enumerate(lines) if "[receive] via NET" in line)
    for text in (
        "".join(lines[:last]) + "".join(line for line in lines[last:] if "COMPLETE" in line),
        without(idle, "Init COMPLETE"),
        idle.rstrip("\n")[:-5],
    ):
        assert judged(text).rulings["LOG-024"].state == "unknown"


@pytest.mark.parametrize(
    ("oob", "complete", "status"),
    [
        ("docker0:172.17.0.1", False, Status.FAIL),
        ("docker0:172.17.0.1", True, Status.WARN),
        ("lo:127.0.0.1", True, Status.FAIL),  # the ranks of several hosts meet there: how?
    ],
)
def test_a_wrong_interface_fails_where_it_did_not_work(
    oob: str, complete: bool, status: Status
) -> None:
    (found,) = judged(job(oob=oob, complete=complete)).rulings["LOG-009"].found
    assert found.status is status


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ((4, 4, 2), "wrong"),
        ((4, 4, 4, 2), "wrong"),
        ((4, 3, 2), "unknown"),
        ((4, 4, 2, 2), "unknown"),
        ((4, 2), "unknown"),
        ((4, 4), "right"),
    ],
)
def test_a_host_sees_too_few_nics_only_by_most_of_its_peers(
    seen: tuple[int, ...], state: str
) -> None:
    hosts = [f"n{number}" for number in range(len(seen))]
    text = job(ranks(hosts), nics=4)
    for host, count in zip(hosts, seen, strict=True):
        lines = [line for line in text.splitlines(keepends=True) if line.startswith(f"{host}:")]
        for line in filter(lambda each: "NET/IB : Using" in each, lines):
            text = text.replace(line, re.sub(rf" \[[{count}-9]\]mlx5_\d:1/RoCE", "", line))
    ruling = judged(text).rulings["LOG-007"]
    assert ruling.state == state
    assert [found.hosts for found in ruling.found] == [(f"n{len(seen) - 1}",)] * (state == "wrong")


def test_the_longest_list_that_a_machine_prints_counts() -> None:
    text = job(ranks(["n1", "n2", "n3"]), nics=4)
    first = next(
        line
        for line in text.splitlines(keepends=True)
        if line.startswith("n2:100:160 [0] NCCL INFO NET/IB")
    )
    short = first.replace(" [2]mlx5_2:1/RoCE [3]mlx5_3:1/RoCE", "")
    assert short != first
    assert judged(text.replace(first, short, 1)).rulings["LOG-007"].state == "right"


@pytest.mark.parametrize("platform", ["gpu-tcp", "gpu-roce", None])
def test_tcp_is_no_fallback_where_it_is_declared(platform: str | None) -> None:
    text = job(network="Socket", nics=0) + R0.info("NET/IB : No device found.")
    rulings = judged(text, platform=platform).rulings
    state = "right" if platform == "gpu-tcp" else "wrong"
    assert [rulings[rule].state for rule in ("LOG-001", "LOG-002")] == [state, state]
    # An RDMA NIC that carries management or storage changes nothing of what is declared.
    beside = judged(job(network="Socket"), platform="gpu-tcp").rulings
    assert beside["LOG-001"].state == "right"


def test_one_rank_on_sockets_is_told_once() -> None:
    using = "n2:101:161 [1] NCCL INFO Using network "
    rulings = judged(GOOD.replace(f"{using}IB", f"{using}Socket")).rulings
    assert (rulings["LOG-001"].state, rulings["LOG-006"].state) == ("right", "wrong")
    assert rulings["LOG-006"].found[0].hosts == ("n2",)


@pytest.mark.parametrize(
    ("mixed", "status"),
    [("[0]mlx5_0:1/RoCE [1]mlx5_1:1/IB", Status.FAIL),
     ("[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [2]mlx5_2:1/IB", Status.WARN)],
)  # fmt: skip
def test_links_of_two_kinds_fail_where_both_are_used(mixed: str, status: Status) -> None:
    text = GOOD.replace("[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE", mixed)
    found = judged(text).rulings["LOG-008"].found
    assert {each.status for each in found} == {status}


def test_a_storage_nic_has_nothing_to_carry() -> None:
    idle = GOOD.replace("via NET/IB/1", "via NET/IB/0")
    assert judged(idle, nics=["mlx5_0"]).rulings["LOG-024"].state == "right"
    assert judged(idle).rulings["LOG-024"].found[0].status is Status.WARN


def test_a_nic_of_another_link_type_has_nothing_to_carry() -> None:
    """The Ethernet NIC of a host with InfiniBand rails, which HPC-X lists, too."""
    text = job(link="IB/SHARP").replace(" [RO]; OOB", " [2]mlx5_an0:1/RoCE [RO]; OOB")
    assert judged(text).rulings["LOG-024"].state == "right"
    idle = judged(text.replace("via NET/IB/1", "via NET/IB/0")).rulings["LOG-024"].found
    assert "mlx5_0 2, mlx5_1 0" in idle[0].reason
    assert "an0" not in idle[0].reason


def test_rccl_skips_what_is_of_cuda() -> None:
    judgement = judged("RCCL version : 2.22.3-develop:abc\n" + job(driver=11080))
    assert judgement.rulings["LOG-017"].state == "other"


def test_ray_makes_counts_unknown() -> None:
    repeated = GOOD + R0.info("Connected all trees [repeated 3x across cluster]")
    (verdict,) = judged(repeated).verdicts
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "LOG-051")


def test_no_line_of_nccl() -> None:
    (verdict,) = judged(EMPTY).verdicts
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "LOG-052")


# --- the check on a host ------------------------------------------------------------------------


def want(**values: Any) -> Any:
    names = CHECK.want.__dataclass_fields__
    return CHECK.want(**{n: Wanted(values.get(n), Origin("inventory")) for n in names})


NO_POD = Unread("it is no pod", "CommandNotRun")


def on_host(log: object, **values: Any) -> Any:
    machine = Machine("n1", "gpu-roce", hostname="n1")
    running = values.pop("running", JobLogs())
    users = values.pop("users", Users(()))
    seen = CHECK.seen(log=log, container=NO_POD, running=running, users=users)  # type: ignore[arg-type] # hand-made
    said = CHECK.judge(seen, machine, want(**values), None)  # type: ignore[arg-type] # no limits
    return said if isinstance(said, tuple) else (said,)


def test_a_host_without_a_declared_log() -> None:
    (verdict,) = on_host(HostLog("", truncated=False))
    assert verdict.kind is Kind.NOT_APPLICABLE


@pytest.mark.parametrize("users", [Users((), hidden=True), Unread("no find", "CommandMissing")])
def test_ranks_that_nobody_could_look_for_may_be_there(users: object) -> None:
    (verdict,) = on_host(HostLog("", truncated=False), users=users)
    assert verdict.kind is Kind.UNDECIDABLE


def test_a_log_that_was_not_read() -> None:
    (verdict,) = on_host(Unread("grep is not there", "CommandMissing"), nccl_log="/l")
    assert verdict.kind is Kind.UNDECIDABLE
    assert "grep is not there" in verdict.reason


def test_a_hosts_own_log() -> None:
    text = job(ranks(("n1",), 4), gdr=False).replace("P2P/CUMEM", "SHM/direct")
    (verdict,) = on_host(HostLog(text, truncated=False), nccl_log="/l", nvlinks=18)
    assert (verdict.status, verdict.rule) == (Status.FAIL, "LOG-019")
    assert verdict.measured["evidence"][0].startswith("/l:")


def running(text: str, *missing: str) -> JobLogs:
    return JobLogs((JobLog("/var/log/nccl.1", text, 1.0, truncated=False),), missing)


NOTHING = HostLog("", truncated=False)


def test_the_logs_that_ranks_write_now() -> None:
    (verdict,) = on_host(NOTHING, running=running(job(ranks(("n1",), 4))))
    assert verdict.status is Status.PASS
    wrong = GOOD + R0.warn("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 18000")
    found = on_host(NOTHING, running=running(wrong))[0]
    assert (found.rule, found.measured["evidence"][0][:16]) == ("LOG-040", "/var/log/nccl.1:")


def test_what_the_inventory_names_wins() -> None:
    log = HostLog(job(ranks(("n1",), 4)), truncated=False)
    (verdict,) = on_host(log, nccl_log="/l", running=Unread("no sudo", "SudoRefused"))
    assert verdict.status is Status.PASS


def test_ranks_that_log_warnings_only() -> None:
    (verdict,) = on_host(NOTHING, running=running(BANNER))
    assert verdict.kind is Kind.NOT_APPLICABLE
    found = on_host(NOTHING, running=running(BANNER + R0.warn("Cuda failure 2 'out of memory'")))
    assert (found[0].rule, found[0].status) == ("LOG-041", Status.FAIL)
    odd = on_host(NOTHING, running=running(BANNER + R0.warn("the moon is in the way")))
    assert [(v.rule, v.status) for v in odd] == [("LOG-056", Status.WARN)]
    victim = R0.warn("socketProgress: Connection closed by remote peer n9<4000>")
    (verdict,) = on_host(NOTHING, running=running(BANNER + victim))
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "LOG-054")


def test_a_log_that_could_not_be_written() -> None:
    (verdict,) = on_host(NOTHING, running=JobLogs((), ("/ro/nccl.1",)))
    assert verdict.kind is Kind.UNDECIDABLE
    assert "/ro/nccl.1, which a rank here writes, is not there" in verdict.reason
    (verdict,) = on_host(NOTHING, running=Unread("no find", "CommandMissing"))
    assert verdict.kind is Kind.UNDECIDABLE


def of_host(host: str, text: str = GOOD) -> str:
    """The lines of a job that one host has."""
    return "".join(line for line in text.splitlines(True) if line.startswith(f"{host}:"))


def test_a_hosts_part_of_a_job_may_pass() -> None:
    (verdict,) = on_host(NOTHING, running=running(of_host("n1")))
    assert verdict.status is Status.PASS
    assert verdict.reason == (
        "all 2 ranks of this host came up, network IB, GPU Direct on every rank; "
        "2 more of the job elsewhere"
    )
    some = "".join(line for line in of_host("n1").splitlines(True) if ":101:" not in line)
    (verdict,) = on_host(NOTHING, running=running(some))
    assert verdict.kind is Kind.UNDECIDABLE
    for lost in ("Init COMPLETE", " via NET"):
        (verdict,) = on_host(NOTHING, running=running(without(of_host("n1"), lost)))
        assert verdict.kind is Kind.UNDECIDABLE, lost


# --- the parts of several hosts -----------------------------------------------------------------


def parts(**texts: str) -> Any:
    """What is judged of the job when each host gives its own text."""
    assert CHECK.together is not None
    found = {}
    for host, text in texts.items():
        seen = CHECK.seen(log=NOTHING, container=NO_POD, running=running(text), users=Users(()))
        machine = Machine(host, "gpu-roce", hostname=host)
        part = CHECK.together.part(seen, machine, want(gdr=True))
        if part is not None:
            found[host] = part
    return list(CHECK.together.judge(found))


def test_the_parts_of_one_job_are_judged_as_one() -> None:
    (whole,) = parts(n1=of_host("n1"), n2=of_host("n2"))
    assert whole.hosts == ("n1", "n2")
    assert {v.reason for said in whole.verdicts.values() for v in said} == {
        "all 4 ranks on 2 hosts came up, network IB, GPU Direct on every rank, "
        "2 rings with 2 host crossings each"
    }
    assert {v.status for said in whole.verdicts.values() for v in said} == {Status.PASS}


def test_what_only_the_whole_shows_is_told_on_the_host_at_fault() -> None:
    three = job([*ranks(("n1",), 3), *ranks(("n2",), 1)])
    other = of_host("n2", three).replace("2.27.7+cuda12.9", "2.26.2+cuda12.9")
    (whole,) = parts(n1=of_host("n1", three), n2=other)
    assert [(v.rule, v.status) for v in whole.verdicts["n2"]] == [("LOG-016", Status.FAIL)]
    (said,) = whole.verdicts["n1"]
    assert said.status is Status.PASS
    assert "LOG-016 on n2" in said.reason
    assert whole.verdicts["n2"][0].measured["evidence"][0].startswith("n2:/var/log/nccl.1:")


def test_a_host_that_could_not_be_told_does_not_pass_where_another_is_wrong() -> None:
    bad = of_host("n2") + R2.warn(
        "Duplicate GPU detected : rank 2 and rank 3 both on CUDA device 18000"
    )
    (whole,) = parts(n1=without(of_host("n1"), "Init COMPLETE"), n2=bad)
    assert [v.rule for v in whole.verdicts["n2"]] == ["LOG-040"]
    assert "n1" not in whole.verdicts


def test_what_a_host_found_by_itself_stays() -> None:
    bad = of_host("n1") + R0.warn(
        "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 18000"
    )
    (whole,) = parts(n1=bad, n2=of_host("n2"))
    assert [v.rule for v in whole.verdicts["n1"]] == ["LOG-040"]


def test_jobs_are_told_apart_and_one_host_has_no_part() -> None:
    other = job(ranks(("n3", "n4")), comm="0xbeef")
    alone = job(ranks(("n5",), 4), comm="0xcafe")
    found = parts(
        n1=of_host("n1"), n3=of_host("n3", other), n2=of_host("n2"), n4=of_host("n4", other),
        n5=alone,
    )  # fmt: skip
    assert [whole.hosts for whole in found] == [("n1", "n2"), ("n3", "n4")]


def test_whose_fault_a_network_is_waits_for_the_others() -> None:
    socket = job(network="Socket", nics=0, gdr=False)
    (verdict,) = on_host(NOTHING, running=running(of_host("n1", socket)))
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "LOG-001")
    # Where no other host has a part, it is what it is.
    (whole,) = parts(n1=of_host("n1", socket))
    assert [(v.rule, v.status) for v in whole.verdicts["n1"]] == [("LOG-001", Status.FAIL)]
    (both,) = parts(n1=of_host("n1", socket), n2=of_host("n2", socket))
    assert {h: [v.hosts for v in said] for h, said in both.verdicts.items()} == {
        "n1": [("n1", "n2")],
        "n2": [("n1", "n2")],
    }


def test_a_job_of_which_hosts_are_missing_changes_no_verdict() -> None:
    three = job(ranks(("n1", "n2", "n3")))
    (whole,) = parts(n1=of_host("n1", three), n2=of_host("n2", three))
    assert whole.verdicts == {}


def test_two_hosts_that_see_unlike_many_nics_are_no_healthy_job() -> None:
    """None of two tells which of them is right."""
    text = "".join(
        line.replace(" [1]mlx5_1:1/RoCE [RO]", " [RO]") if line.startswith("n2") else line
        for line in job(nics=2).replace("via NET/IB/1", "via NET/IB/0").splitlines(keepends=True)
    )
    (verdict,) = (v for v in judged(text).verdicts if v.status is not Status.WARN)
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "LOG-007")
    assert "NCCL sees 1 NIC on n2, 2 NICs on n1" in verdict.reason
    assert "compare ibv_devinfo -l on n2 and n1" in verdict.reason
    assert judged(text, nics=["mlx5_0"]).rulings["LOG-007"].state == "right"
    (of_efa,) = judged(counted(8, hosts=2), **EFA).verdicts
    assert of_efa.rule == "LOG-007"
    assert "8 EFA devices on n1, 16 EFA devices on n2" in of_efa.reason


# --- several jobs, and attempts, in one input ---------------------------------------------------

OTHERS = ranks(("n8", "n9"), 2, pid=500)
REFUSED = (
    "socketPollConnect: connect to {}<4444> returned Connection refused, exceeded error retry "
    "count after 35 attempts"
)
CLOSED = "socketProgress: Connection closed by remote peer {}<45678>"


def test_each_job_of_the_input_is_judged() -> None:
    """A folder of NCCL_DEBUG_FILE often holds the logs of several jobs."""
    other = job(OTHERS, comm="0xb0b")
    (verdict,) = judged(GOOD + other).verdicts
    assert verdict.status is Status.PASS
    assert verdict.reason.startswith("job of 4 ranks on n[1-2]: all 4 ranks on 2 hosts came up")
    assert verdict.reason.endswith("; 1 more job is right, too")
    slow = job(OTHERS, network="Socket", nics=0, comm="0xb0b")
    (found,) = judged(GOOD + slow, **ROCE).verdicts
    assert (found.rule, found.status, found.hosts) == ("LOG-001", Status.FAIL, ("n8", "n9"))
    assert found.reason.startswith("job of 4 ranks on n[8-9]: ")
    lost = judged(GOOD + job(OTHERS, skip=[2], complete=False, comm="0xb0b"))
    assert [(v.rule, v.status) for v in lost.verdicts] == [("LOG-013", Status.FAIL)]
    assert lost.rulings["LOG-013"].state == "wrong"
    (idle,) = judged(GOOD + job(OTHERS, connect=False, comm="0xb0b")).verdicts
    assert idle.kind is Kind.UNDECIDABLE
    assert "job of 4 ranks on n[8-9]: initialised, but no path" in idle.reason


MESH = ranks(each=2)
GROUPS = ((0, 1), (2, 3), (0, 2), (1, 3))


def mesh(**different: Any) -> str:
    """FSDP on a device mesh: groups inside a host, groups across hosts, and none of all ranks."""
    return "".join(
        job([MESH[rank] for rank in group], comm=f"0x20{number}", **different)
        for number, group in enumerate(GROUPS)
    )


def test_groups_across_hosts_are_judged_where_no_group_has_all_ranks() -> None:
    (verdict,) = judged(mesh(), **ROCE).verdicts
    assert verdict.reason.startswith(
        "4 processes, in groups of 2 ranks across 2 hosts, came up, network IB, GPU Direct"
    )
    (found,) = judged(mesh(network="Socket", nics=0), **ROCE).verdicts
    assert (found.rule, found.status) == ("LOG-001", Status.FAIL)
    assert found.reason.startswith("4 ranks on n[1-2] use network Socket")
    assert "LOG-025" in {v.rule for v in judged(mesh(gdr=False), **ROCE).verdicts}
    # One process on TCP, in a group that is not the one of the counts.
    lines = mesh().replace(
        "n2:101:161 [1] NCCL INFO Using network IB", "n2:101:161 [1] NCCL INFO Using network Socket"
    )
    assert "LOG-006" in {v.rule for v in judged(lines, **ROCE).verdicts}


def group_line(rank: Rank, number: int, what: str, pointer: str) -> str:
    return rank.info(
        f"ncclCommInitRankConfig comm {pointer} rank {number} nranks 2 cudaDev {rank.dev} nvmlDev "
        f"{rank.dev} busId {rank.dev + 1:x}8000 commId 0x77 - {what}"
    )


def test_a_group_whose_init_has_no_end_is_no_healthy_job() -> None:
    """All ranks came through, and then some wait in the init of a smaller communicator."""
    one, two = (group_line(rank, at, "Init START", f"0xa{at}") for at, rank in enumerate((R0, R2)))
    (found,) = judged(GOOD + one + two).verdicts
    assert (found.rule, found.cause, found.hosts) == ("LOG-014", INIT_STUCK, ("n1", "n2"))
    assert "ranks 0-1 of a communicator of 2, which is not the largest, began init" in found.reason
    (alone,) = judged(GOOD + one).verdicts
    assert "did not end it, rank 1 did not come; the last line of n1 pid 100 is at" in alone.reason
    done = (
        one
        + two
        + group_line(R0, 0, "Init COMPLETE", "0xa0")
        + group_line(R2, 1, "Init COMPLETE", "0xa1")
    )
    assert [v.status for v in judged(GOOD + done).verdicts] == [Status.PASS]
    given_up = one + group_line(R0, 0, "Abort COMPLETE", "0xa0")
    assert [v.status for v in judged(GOOD + given_up).verdicts] == [Status.PASS]
    log = read(GOOD + one)
    log.file_age_s = {0: 1.0}
    (growing,) = judged(log).verdicts
    assert (growing.kind, growing.rule) == (Kind.UNDECIDABLE, "LOG-014")


def test_ranks_that_do_not_agree_how_many_they_are() -> None:
    text = "".join(
        line.replace("nranks 4", "nranks 8") if line.startswith("n2") else line
        for line in job(complete=False).splitlines(keepends=True)
    )
    (found,) = judged(text).verdicts
    assert (found.rule, found.hosts) == ("LOG-015", ("n1", "n2"))
    assert found.reason.endswith("do not agree how many they are: 4 on n1, 8 on n2")
    assert found.measured["evidence"]


def test_a_nic_that_is_no_rail_and_carries_channels_is_told() -> None:
    text = job(ranks(each=4), nics=3)
    rails = {"nics": ["mlx5_0", "mlx5_1"], **ROCE}
    assert judged(text, **rails).rulings["LOG-024"].state == "right"
    moved = text.replace("via NET/IB/1", "via NET/IB/2")
    (one, _) = judged(moved, **rails).rulings["LOG-024"].found
    assert one.status is Status.FAIL
    assert one.reason.endswith("mlx5_0 1, mlx5_1 0; and mlx5_2, declared as no rail, carry some")
    both = text.replace("Channel 00/0", "Channel 02/0").replace("via NET/IB/0", "via NET/IB/2")
    extra = "".join(line for line in both.splitlines(True) if " via NET/IB/2" in line)
    (warned, _) = judged(text + extra, **rails).rulings["LOG-024"].found
    assert warned.status is Status.WARN


def test_who_is_tried_again_stands_beside_an_init_that_has_no_end() -> None:
    line = "socketPollConnect: connect to 192.0.2.9<41234> returned Connection refused, retrying (3/34) after sleep for 300 msec"
    (found,) = judged(job(complete=False) + R0.info(line)).verdicts
    assert found.rule == "LOG-014"
    assert found.reason.endswith("tried again: connections to 192.0.2.9 (Connection refused)")
    assert (
        judged(R0.info(line) + GOOD).rulings["LOG-012"].why.startswith("tried again: 1 connection")
    )


def test_of_two_jobs_a_host_has_a_part_each() -> None:
    other = [Rank(host, 500 + dev, dev + 2) for host in ("n1", "n2") for dev in range(2)]
    both = of_host("n1", GOOD + job(other, comm="0xb0b"))
    (verdict,) = on_host(NOTHING, running=running(both))
    assert verdict.status is Status.PASS
    assert verdict.reason.count("all 2 ranks of this host came up") == 2
    idle = of_host("n1", GOOD + job(other, comm="0xb0b", connect=False))
    (doubt,) = on_host(NOTHING, running=running(idle))
    assert doubt.kind is Kind.UNDECIDABLE


OVER_NCCL = {
    "RuntimeError: NCCL error in: /opt/torch/lib/c10d/ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8\n": "LOG-056",
    "[rank3]: torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1691, remote process exited or there was a network error, NCCL version 2.21.5\nLast error:\n\n": "LOG-056",
    "[rank3]: torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer\n": "LOG-056",
    "[rank3]:[E709 ProcessGroupNCCL.cpp:523] [Rank 3] To avoid data inconsistency, we are taking the entire process down.\n": "LOG-056",
    "[rank3]:[E709 ProcessGroupNCCL.cpp:1709] [PG ID 0 PG GUID 0(default_pg) Rank 3] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=3\n": "LOG-048",
    "[rank3]:[F709 ProcessGroupNCCL.cpp:1413] [PG ID 0 PG GUID 0(default_pg) Rank 3] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.\n": "LOG-048",
}


@pytest.mark.parametrize("line", OVER_NCCL)
def test_a_process_that_pytorch_ended_is_no_healthy_job(line: str) -> None:
    (found,) = judged(GOOD + line).verdicts
    assert (found.rule, found.status) == (OVER_NCCL[line], Status.FAIL)
    assert found.hosts == (("n2",) if "[rank3]" in line else ())
    # What says more comes first.
    known = judged(GOOD + line + R0.warn(COMPLETED.format(12))).verdicts
    assert [verdict.rule for verdict in known] == ["LOG-032/033"]
    again = judged(GOOD + line + job(ranks(pid=900), comm="0xabc")).verdicts
    assert [verdict.status for verdict in again] == [Status.PASS]


def test_a_time_out_before_a_restart_is_not_one_of_the_last_attempt() -> None:
    hang = hung(0, 7) + hung(2, 7) + hung(3, 7) + dumped(1, 6)
    assert judged(GOOD + hang).verdicts[0].rule == "LOG-048"
    again = judged(GOOD + hang + job(ranks(pid=900), comm="0xabc")).verdicts
    assert [verdict.status for verdict in again] == [Status.PASS]


def test_watchdogs_are_those_of_the_job_whose_lines_they_stand_beside() -> None:
    hang = hung(0, 7) + hung(2, 7) + hung(3, 7) + dumped(1, 6)
    log = read_all({"a.log": GOOD, "b.log": job(OTHERS, comm="0xb0b") + hang})
    (found,) = judged(log).verdicts
    assert (found.rule, found.hosts) == ("LOG-048", ("n8",))
    assert found.reason.startswith("job of 4 ranks on n[8-9]: ranks 0, 2-3 waited for ALLREDUCE")
    # In one stream nobody knows whose rank 1 it is.
    (unnamed,) = judged(GOOD + job(OTHERS, comm="0xb0b") + hang).verdicts
    assert (unnamed.rule, unnamed.hosts) == ("LOG-048", ())
    assert unnamed.reason.startswith("ranks 0, 2-3 waited for ALLREDUCE number 7 until")
    after = judged(GOOD + job(OTHERS, comm="0xb0b") + R0.warn(COMPLETED.format(12)) + hang)
    assert [verdict.rule for verdict in after.verdicts] == ["LOG-032/033"]


def test_a_growing_log_of_one_job_does_not_excuse_another() -> None:
    lost = job(OTHERS, skip=[2], complete=False, comm="0xb0b")
    log = read_all({"a.log": GOOD, "b.log": lost})
    log.file_age_s = {0: 1.0, 1: 9000.0}
    assert [v.rule for v in judged(log).verdicts] == ["LOG-013"]
    log.file_age_s = {0: 9000.0, 1: 1.0}
    assert judged(log).verdicts[0].kind is Kind.UNDECIDABLE


def test_what_failed_before_the_job_came_through_is_of_an_earlier_attempt() -> None:
    """Where no root listens a rank dies before NCCL names a communicator."""
    early = [Rank("n1", 40, 0), Rank("n1", 41, 1)]
    text = "".join(rank.info("cudaDriverVersion 12090") for rank in early)
    text += early[1].warn(REFUSED.format("192.0.2.9"))
    assert [v.status for v in judged(text + GOOD).verdicts] == [Status.PASS]
    # Not where it is the last word, nor where nothing came through since.
    assert [v.rule for v in judged(GOOD + text).verdicts] == ["LOG-011"]
    assert "LOG-011" in {verdict.rule for verdict in judged(text + job(complete=False)).verdicts}


# --- who was first, and when --------------------------------------------------------------------


def test_a_peer_that_others_lost_was_first() -> None:
    """NCCL prints it as a full name, or as an address of the bootstrap."""
    files = {
        "a": GOOD + R0.warn("Cuda failure 700 'an illegal memory access was encountered'"),
        "b": R2.warn("Cuda failure 719 'unspecified launch failure'"),
        "c": R1.warn(CLOSED.format("n2.example.org")) + R3.warn(CLOSED.format("n2.example.org")),
    }
    (found,) = judged(read_all(files)).rulings["LOG-041"].found
    assert found.reason.startswith("Cuda failure 719 'unspecified launch failure'")
    ruling = judged(GOOD + R0.warn(CLOSED.format("n2.example.org"))).rulings["LOG-054"]
    assert ruling.why.startswith("1 process lost a peer, of n2.example.org")
    assert ruling.turn_on.startswith("see how the processes on n2 ended, whose log tells no error")
    other = judged(GOOD + R0.warn(CLOSED.format("192.0.2.77"))).rulings["LOG-054"]
    assert other.turn_on == "read the log of 192.0.2.77 from the same moment"
    stuck = judged(job(complete=False) + R0.warn(CLOSED.format("192.0.2.77"))).verdicts
    assert [verdict.rule for verdict in stuck] == ["LOG-054"]


def test_a_launchers_time_is_not_compared_with_nccls_own() -> None:
    """kubectl writes UTC, NCCL the local time of its container."""
    dressed = "".join(f"2026-01-01T10:00:00.1Z {line}\n" for line in GOOD.splitlines())
    warning = R0.warn(COMPLETED.format(12), stamp="[2026-01-01 18:00:05] ").strip()
    (found,) = judged(f"{dressed}2026-01-01T10:00:05.1Z {warning}\n").verdicts
    assert found.rule == "LOG-032"
    assert "5 s after init: the path never worked" in found.reason


@pytest.mark.parametrize(
    ("text", "device"),
    [
        (
            "NET/IB : mlx5_0:1 async fatal event on QP (0x7f0012): local access violation work queue error",
            "mlx5_0",
        ),
        ("NET/IB : mlx5_1:1 async fatal event: local catastrophic error", "mlx5_1"),
        ("NET/IB: mlx5_1:1 async fatal event on CQ (0x7f0012): CQ error", "mlx5_1"),
        ("NET/IB : Got async event : port error", ""),
    ],
)
def test_fatal_events_of_a_nic(text: str, device: str) -> None:
    """Without "Got" from 2.23 on (NCCL src/transport/net_ib.cc)."""
    (found,) = judged(GOOD + R0.warn(text)).verdicts
    assert (found.rule, found.status) == ("LOG-038", Status.FAIL)
    assert ("(mlx5_" in found.reason) is bool(device)
    assert device in found.reason


# --- what the log itself says of the cause ------------------------------------------------------


@pytest.mark.parametrize(
    ("echo", "said"),
    [
        ("NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_DISABLE=1"),
        ("NCCL_NET set by environment to Socket", "NCCL_NET=Socket"),
    ],
)
def test_the_setting_that_forces_tcp_is_named(echo: str, said: str) -> None:
    text = "".join(rank.info(echo) for rank in ranks()) + job(network="Socket", nics=0)
    (found,) = judged(text, **ROCE).verdicts
    assert found.reason.endswith(f": {said} is set")


def test_ranks_on_tcp_beside_others_lack_no_gpu_direct() -> None:
    text = "".join(
        line.replace("NET/IB/", "NET/Socket/")
        .replace("/GDRDMA", "")
        .replace("network IB", "network Socket")
        if line.startswith("n2")
        else line
        for line in GOOD.splitlines(keepends=True)
    )
    assert {verdict.rule for verdict in judged(text, **ROCE).verdicts} == {"LOG-006"}


def test_of_two_halves_with_two_versions_none_is_the_odd_one() -> None:
    text = "".join(
        line.replace("2.27.7+cuda12.9", "2.21.5+cuda12.4") if line.startswith("n2") else line
        for line in GOOD.splitlines(keepends=True)
    )
    (found,) = judged(text).rulings["LOG-016"].found
    assert set(found.hosts) == {"n1", "n2"}
    assert found.reason.endswith("2.21.5 on 2 ranks of n2, 2.27.7 on 2 ranks of n1")


def test_nics_that_cannot_be_merged_end_init() -> None:
    line = (
        "Trying to merge multiple devices together with different link_layer properties mlx5_0 -> 1 "
        "and mlx5_1 -> 2. Try only using NICs with one type of link using NCCL_IB_HCA"
    )
    (found,) = judged(job(complete=False) + R0.warn(line)).verdicts
    assert (found.rule, found.cause, found.hosts) == ("LOG-008", LINK_TYPE, ("n1",))


@pytest.mark.parametrize(
    "why",
    [
        "ibv_reg_mr failed with error Bad address",
        "ibv_reg_mr_iova2 failed with error Invalid argument",
        "ibv_reg_dmabuf_mr failed with error Operation not supported",
    ],
)
def test_gpu_memory_that_a_nic_cannot_register(why: str) -> None:
    """NVIDIA/nccl#778, NVIDIA/nccl#1842, Mellanox/nv_peer_memory#115."""
    warning = R0.warn(f"Call to {why}", "misc/ibvwrap.cc:182")
    (found,) = judged(job(complete=False) + warning).verdicts
    assert (found.rule, found.cause, found.status) == ("LOG-037", GPU_UNREGISTERED, Status.FAIL)
    # A user's buffer: NCCL goes on without registering it.
    (warned,) = judged(warning + GOOD).verdicts
    assert (warned.rule, warned.status) == ("LOG-037", Status.WARN)


def test_lines_that_lost_their_head_are_said_to_be_that() -> None:
    bare = without(GOOD, "NCCL version")
    text = "".join(line.partition("] ")[2] for line in bare.splitlines(keepends=True))
    (verdict,) = judged(text).verdicts
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "LOG-052")
    assert "lines of NCCL without their head, host:pid:tid [device]" in verdict.reason


@pytest.mark.parametrize(
    "oob", ["br-1a2b3c4d5e6f:172.18.0.1", "podman0:10.88.0.1", "lxcbr0:10.0.3.1"]
)
def test_bridges_of_container_engines_are_no_interfaces(oob: str) -> None:
    assert judged(job(oob=oob, complete=False)).rulings["LOG-009"].state == "wrong"


@pytest.mark.parametrize(
    ("peer", "cause"),
    [
        ("172.17.0.1", WRONG_INTERFACE),
        ("127.0.0.1", WRONG_INTERFACE),
        ("192.0.2.9", CONNECT_FAILED),
    ],
)
def test_a_peer_on_dockers_bridge_is_a_wrong_interface(peer: str, cause: Cause) -> None:
    warning = REFUSED.format(peer)
    (found,) = judged(job(complete=False) + R0.warn(warning)).rulings["LOG-011"].found
    assert found.cause is cause
    one = job(ONE_HOST, complete=False) + ONE_HOST[0].warn(warning)
    assert judged(one).rulings["LOG-011"].found[0].cause is CONNECT_FAILED


def test_machines_with_one_short_name_are_not_told_apart_by_an_inventory() -> None:
    four = [*ranks(("gpu-a",), 2, pid=100), *ranks(("gpu-a",), 2, pid=200)]
    log = read(job(four, nodes=2, network="Socket", nics=0))
    roce = {"commcheck_platform": "gpu-roce"}
    alike = {name: Host(name, roce) for name in ("gpu-a.rack1", "gpu-a.rack2")}
    rulings = judge_case(Case(log, site_of(alike))).rulings
    assert rulings["LOG-046"].state == "unknown"
    assert "1 host name, which machines of the inventory share" in rulings["LOG-046"].why
    # What holds for both is kept.
    assert rulings["LOG-001"].found[0].status is Status.FAIL
    mixed = {**alike, "gpu-a.rack2": Host("gpu-a.rack2", {})}
    rulings = judge_case(Case(log, site_of(mixed))).rulings
    assert rulings["LOG-001"].found[0].status is Status.WARN


# --- PyTorch's watchdog -------------------------------------------------------------------------

DEFAULT = "0 PG GUID 0(default_pg)"
TENSOR = "3 PG GUID 7(TENSOR_MODEL_PARALLEL_GROUP)"
DATA = "5 PG GUID 22(DATA_PARALLEL_GROUP)"
FAILED = {
    "2.4": "[PG 0 (default_pg) Rank {2}] Timeout at NCCL work: {3}, last enqueued NCCL work: {4}, last completed NCCL work: {5}.",
    "2.5": "[PG ID {1} Rank {2}] Exception (either an error or timeout) detected by watchdog at work: {3}, last enqueued NCCL work: {4}, last completed NCCL work: {5}.",
    "2.7": "[PG ID {1} Rank {2}]  failure detected by watchdog at work sequence id: {3} PG status: last enqueued work: {4}, last completed work: {5}",
    "2.13": "[PG ID {1} Rank {2}]  failure detected by watchdog at work sequence id: {3} PG status: last enqueued work: {4}, last started work: 19 (_ALLGATHER_BASE), last completed work: {5}",
}
"""Of torch by release, behind the head; pytorch#183656 for the last."""


def hung(
    rank: int,
    seq: int,
    op: str = "ALLREDUCE",
    *,
    pg: str = DEFAULT,
    local: int | None = None,
    torch: str = "2.7",
) -> str:
    """A rank whose watchdog ended it, with the exception in which torch says it once more."""
    inside = rank if local is None else local
    timed = TIMED.format(rank, seq, op).replace(f"[Rank {rank}]", f"[Rank {inside}]")
    said = FAILED[torch].format(rank, pg, inside, seq, seq + 2, seq - 1)
    what = timed.partition("] ")[2]
    return (
        f"{timed}[rank{rank}]:[E709 17:05:38.16 ProcessGroupNCCL.cpp:2271] {said}\n"
        f"  what():  [PG ID {pg} Rank {inside}] Process group watchdog thread terminated with exception: {what}"
    )


def dumped(rank: int, work: int) -> str:
    """A rank that another one's time-out made tell how far its default group is."""
    return (
        f"[rank{rank}]:[E709 17:05:38.2 ProcessGroupNCCL.cpp:1746] [PG ID {DEFAULT} Rank {rank}] Received a dump signal due to a "
        "collective timeout from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL "
        f"work: {work}, last completed NCCL work: {work}.This is most likely caused by incorrect usages\n"
    )


@pytest.mark.parametrize("torch", FAILED)
def test_the_late_rank_is_named_by_the_words_of_each_torch(torch: str) -> None:
    text = "".join(hung(rank, 7, torch=torch) for rank in (0, 1, 3))
    late = hung(2, 4, torch=torch).splitlines()[1] + "\n"  # how far it came, and no time-out
    (found,) = judged(text + late).rulings["LOG-048"].found
    assert "ranks 0-1, 3 waited for ALLREDUCE number 7 until" in found.reason
    assert found.reason.endswith("rank 2 did not: last enqueued 6, last completed 3")


def test_numbers_of_another_process_group_make_no_rank_late() -> None:
    """The monitor of the default group tells of that one, whichever group hangs."""
    text = "".join(hung(rank, 900, pg=TENSOR, local=rank - 6) for rank in (6, 7))
    (found,) = (
        judged(text + "".join(dumped(rank, 50) for rank in range(8))).rulings["LOG-048"].found
    )
    assert found.reason == (
        "ranks 6-7 waited for ALLREDUCE number 900 of group 7(TENSOR_MODEL_PARALLEL_GROUP) until "
        "the watchdog ended them; no rank is known to be late"
    )
    assert (found.measured["late_ranks"], found.measured["waiting_ranks"]) == ([], 2)


def test_ranks_that_wait_in_their_own_groups_are_in_step() -> None:
    text = "".join(hung(rank, 900, pg=TENSOR) for rank in (0, 1))
    text += "".join(
        hung(rank, 12, "_REDUCE_SCATTER_BASE", pg=DATA, local=rank - 2) for rank in (2, 3)
    )
    rulings = judged(text).rulings
    assert rulings["LOG-049"].state == "right"
    (found,) = rulings["LOG-048"].found
    assert "_REDUCE_SCATTER_BASE number 12 of group 22(DATA_PARALLEL_GROUP)" in found.reason
    # Without the lines that name the groups nobody can tell, and the time-out stays a time-out.
    bare = TIMED.format(0, 900, "ALLREDUCE") + TIMED.format(2, 12, "BROADCAST")
    rulings = judged(bare).rulings
    assert (rulings["LOG-048"].state, rulings["LOG-049"].state) == ("wrong", "unknown")
    assert "which process groups these are is not in the log" in rulings["LOG-048"].found[0].reason


def test_different_collectives_of_one_group_are_a_desync() -> None:
    text = (
        hung(0, 900, pg=TENSOR) + hung(1, 900, "_ALLGATHER_BASE", pg=TENSOR) + hung(5, 7, pg=DATA)
    )
    (found,) = judged(text).rulings["LOG-049"].found
    assert found.reason.startswith(
        "ranks of group 7(TENSOR_MODEL_PARALLEL_GROUP) wait in different"
    )
    assert "number 7" not in found.reason


def test_time_outs_of_an_earlier_attempt_are_no_desync() -> None:
    before = "".join(hung(rank, 100) for rank in range(4))
    rulings = judged(before + "".join(hung(rank, 57) for rank in (0, 1, 3)) + dumped(2, 56)).rulings
    assert rulings["LOG-049"].state == "right"
    (found,) = rulings["LOG-048"].found
    assert "ranks 0-1, 3 waited for ALLREDUCE number 57" in found.reason
    assert "rank 2 did not" in found.reason
