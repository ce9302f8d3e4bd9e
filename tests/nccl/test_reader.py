# ruff: noqa: E501 - a line of a log is not broken
"""Lines as they really come: heads of every version, wrappers, damage, several communicators."""

from __future__ import annotations

import gzip
import json

import pytest

from commcheck.model import Status
from commcheck.nccl.case import Case
from commcheck.nccl.header import parse_head
from commcheck.nccl.judge import judge
from commcheck.nccl.paths import read_path
from commcheck.nccl.rules_gdr import distance_name
from commcheck.nccl.wrappers import time_s
from tests.nccl.made import COMM, Rank, job, ranks, read, read_all

FAR = ("z" * 119 + "\n") * 10_000
"""More than what is read line by line in any case."""

KNOWN = frozenset({"node1", "gpu-a01"})

HEADS = [
    ("node1:12:34 [3]", ("node1", 12, 34, "")),
    ("node1:12:34", ("node1", 12, 34, "")),
    ("[2026-04-22 21:34:20] node1:12:34 [0] misc/socket.cc:71", ("node1", 12, 34, "misc/socket.cc:71")),
    ("2026-04-22_21:34:20.123 node1:12:34 [0]", ("node1", 12, 34, "")),
    ("node1:12:34 [0] 12.345 ncclFunc:9", ("node1", 12, 34, "ncclFunc:9")),
    ("node1:12:34 [0] src/transport/net_ib/p2p.cc:7 (ncclIbTest)", ("node1", 12, 34, "src/transport/net_ib/p2p.cc:7")),
    ("node1:12:34 [-1]", ("node1", 12, 34, "")),
    ("[default3]:gpu-9_x:12:34 [3]", ("gpu-9_x", 12, 34, "")),
    ("[1,3]<stdout>:node7:12:34 [3]", ("node7", 12, 34, "")),
    ("3: node7:12:34 [3]", ("node7", 12, 34, "")),
    ("10.0.0.7: node7:12:34 [3]", ("node7", 12, 34, "")),
    ("(RayTrainWorker pid=581, ip=10.0.0.18) node7:12:34 [3]", ("node7", 12, 34, "")),
    ("[pod/w-3/pytorch] w-3:12:34 [3]", ("w-3", 12, 34, "")),
    ("INFO 10-27 07:48:16 worker.py:464] node7:12:34 [3]", ("node7", 12, 34, "")),
    ("Mar 04 05:06:07 host prog[123]: node7:12:34 [3]", ("node7", 12, 34, "")),
    ("node1:12:34 [0] tcpxResult_t tcpxCommProgress(tcpxComm*):1231", ("node1", 12, 34, "")),
    ("node1:12:34 [0] int cm_error(ofi_context_t*, fid_cq*, uint16_t):46", ("node1", 12, 34, "")),
    ("via P2P/CUMEMnode1:12:34 [3]", ("node1", 12, 34, "")),  # glued to a known name
]  # fmt: skip


@pytest.mark.parametrize(("text", "want"), HEADS)
def test_head(text: str, want: tuple[object, ...]) -> None:
    head = parse_head(text, len(text), KNOWN)
    assert head is not None
    assert (head.host, head.pid, head.tid, head.file) == want


@pytest.mark.parametrize(
    "text",
    [
        "12:34 [3]",
        ":12:34 [3]",
        "node1:12 [3]",
        "node1:x:34 [3]",
        "node1:12345678901:34 [3]",
        "loss=3.2node9:12:34 [0]",  # glued to something, and no known name
        "gpu-a01:41gpu-a07:5100:5160 [3]",
        "",
        "[3]",
    ],
)
def test_a_lost_head_is_not_guessed(text: str) -> None:
    assert parse_head(text, len(text), KNOWN) is None


def test_a_second_head_on_a_line_must_be_known() -> None:
    text = "node1:1:2 [0] NCCL INFO Connected all treesnode9:18:88 [3]"
    assert parse_head(text, len(text), KNOWN, first=False) is None


def test_long_junk_before_the_token_costs_nothing() -> None:
    text = "a:1:" * 200_000
    assert parse_head(text, len(text), KNOWN) is None


def edges(text: str | bytes) -> int:
    comms = read(text).comms.values()
    return sum(sum(comm.via.values()) for comm in comms)


