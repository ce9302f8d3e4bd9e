"""library.env: what a host tells of its jobs' variables, held against what it has."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from checks.library.env import CHECK
from commcheck.check import EveryRail, Nothing, Unread
from commcheck.model import (
    Accelerator,
    Cause,
    Kind,
    Machine,
    Origin,
    Rail,
    Status,
    Verdict,
    Wanted,
)
from commcheck.nccl.environment import causes, causes_given
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
    RANK_TABLE,
    RANKS_DIFFER,
    RAS_OPEN,
    SHARED_MEMORY,
    STRAY_TEXT,
    TCP_FORCED,
    TOPOLOGY_FILE,
    TORCH,
    TRAFFIC_CLASS,
    TUNING,
)
from commcheck.nccl.environment.causes_given import (
    NO_RDMA_DEVICE,
    NOT_HANDED_ON,
    RANK_TABLE_BEGUN,
)
from commcheck.nccl.environment.model import Layer
from commcheck.nccl.processes import Process, Users
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
        (("NCCL_TOPO_DUMP_FILE='x.xml'",), "", STRAY_TEXT, Status.FAIL),
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
        (("HCCL_ENTRY_LOG_ENABLE=1",), "", HCCL_TUNING, Status.WARN),
        (("NCCL_RAS_ADDR=0.0.0.0:28028",), "", RAS_OPEN, Status.WARN),
    ],
)
def test_a_finding(
    judged: Judge, ranks: tuple[str, ...], conf: str, cause: Cause, status: Status
) -> None:
    verdict = judged(CHECK, answers(*ranks, conf=conf), machine=MACHINE).verdict
    assert (verdict.cause, verdict.status) == (cause, status), verdict.reason
    assert verdict.rule


def test_tcp_is_what_a_host_without_rdma_is_told_to_use(judged: Judge) -> None:
    machine = replace(MACHINE, platform="gpu-tcp", rails=())
    said = answers(f"NCCL_NET=Socket NCCL_IB_DISABLE=1 {FAR}")
    verdict = judged(CHECK, said, machine=machine).verdict
    assert verdict.cause is not TCP_FORCED
    assert verdict.status is not Status.FAIL


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
    others = {GID, TRAFFIC_CLASS, RAIL_ONLY, LIBRARIES, OVERRIDDEN, SHARED_MEMORY, RANK_TABLE,
              NOT_HANDED_ON, NO_RDMA_DEVICE, RANK_TABLE_BEGUN}  # fmt: skip
    assert {id(cause) for cause in others} < {id(cause) for cause in CHECK.causes}
    told = (*vars(causes).values(), *vars(causes_given).values())
    every = [each for each in told if isinstance(each, Cause)]
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


# --- jobs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "failed"), [("nvidia_peermem", False), ("nv_peer_mem", False), ("nvidia", True)]
)
def test_either_name_of_the_peer_memory_module_does_without_dmabuf(
    judged: Judge, module: str, failed: bool
) -> None:
    said = answers("NCCL_DMABUF_ENABLE=0")
    said["lsmod"] = (f"Module                  Size  Used by\n{module}  16384  0\n", 0)
    verdict = judged(CHECK, said, machine=MACHINE).verdict
    assert (verdict.cause is GDR_OFF) is failed


NOT_READ = Unread("it is not there", "CommandNotRun")


def rank(number: int, text: str = "", *, port: int = 29500, **more: str) -> Process:
    """A rank of a job on two hosts of two ranks each."""
    told = {"MASTER_ADDR": "gpu-01", "MASTER_PORT": str(port), "WORLD_SIZE": "4",
            "LOCAL_WORLD_SIZE": "2", "RANK": str(number), **more}  # fmt: skip
    told |= dict(word.split("=", 1) for word in text.split())
    return Process(41000 + number, tuple(sorted(told.items())))


def seen_on(*processes: Process) -> Any:
    unread: Any = dict.fromkeys(
        ("addresses", "modules", "gpus", "files", "pci", "npu_pfc"), NOT_READ
    )
    rails: Any = dict.fromkeys(("qos", "marking", "gids"), EveryRail({}))
    return CHECK.seen(users=Users(processes), conf=Layer({}), **unread, **rails)


def undeclared() -> Any:
    unset: Any = dict.fromkeys(CHECK.want.__dataclass_fields__, Wanted(None, Origin("inventory")))
    return CHECK.want(**unset)


def own(*processes: Process) -> dict[str, Status]:
    found = CHECK.judge(seen_on(*processes), MACHINE, undeclared(), Nothing())
    verdicts = (found,) if isinstance(found, Verdict) else found
    return {verdict.rule: verdict.status for verdict in verdicts if verdict.cause}


def together(**hosts: tuple[Process, ...]) -> dict[str, list[tuple[str, Status]]]:
    """What is told of each host once all were looked at, where it is not what it told itself."""
    assert CHECK.together is not None
    parts = {}
    for name, processes in hosts.items():
        machine = replace(MACHINE, name=name)
        part = CHECK.together.part(seen_on(*processes), machine, undeclared())
        if part is not None:
            parts[name] = pickle.loads(pickle.dumps(part))
    told = {}
    for whole in CHECK.together.judge(parts):
        for name, verdicts in whole.verdicts.items():
            told[name] = [(v.rule, v.status) for v in verdicts]
    return told


def test_two_jobs_on_one_host_may_be_set_otherwise() -> None:
    assert own(rank(0, "NCCL_BUFFSIZE=8388608"), rank(1)) == {"ENV-001": Status.FAIL}
    assert own(rank(0, "NCCL_BUFFSIZE=8388608"), rank(0, port=29501)) == {}


def test_a_host_set_unlike_the_others_of_its_job_is_told() -> None:
    odd = "NCCL_BUFFSIZE=8388608"
    three = {
        name: tuple(rank(number, text, WORLD_SIZE="6") for number in numbers)
        for name, text, numbers in (
            ("gpu-01", "", (0, 1)),
            ("gpu-02", odd, (2, 3)),
            ("gpu-03", "", (4, 5)),
        )
    }
    found = together(**three)
    assert found == {"gpu-02": [("ENV-001", Status.FAIL)]}


def test_the_reason_does_not_hang_on_who_was_looked_at_first() -> None:
    assert CHECK.together is not None
    hosts = {"gpu-01": (rank(0), rank(1)), "gpu-02": (rank(2, "NCCL_ALGO=Tree"), rank(3))}
    told = []
    for names in (list(hosts), list(hosts)[::-1]):
        parts = {
            name: CHECK.together.part(
                seen_on(*hosts[name]), replace(MACHINE, name=name), undeclared()
            )
            for name in names
        }
        (whole,) = CHECK.together.judge(parts)
        told.append({name: [v.reason for v in said] for name, said in whole.verdicts.items()})
    assert told[0] == told[1]


def test_of_two_halves_the_one_whose_value_is_wrong_by_itself_is_told() -> None:
    tree = "NCCL_ALGO=Tree"  # a warning by itself
    found = together(**{"gpu-01": (rank(0), rank(1)), "gpu-02": (rank(2, tree), rank(3, tree))})
    assert found == {"gpu-02": [("ENV-001", Status.FAIL), ("ENV-034", Status.WARN)]}
    odd = "NCCL_BUFFSIZE=8388608"
    found = together(**{"gpu-01": (rank(0), rank(1)), "gpu-02": (rank(2, odd), rank(3, odd))})
    assert found == {name: [("ENV-001", Status.FAIL)] for name in ("gpu-01", "gpu-02")}


def test_what_a_host_has_failed_for_is_not_told_again() -> None:
    off = "NCCL_NET=RoCE"
    assert own(rank(2, off), rank(3, off)) == {"ENV-012": Status.FAIL}
    assert together(**{"gpu-01": (rank(0), rank(1)), "gpu-02": (rank(2, off), rank(3, off))}) == {}


@pytest.mark.parametrize(
    "others",
    [
        {"port": 29501},
        {"MASTER_ADDR": "localhost"},
        {"MASTER_ADDR": "127.0.0.1"},
        {"MASTER_ADDR": "::1"},
        {"LOCAL_WORLD_SIZE": "4"},
        {"WORLD_SIZE": "8"},
    ],
)
def test_other_jobs_are_not_held_against_each_other(others: dict[str, Any]) -> None:
    odd = "NCCL_BUFFSIZE=8388608"
    mine = {k: v for k, v in others.items() if k != "port" and k != "WORLD_SIZE"}
    one = (rank(0, **mine), rank(1, **mine))
    assert together(**{"gpu-01": one, "gpu-02": (rank(2, odd, **others),)}) == {}


def test_ranks_of_one_number_are_of_two_jobs_that_meet_at_one_name() -> None:
    odd = "NCCL_BUFFSIZE=8388608"
    found = together(**{"gpu-01": (rank(0), rank(1)), "gpu-02": (rank(0, odd), rank(1, odd))})
    assert found == {}
