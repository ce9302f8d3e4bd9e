"""library.env: what a host tells of its jobs' variables, held against what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from checks.library.env import CHECK
from commcheck.model import Accelerator, Cause, Kind, Machine, Rail, Status
from commcheck.nccl.environment import causes
from commcheck.nccl.environment.causes import (
    CONF_SYNTAX,
    GDR_OFF,
    GID,
    HCA_LIST,
    HCCL_TUNING,
    HCCL_VALUE,
    IDENTITY,
    INTERFACE,
    LIBRARIES,
    LOCAL_PATH,
    LOGGING,
    MEMLOCK,
    MISSPELT,
    NO_EFFECT,
    NO_SUCH_NETWORK,
    NOT_A_NUMBER,
    OTHER_STACK,
    OUT_OF_RANGE,
    OVERRIDDEN,
    PATH_LEVEL,
    RAIL_ONLY,
    RANKS_DIFFER,
    RAS_OPEN,
    SHARED_MEMORY,
    TCP_FORCED,
    TOPOLOGY_FILE,
    TORCH,
    TRAFFIC_CLASS,
    TUNING,
)
from tests.checks.conftest import RAIL, Judge

MACHINE = Machine("gpu-01", "gpu-roce", rails=(RAIL,), accelerators=(Accelerator(0, "nvidia"),))
FIND = "find /proc/ -mindepth 2 -maxdepth"
QOS = "mlnx_qos/good-dscp-prio3.txt"
FAR = "WORLD_SIZE=16 LOCAL_WORLD_SIZE=8"
UNMARKED = (
    "grep: /sys/class/net/ens1np0/ecn: No such file or directory\n"
    "grep: /sys/kernel/config/rdma_cm/mlx5_0/ports/1: No such file or directory\n",
    2,
)
"""What grep says of a port without any mark of its own."""


def answers(*ranks: str, conf: str = "") -> dict[str, tuple[str, int]]:
    """The answers of a host on which these ranks run, each with its variables."""
    pids = range(41000, 41000 + len(ranks))
    held = "".join(f"/proc/{pid}/fd/17\n" for pid in pids)
    environ = "".join(
        f"/proc/{pid}/environ:{word}\0"
        for pid, text in zip(pids, ranks, strict=True)
        for word in f"RANK={pid - 41000} {text}".split()
    )
    missing = ("cat: /etc/nccl.conf: No such file or directory\n", 1)
    return {
        f"{FIND} 3": (held or "\n", 0),
        f"{FIND} 2 -name environ": (environ + "\n", 0),
        f"{FIND} 2 -name status": ("\n", 0),
        "cat /etc/nccl.conf": (conf, 0) if conf else missing,
    }


@pytest.mark.parametrize(
    ("ranks", "conf", "cause", "status"),
    [
        ((f"NCCL_IB_DISABLE=1 {FAR}",), "", TCP_FORCED, Status.FAIL),
        (("NCCL_NET=RoCE",), "", NO_SUCH_NETWORK, Status.FAIL),
        (("NCCL_IB_TIMOUT=22",), "", MISSPELT, Status.WARN),
        (("NCCL_LL_THRESHOLD=0",), "", NO_EFFECT, Status.WARN),
        (("NCCL_IB_DISABLE=yes",), "", NOT_A_NUMBER, Status.FAIL),
        (("NCCL_IB_RETRY_CNT=13",), "", OUT_OF_RANGE, Status.FAIL),
        ((), "export NCCL_IB_TC=106\n", CONF_SYNTAX, Status.WARN),
        (("NCCL_ALGO=Tree", "NCCL_ALGO=Ring"), "", RANKS_DIFFER, Status.FAIL),
        (("NCCL_IB_HCA==mlx5_7",), "", HCA_LIST, Status.FAIL),
        (("NCCL_NET_GDR_LEVEL=LOC",), "", GDR_OFF, Status.FAIL),
        (("NCCL_NET_GDR_LEVEL=phb",), "", PATH_LEVEL, Status.FAIL),
        (("NCCL_SHM_DISABLE=1",), "", LOCAL_PATH, Status.WARN),
        (("NCCL_PROTO=LL",), "", TUNING, Status.WARN),
        (("GLOO_SOCKET_IFNAME=^eth",), "", INTERFACE, Status.WARN),
        (("NCCL_DEBUG=TRACE",), "", LOGGING, Status.WARN),
        (("TORCH_NCCL_BLOCKING_WAIT=1",), "", TORCH, Status.WARN),
        (("NCCL_COMM_ID=192.0.2.1:2900",), "", IDENTITY, Status.WARN),
        (("UCX_IB_GID_INDEX=1 NCCL_IB_GID_INDEX=3",), "", OTHER_STACK, Status.WARN),
        (("HCCL_RDMA_TC=130",), "", HCCL_VALUE, Status.FAIL),
        (("HCCL_ALGO=level0:NA",), "", HCCL_TUNING, Status.WARN),
        (("NCCL_RAS_ADDR=0.0.0.0:28028",), "", RAS_OPEN, Status.WARN),
    ],
)
def test_a_finding(
    judged: Judge, ranks: tuple[str, ...], conf: str, cause: Cause, status: Status
) -> None:
    verdict = judged(CHECK, answers(*ranks, conf=conf), machine=MACHINE).verdict
    assert (verdict.cause, verdict.status) == (cause, status), verdict.reason
    assert verdict.rule


FILES = "\n".join(
    [
        "pid 41000",
        "/proc/41000/limits:Max locked memory         65536                65536      bytes     ",
        "/proc/41000/status:CapEff:\t0000000000000000",
        "file NCCL_TOPO_FILE {}",
        "end\n",
    ]
)


@pytest.mark.parametrize(
    ("ranks", "told", "cause"),
    [
        (f"NCCL_TOPO_FILE=/t.xml {FAR}", "absent - /t.xml", TOPOLOGY_FILE),
        (FAR, "read 1:2 /t.xml", MEMLOCK),
    ],
)
def test_what_ranks_see_around_them(judged: Judge, ranks: str, told: str, cause: Cause) -> None:
    answered = {**answers(ranks), "job-files": (FILES.format(told), 0)}
    assert judged(CHECK, answered, machine=MACHINE).verdict.cause is cause


def test_causes_that_need_more_than_one_host_are_declared() -> None:
    """Found in files only, or with facts that these answers do not hold: tested by their rules."""
    others = {GID, TRAFFIC_CLASS, RAIL_ONLY, LIBRARIES, OVERRIDDEN, SHARED_MEMORY}
    assert {id(cause) for cause in others} < {id(cause) for cause in CHECK.causes}
    every = [each for each in vars(causes).values() if isinstance(each, Cause)]
    assert {id(cause) for cause in every} == {id(cause) for cause in CHECK.causes}


def with_qos(judged: Judge, text: str, **variables: object) -> tuple[Status, str]:
    more: Mapping[str, tuple[str, int]] = {
        **answers(text),
        "mlnx_qos -i ens1np0": (QOS, 0),
        "grep -rH . /sys/class/infiniband": UNMARKED,
    }
    verdict = judged(CHECK, more, machine=MACHINE, **variables).verdict
    return verdict.status, verdict.rule


def test_the_mark_is_held_against_what_the_ports_say(judged: Judge) -> None:
    assert with_qos(judged, "NCCL_IB_TC=106") == (Status.PASS, "")
    assert with_qos(judged, "NCCL_IB_TC=26") == (Status.FAIL, "ENV-020")
    assert with_qos(judged, "NCCL_DEBUG=WARN") == (Status.FAIL, "ENV-020")
    lossy = with_qos(judged, "NCCL_IB_TC=26", flow_control="none")
    assert lossy == (Status.PASS, "")


def test_without_the_ports_settings_the_mark_is_unknown(judged: Judge) -> None:
    verdict = judged(CHECK, answers("NCCL_IB_TC=106"), machine=MACHINE).verdict
    assert (verdict.kind, verdict.rule) == (Kind.UNDECIDABLE, "ENV-020")


def test_no_job(judged: Judge) -> None:
    idle = judged(CHECK, answers(), machine=MACHINE).verdict
    assert (idle.kind, idle.reason) == (
        Kind.NOT_APPLICABLE,
        "no process uses an accelerator, and /etc/nccl.conf sets nothing",
    )
    conf = judged(CHECK, answers(conf="NCCL_NET=Socket\n"), machine=MACHINE).verdict
    assert (conf.cause, conf.rule) == (TCP_FORCED, "ENV-011")
    assert "/etc/nccl.conf:1" in conf.reason


def test_unreadable_is_undecidable(judged: Judge) -> None:
    assert judged(CHECK, {}, machine=MACHINE).verdict.kind is Kind.UNDECIDABLE
    denied = {**answers(), f"{FIND} 3": ("find: '/proc/1/fd': Permission denied\n", 1)}
    verdict = judged(CHECK, denied, machine=MACHINE).verdict
    assert verdict.kind is Kind.UNDECIDABLE
    assert "sudo" in verdict.reason
    # What every job begins with is judged all the same.
    conf = {**denied, "cat /etc/nccl.conf": ("NCCL_ALGO=Ring\n", 0)}
    assert judged(CHECK, conf, machine=MACHINE).verdict.cause is TUNING


def test_a_rail_that_is_not_there_is_not_asked(judged: Judge) -> None:
    gone = Rail(1, "mlx5_1", present=False, fabric=True)
    machine = replace(MACHINE, rails=(RAIL, gone))
    verdict = judged(CHECK, answers("NCCL_DEBUG=WARN"), machine=machine).verdict
    assert "mlx5_1" not in verdict.reason