PLAIN = job()
WRAPPED = {
    "torchrun": "[default0]:{}",
    "mpirun": "[1,3]<stdout>:{}",
    "srun": "3: {}",
    "ray": "\x1b[36m(RayTrainWorker pid=581, ip=192.0.2.7)\x1b[0m {}",
    "kubectl": "2025-03-04T05:06:07.123456789Z [pod/w-3/pytorch] {}",
    "cri": "2025-03-04T05:06:07.123456789+00:00 stdout F {}",
    "syslog": "Mar 04 05:06:07 host prog[123]: {}",
    "colour": "\x1b[1;32m{}\x1b[0m",
    "stamp": "[2026-04-22 21:34:20] {}",
    "lightning": "INFO 10-27 07:48:16 worker.py:464] {}",
    "gcloud": "2025-03-04T05:06:07.123456Z\t{}",
    "grep": "logs/job-0.log:{}",
    "grep-n": "12:{}",
    "grep-Hn": "/var/log/nccl.n1.7:12:{}",
    "cat-n": "    12\t{}",
    "terminal": "{}      ",
}


@pytest.mark.parametrize("name", WRAPPED)
def test_wrappers_change_nothing(name: str) -> None:
    wrapped = "".join(f"{WRAPPED[name].format(line)}\n" for line in PLAIN.splitlines())
    bare, other = read(PLAIN), read(wrapped)
    assert {c.key: dict(c.via) for c in bare.comms.values()} == {
        c.key: dict(c.via) for c in other.comms.values()
    }
    assert {(p.host, p.pid, p.network) for p in other.procs.values()} == {
        (p.host, p.pid, p.network) for p in bare.procs.values()
    }
    assert other.stats.fragments == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text + "\x00" * 500,
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.encode("utf-16"),
        lambda text: "".join(f"\rEpoch 0: 6%|#| 3/50\r{line}\n" for line in text.splitlines()),
        lambda text: "".join(json.dumps({"log": f"{line}\n", "stream": "stdout"}) + "\n" for line in text.splitlines()),
        lambda text: "".join(json.dumps({"message": line, "kubernetes": {"pod_name": "w"}}) + "\n" for line in text.splitlines()),
        lambda text: "".join(json.dumps({"insertId": "a", "textPayload": f"{line}\n"}) + "\n" for line in text.splitlines()),
        lambda text: json.dumps([{"insertId": "a", "textPayload": f"{line}\n"} for line in text.splitlines()], indent=2),
        lambda text: "".join(json.dumps({"labels": {"pod": "w"}, "line": line}) + "\n" for line in text.splitlines()),
        lambda text: "".join(json.dumps({"_source": {"message": line}}) + "\n" for line in text.splitlines()),
        lambda text: "".join(json.dumps({"_HOSTNAME": "n7", "MESSAGE": line}) + "\n" for line in text.splitlines()),
        lambda text: json.dumps({"events": [{"message": line, "timestamp": 1} for line in text.splitlines()]}, indent=4),
        lambda text: "timestamp,message\n" + "".join(f'1747438790000,"{line}"\n' for line in text.splitlines()),
        lambda text: "message,pod\n" + "".join(f'"{line}",w-0\n' for line in text.splitlines()),
        lambda text: "".join(f"1747438790000,{line}\n" for line in text.splitlines()),
        lambda text: "```\n" + "".join(f"> {line}\n" for line in text.splitlines()) + "```\n",
    ],
    ids=["crlf", "bom", "nul", "blank-lines", "utf-16", "redrawn", "docker", "shipper",
         "gcp", "gcp-indented", "loki", "elastic", "journald", "cloudwatch", "csv", "csv-first", "csv-plain", "fenced"],
)  # fmt: skip
def test_dress_changes_nothing(change: object) -> None:
    assert callable(change)
    assert edges(change(PLAIN)) == edges(PLAIN)
    assert read(change(PLAIN)).stats.fragments == 0


def test_json_of_an_unknown_form_is_said_to_be_that() -> None:
    text = "".join(json.dumps({"body": line}) + "\n" for line in PLAIN.splitlines())
    case = Case(read(text))
    assert "lines of JSON in a form that is not read" in case.damaged
    assert case.turn_on_whole == "export the lines as plain text"


def test_quotes_in_a_line_are_no_table() -> None:
    rank = Rank("n1", 100, 0)
    said = 'Could not "open", nor "read" it, "at all"'
    assert Case(read(job() + rank.warn(said))).errors[0].text == said


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_change_nothing(size: int) -> None:
    whole, pieces = read(PLAIN), read(PLAIN, chunk=size)
    assert whole.stats == pieces.stats
    assert edges(PLAIN) == sum(sum(c.via.values()) for c in pieces.comms.values())


