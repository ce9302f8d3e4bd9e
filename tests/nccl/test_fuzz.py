"""Damaged input never raises and never invents a fact; time grows with size, not faster."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.nccl.case import Case
from commcheck.nccl.errors import UNKNOWN
from commcheck.nccl.facts import Job
from commcheck.nccl.judge import judge
from tests.nccl.made import job, ranks, read

RECORDED = Path(__file__).parents[1] / "recorded" / "nccl-logs"
HCCL_HEAD = "[ERROR] HCCL(1,p):2026-01-05-10:00:00.000.000 [a.cc:1] [7]"
LOGS = sorted(path for path in RECORDED.rglob("*") if path.is_file() and path.suffix != ".md")
TEXTS = {
    path.name: path.read_bytes()
    for path in LOGS
    if path.stat().st_size < 30_000 and path.parent.name != "diag"
}
"""Logs in which each process has many lines: of a single line nobody could tell a cut name."""


def facts(found: Job) -> dict[str, set[object]]:
    """What a damaged log may have less of, but never more."""
    return {
        "hosts": {proc.host for proc in found.procs.values() if proc.pid},
        "processes": {(proc.host, proc.pid) for proc in found.procs.values() if proc.pid},
        "ranks": {
            (comm.nranks, rank, member.proc.host, member.proc.pid)
            for comm in found.comms.values()
            for rank, member in comm.members.items()
        },
        "nics": {(p.host, p.nics) for p in found.procs.values() if p.nics},
        "versions": {p.version for p in found.procs.values() if p.version},
        # Of a warning that was cut nobody knows any more what it was.
        "errors": {
            e.kind for p in found.procs.values() for e in p.errors if e.kind != UNKNOWN.kind
        },
        "timeouts": {(t.rank, t.seq) for t in found.timeouts},
        "codes": {code.code for code in found.hccl.codes},
        "links": {(k.source.rank, k.target.rank) for k in found.hccl.links},
    }


def assert_nothing_new(damaged: Job, whole: Job) -> None:
    truth = facts(whole)
    for name, seen in facts(damaged).items():
        assert seen <= truth[name], (name, seen - truth[name])


@settings(max_examples=60)
@given(st.binary(max_size=2000))
def test_any_bytes(data: bytes) -> None:
    judge(Case(read(data)))


TOKENS = st.sampled_from(
    [
        "NCCL INFO ", "NCCL WARN ", " NCCL ", "n1:1:2 [0]", "Channel 00/0 : 0[0] -> 1[1] via ",
        "NET/IB/0", "comm 0x1 rank 0 nranks 2 ", "Init COMPLETE", "\n", "\r", "\x1b[1m", "\x00",
        "[repeated 3x across cluster]", '{"log":"', "[ERROR] HCCL(1,p):", "EI0006: ", "Last error:",
        " NCCL DIAG ", "ProcessGroupNCCL.cpp", "[Rank 0] Watchdog caught", "NCCL_IB_HCA=",
        "2025-03-04T05:06:07Z stdout P ", "Trees [0] 1/-1/-1->0->-1", "é", "9" * 30,
    ]
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.one_of(TOKENS, st.text(max_size=5)), max_size=60))
def test_any_mixture_of_tokens(parts: list[str]) -> None:
    judge(Case(read("".join(parts).encode("utf-8", "replace"))))


# Derandomized: a name cut twice the same way in a short log cannot be told from a real one.
@settings(max_examples=60, derandomize=True)
@given(name=st.sampled_from(sorted(TEXTS)), seed=st.integers(0, 10**9))
def test_lines_cut_anywhere(name: str, seed: int) -> None:
    chance = random.Random(seed)
    data = TEXTS[name]
    cuts = sorted(chance.randrange(len(data)) for _ in range(12))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert_nothing_new(read(b"\n".join(pieces)), read(data))


@settings(max_examples=30)
@given(name=st.sampled_from(sorted(TEXTS)), end=st.floats(0, 1))
def test_a_prefix(name: str, end: float) -> None:
    data = TEXTS[name]
    assert_nothing_new(read(data[: int(len(data) * end)]), read(data))


@settings(max_examples=15, derandomize=True)
@given(st.integers(0, 10**9))
def test_ten_logs_interleaved_at_random(seed: int) -> None:
    """Ten jobs write into one stream, and it switches anywhere, also inside a line."""
    chance = random.Random(seed)
    jobs = [
        job(ranks((f"a{n}x", f"b{n}y"), 1, pid=1000 + 50 * n), comm=f"0x{n + 1:x}")
        for n in range(10)
    ]
    whole = read("".join(jobs))
    left = [text for text in jobs if text]
    mixed = []
    while left:
        index = chance.randrange(len(left))
        size = chance.randrange(1, 400)
        at = left[index].find("\n", size) + 1 if chance.random() < 0.97 else size
        at = at or len(left[index])
        mixed.append(left[index][:at])
        left[index] = left[index][at:]
        left = [text for text in left if text]
    damaged = read("".join(mixed))
    assert_nothing_new(damaged, whole)


@pytest.mark.parametrize(
    "line",
    [
        "x" * 200 + " NCCL INFO " * 30 + "\n",
        "a:1:" * 500 + " NCCL WARN Got completion with status=1 localGid\n",
        "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via NET/" + "x/1" * 300 + "\n",
        '{"log":"' + "{" * 400 + " NCCL \n",
        "[ERROR] HCCL(1,p):" + "createLink para:rank[" * 60 + "\n",
        HCCL_HEAD + "Task run failed, groupRank " * 150 + "\n",
        HCCL_HEAD + "|  192.0.2.1(1)  |  16666  |  192.0.2.2(" * 100 + "\n",
        "\x1b[" * 300 + "NCCL\n",
        "[Rank 0] Watchdog caught ProcessGroupNCCL " * 40 + "\n",
    ],
    ids=["tokens", "heads", "path", "json", "hccl", "task", "table", "escapes", "torch"],
)
def test_hostile_lines_cost_linear_time(line: str) -> None:
    small, large = line * 40, line * 400
    read(small)
    timings = []
    for text in (small, large):
        best = 1e9
        for _ in range(2):
            began = time.process_time()
            read(text)
            best = min(best, time.process_time() - began)
        timings.append(best)
    assert timings[1] < 30 * timings[0] + 0.2


def test_ten_times_the_input_takes_ten_times_the_time() -> None:
    texts = [
        "".join(job(ranks((f"h{n}a", f"h{n}b"), 4), comm=f"0x{n + 1:x}") for n in range(count))
        for count in (20, 200)
    ]
    timings = []
    for text in texts:
        began = time.process_time()
        read(text)
        timings.append(time.process_time() - began)
    assert timings[1] < 25 * timings[0] + 0.2