def test_the_fast_way_and_the_careful_way_read_the_same() -> None:
    filler = "step 7 loss 2.1 tokens/s 123456\n"
    for spread in (0, 1, 9):
        text = FAR + "".join(line + filler * spread for line in PLAIN.splitlines(keepends=True))
        found = read(text)
        assert sum(sum(c.via.values()) for c in found.comms.values()) == edges(PLAIN)
        assert found.stats.lines == text.count("\n")
        last = max(proc.last for proc in found.procs.values())
        assert text.splitlines()[last[1] - 1].endswith("GDR 1")


def test_a_warning_far_down_keeps_its_line() -> None:
    rank = Rank("n1", 100, 0)
    text = job() + FAR + rank.warn("Cuda failure 'out of memory'")
    error = Case(read(text)).errors[0]
    assert text.splitlines()[error.at[1] - 1].endswith("'out of memory'")


def test_records_cut_by_the_container_are_joined() -> None:
    line = PLAIN.splitlines()[-3]
    cut = (
        f"2025-03-04T05:06:07Z stdout P {line[:-20]}\n2025-03-04T05:06:07Z stdout F {line[-20:]}\n"
    )
    for before in (job(), job() + FAR):
        base = edges(before)
        assert edges(before + cut) == base + 1
        assert (
            edges(before + "2025-03-04T05:06:07Z stderr F other\n".join(cut.splitlines(True)))
            == base + 1
        )


def test_a_cut_last_line_adds_nothing() -> None:
    rank = Rank("n1", 100, 0)
    cut = rank.info("Channel 00/0 : 0[0] -> 1[1] via NET/IB/1").rstrip("\n")
    assert edges(job() + cut) == edges(job())


def test_a_process_whose_name_was_cut_does_not_exist() -> None:
    text = job(ranks(("gpu-a01", "gpu-a02")))
    broken = text.replace(
        "gpu-a01:100:160 [0] NCCL INFO Using", "\n-a01:100:160 [0] NCCL INFO Using"
    )
    assert {proc.host for proc in read(broken).procs.values()} == {"gpu-a01", "gpu-a02"}


def test_short_logs_are_believed_at_the_end() -> None:
    found = read(Rank("n1", 7, 0).warn("Cuda failure 'out of memory'"))
    assert [proc.label for proc in found.procs.values()] == ["n1 pid 7"]


def test_two_containers_with_one_name_and_pid() -> None:
    one, two = ranks(("node",), 2, pid=1)
    two.pid = 1
    text = job([one, two])
    head = "node:1:61 [1]"
    second = "".join(line + "\n" for line in text.splitlines() if line.startswith(head))
    first = "".join(line + "\n" for line in text.splitlines() if not line.startswith(head))
    found = read_all({"a": first, "b": second})
    (comm,) = found.comms.values()
    assert {rank: m.proc for rank, m in comm.members.items()}.keys() == {0, 1}
    assert comm.members[0].proc is not comm.members[1].proc


def test_file_order_changes_no_fact() -> None:
    files = {rank.host + str(rank.pid): "" for rank in ranks()}
    for line in PLAIN.splitlines(keepends=True):
        host, pid, *_ = line.split(":")
        files[host + pid] += line
    one = read_all(files)
    other = read_all(dict(reversed(files.items())))
    assert {c.key: dict(c.via) for c in one.comms.values()} == {
        c.key: dict(c.via) for c in other.comms.values()
    }


def test_attempts_with_new_pids_on_the_same_gpus() -> None:
    first = job(complete=False)
    second = job(ranks(pid=900), comm="0xabc")
    case = Case(read(first + second))
    assert case.attempts == 2
    assert {proc.pid for proc in case.procs} == {900, 901}
    assert case.world is not None
    assert case.world.key == ("id", "0xabc")


NICS = "[0]mlx5_0:1/IB{0} [1]mlx5_1:1/IB{0}"
LISTS = {
    f"{NICS.format('')} [RO]; OOB eth0:192.0.2.11<0>": ("eth0", "192.0.2.11"),
    f"{NICS.format('/SHARP')} [RO]; OOB ib1:fe80::966d%ib1<0>": ("ib1", "fe80::966d%ib1"),
    f"{NICS.format('')} ; OOB :": None,
}
"""As NCCL and HPC-X print them: NVIDIA/nccl#1357, NVIDIA/nccl#975, NVIDIA/nccl#224."""


@pytest.mark.parametrize("text", LISTS)
def test_a_list_of_nics(text: str) -> None:
    (proc,) = read(Rank("n1", 7, 0).info(f"NET/IB : Using {text}")).procs.values()
    assert [(nic.index, nic.name, nic.link) for nic in proc.nics or ()] == [
        (0, "mlx5_0", "IB"),
        (1, "mlx5_1", "IB"),
    ]
    assert proc.oob == LISTS[text]


def test_the_lines_of_2_4() -> None:
    """NVIDIA/nccl#352: no network, no number of channels, no bus; before 2.7 rings, not channels."""
    one, two = ranks(("n1",), 2)
    text = "".join(
        [
            one.info("Channel 00 :    0   1"),
            one.info("Ring 00 : 0[0] -> 1[1] via P2P/IPC"),
            two.info("Ring 00 : 1[1] -> 0[0] via P2P/IPC"),
            *(
                rank.info(f"comm 0x7f{n} rank {n} nranks 2 cudaDev {n} nvmlDev {n} - Init COMPLETE")
                for n, rank in enumerate((one, two))
            ),
        ]
    )
    found = read(text)
    (comm,) = found.comms.values()
    assert (found.stats.fragments, comm.edges("P2P"), comm.listings) == (0, 2, {0: (0, 1)})
    assert all(member.complete for member in comm.members.values())
    assert [verdict.status for verdict in judge(Case(found)).verdicts] == [Status.PASS]
    sent = read(text + one.info("Ring 00 : 1 -> 2 [receive] via NET/Socket/0"))
    assert [each.edges("receive") for each in sent.comms.values()] == [0]


def test_a_numbered_interface_of_the_bootstrap() -> None:
    """Up to 2.7."""
    line = "Bootstrap : Using [0]eno1:192.0.2.11<0> [1]veth2:fe80::380d%veth2<0>"
    (proc,) = read(Rank("n1", 7, 0).info(line)).procs.values()
    assert proc.oob == ("eno1", "192.0.2.11")


PATHS = {
    "NET/IB/3/GDRDMA": ("NET", "IB", 3, -1, True),
    "NET/IB/3(5)/GDRDMA/Shared": ("NET", "IB", 3, 5, True),
    "NET/AWS Libfabric/0/GDRDMA(PCI)": ("NET", "AWS Libfabric", 0, -1, True),
    "NET/Socket/0": ("NET", "Socket", 0, -1, False),
    "P2P/CUMEM/read": ("P2P/CUMEM", "", -1, -1, False),
    "P2P/indirect/3[4]": ("P2P/indirect", "", -1, -1, False),
    "SHM/direct/direct": ("SHM", "", -1, -1, False),
    "direct shared memory": ("SHM", "", -1, -1, False),
}


@pytest.mark.parametrize("text", PATHS)
def test_path(text: str) -> None:
    path = read_path(text)
    assert path is not None
    assert (path.kind, path.net, path.device, path.proxy, path.gdr) == PATHS[text]


@pytest.mark.parametrize("text", ["NET/IB", "NET/IB/", "P2P/CU", "SH", "NET/IB/0/GDR", ""])
def test_a_cut_path_is_none(text: str) -> None:
    assert read_path(text) is None


@pytest.mark.parametrize(
    ("code", "version", "name"),
    [
        (7, (2, 18, 6), "SYS"),
        (8, (2, 26, 2), "SYS"),
        (8, (2, 27, 7), "PHB"),
        (4, (2, 7, 8), "PHB"),
        (4, None, ""),
        (99, (2, 27, 7), ""),
    ],
)
def test_distance_codes_moved(code: int, version: tuple[int, int, int] | None, name: str) -> None:
    assert distance_name(code, version) == name


def test_echo_of_settings() -> None:
    rank = Rank("n1", 100, 0)
    lines = (
        "NCCL_IB_DISABLE set by environment to 0.",
        "NCCL_SOCKET_IFNAME set by environment to eth0.100.",
        "NCCL_IB_HCA set to =mlx5_0,mlx5_1",
        "NCCL_P2P_LEVEL set by environment to LOC",
    )
    found = read(job() + "".join(rank.info(line) for line in lines))
    env = next(p for p in found.procs.values() if (p.host, p.pid) == ("n1", 100)).env
    assert env["NCCL_IB_DISABLE"] == "0"
    assert env["NCCL_SOCKET_IFNAME"] == "eth0.100."  # a text: the dot may be its own
    assert env["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"


def test_a_merged_nic_and_an_empty_list() -> None:
    rank = Rank("n1", 100, 0)
    using = "NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]; OOB eth0:192.0.2.1<0>"
    found = read(rank.info(using) * 5)
    (proc,) = found.procs.values()
    assert proc.nics is not None
    assert [(nic.name, nic.link) for nic in proc.nics] == [("mlx5_0+mlx5_1", "RoCE")]
    empty = read(rank.info("NET/IB : Using ; OOB eth0:192.0.2.1<0>") * 5)
    assert next(iter(empty.procs.values())).nics == ()


def test_pastes() -> None:
    text = """Hi, my job hangs. I set
```bash
export NCCL_IB_HCA=mlx5_0
$ export NCCL_DEBUG="INFO"
```
DEV     PORT    INDEX   GID                                     IPv4            VER     DEV
mlx5_0  1       3       0000:0000:0000:0000:0000:ffff:c0a8:0001 192.168.0.1     v2      eth2
jaxlib.xla_extension.XlaRuntimeError: INTERNAL: NCCL operation ncclCommInitRank failed: \
unhandled system error. Last NCCL warning(error) log entry (may be unrelated) \
'Bootstrap : no socket interface found'.
"""
    found = read(text)
    assert found.pasted_env == {"NCCL_IB_HCA": "mlx5_0", "NCCL_DEBUG": "INFO"}
    assert found.pasted_gids[0]["index"] == "3"
    assert [e.kind for e in Case(found).errors] == ["no-interface"]


def test_pytorch_quotes_the_last_warning() -> None:
    text = (
        "[rank3]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1691, unhandled system "
        "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n"
        "[rank3]: ncclSystemError: System call failed.\n[rank3]: Last error:\n"
        "[rank3]: Error: failed to extend /dev/shm/nccl-abc to 33030528 bytes\n"
    )
    for before in ("", FAR):
        found = read(before + text)
        (error,) = Case(found).errors
        assert (error.kind, error.proc.global_rank) == ("shm-size", 3)
        assert found.torch_version == (2, 21, 5)


def test_the_rank_map_of_nccl_tests() -> None:
    text = "#  Rank  0 Group  0 Pid 4100 on gpu-t01.site device  0 [0x18] NVIDIA H100\n"
    assert read(text).rank_hosts == {0: "gpu-t01"}


def test_rccl_is_recognised() -> None:
    assert read("RCCL version : 2.22.3-develop:abc\n" + job()).rccl == (0, 1)


def test_a_fork_that_names_the_communicator_on_every_line() -> None:
    text = PLAIN.replace(" via P2P/CUMEM", " via P2P/CUMEM comm 0x7f000000 nRanks 04")
    assert edges(text) == edges(PLAIN)


def test_what_both_streams_of_a_container_were_saying_is_read() -> None:
    """The log ends, or the container was killed, in the middle of a line of each."""
    rank = Rank("n1", 100, 0)
    out, err = "2025-03-04T05:06:07Z stdout P ", "2025-03-04T05:06:08Z stderr P "
    warning = rank.warn("Call to ibv_create_qp failed with error Cannot allocate memory").strip()
    found = read(f"{job()}{out}epoch 3, los\n{err}{warning}\n")
    assert [error.text for proc in found.procs.values() for error in proc.errors]


def test_ambiguous_channels_count_for_none() -> None:
    rank = Rank("n1", 100, 0)
    line = rank.info("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM").replace(":160 ", ":999 ")
    two = job() + job(comm="0xbeef").replace("0x7f00", "0x7e00") + line
    found = read(two)
    assert sum(sum(c.via.values()) for c in found.comms.values()) == 2 * edges(PLAIN)
    assert {comm.ambiguous for comm in found.comms.values()} == {1}


def test_compressed_bytes_are_no_log() -> None:
    found = read(gzip.compress(PLAIN.encode()))
    assert found.procs == {}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2025-03-04T05:06:07.5Z x", 1741064767.5),
        ("[2025-03-04 05:06:07]", 1741064767.0),
        ("no time", None),
        ("2025-13-04 05:06:07", None),
    ],
)
def test_time(text: str, seconds: float | None) -> None:
    assert time_s(text) == seconds


def test_world_is_named_by_its_id() -> None:
    assert list(read(PLAIN).comms) == [("id", COMM)]
