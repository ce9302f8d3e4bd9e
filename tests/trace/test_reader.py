"""Layouts, odd events, and every way in which a file is no trace."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commcheck.errors import UsageError
from commcheck.trace import kineto, source
from commcheck.trace.names import Kind
from commcheck.trace.read import read
from commcheck.trace.store import Trace
from tests.trace.chrome import Event, kernel, launch, step, text_of, write, x
from tests.trace.expected import facts_of, made

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
MOVED = {
    "Collective name": "allreduce",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "Group size": 8,
    "dtype": "BFloat16",
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]",
}
HEAD: dict[str, Any] = {
    "baseTimeNanoseconds": 1_000_000_000,
    "distributedInfo": {"rank": 3, "world_size": 8},
}


def events() -> list[Event]:
    return [
        step(2, 100, 100),
        launch(110, 4, 1),
        kernel(120, 10, 1),
        launch(115, 4, 2),
        kernel(125, 20, 2, NCCL, **{**MOVED, "tid": 20}),
    ]


def row(trace: Trace) -> list[tuple[Kind, int, int, int, int]]:
    device = trace.devices["0"]
    return sorted(
        (
            trace.codes[device.code[at]].kind,
            device.start[at],
            device.end[at],
            device.launch_start[at],
            device.launch_end[at],
        )
        for at in range(len(device.start))
    )


ROWS = [
    (Kind.COMPUTE, 120_000, 130_000, 110_000, 114_000),
    (Kind.COMM, 125_000, 145_000, 115_000, 119_000),
]


@pytest.mark.parametrize("pretty", [True, False])
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_both_layouts_packed_or_not(tmp_path: Path, pretty: bool, suffix: str) -> None:
    path = write(tmp_path / f"t{suffix}", text_of(events(), pretty=pretty, **HEAD))
    seen: list[int] = []
    trace = read(path, seen.append)
    assert row(trace) == ROWS
    assert (trace.rank, trace.world, trace.base_ns) == (3, 8, 1_000_000_000)
    (moved,) = trace.devices["0"].transfers.values()
    assert moved[0].size_bytes == 2000
    assert moved[0].group_size == 8
    assert sum(seen) == path.stat().st_size


def test_the_order_of_events_does_not_matter(tmp_path: Path) -> None:
    for seed in range(10):
        mixed = events()
        random.Random(seed).shuffle(mixed)
        assert row(read(write(tmp_path / "t.json", text_of(mixed)))) == ROWS


def test_another_order_of_keys_is_read_slowly_and_right(tmp_path: Path) -> None:
    turned = [dict(reversed(event.items())) for event in events()]
    text = text_of(turned)
    assert kineto.layout_of(text.encode()) is None
    assert row(read(write(tmp_path / "t.json", text))) == ROWS


def test_odd_events_cost_time_but_are_not_lost(tmp_path: Path) -> None:
    """Integer times, streams as text, escaped quotes and braces, old categories."""
    odd = [
        *events(),
        x("Kernel", 'a "quoted" {name}', 200, 5, tid="stream 7", correlation=9),
        kernel(210, 5, 10, "brace", note="}", correlation=10),
        x("Memcpy", "Memcpy DtoH", 220, 5, correlation=11),
        launch(190, 3, 10),
    ]
    text = text_of(odd).replace('"ts": 200.000', '"ts": 200').replace('"dur": 5.000', '"dur": 5')
    trace = read(write(tmp_path / "t.json", text))
    assert row(trace) == sorted(
        [
            *ROWS,
            (Kind.COMPUTE, 200_000, 205_000, -1, -1),
            (Kind.COMPUTE, 210_000, 215_000, 190_000, 193_000),
            (Kind.MEM, 220_000, 225_000, -1, -1),
        ]
    )


def test_blanks_that_change_within_a_file_cost_one_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's operators first, in one form, and then device work in another."""
    host = [x("cpu_op", "aten::mm", at, 1) for at in range(3000)]
    work = [each for at in range(500) for each in (launch(at, 1, at), kernel(2000 + at, 1, at))]
    text = text_of(host, pretty=False).partition("], ")[0] + "," + text_of(work).partition("[")[2]
    read_slowly, odd = [0], kineto._Scanner._odd

    def counted(self: Any, *arguments: Any) -> None:
        read_slowly[0] += 1
        odd(self, *arguments)

    monkeypatch.setattr(kineto._Scanner, "_odd", counted)
    monkeypatch.setattr(
        "commcheck.trace.read.blocks",
        lambda path, progress: source.blocks(path, progress, 1 << 14),
    )
    trace = read(write(tmp_path / "t.json", text))
    assert len(trace.devices["0"].start) == 500
    assert -1 not in trace.devices["0"].launch_start
    assert 0 < read_slowly[0] < 200


def test_names_with_bare_quotes_as_old_kineto_wrote_them(tmp_path: Path) -> None:
    text = text_of([*events(), kernel(200, 5, 9, "QUOTED")]).replace("QUOTED", 'say "hi"')
    trace = read(write(tmp_path / "t.json", text))
    assert 'say "hi"' in {code.name for code in trace.codes}
    assert len(trace.devices["0"].start) == 3


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (r"a\\b", "a\\b"),
        (r"\u03bb kernel", "\N{GREEK SMALL LETTER LAMDA} kernel"),
        (r"say \"hi\"", 'say "hi"'),
        (r"ends with \\", "ends with \\"),
        (r"ends with \"", 'ends with "'),
        (r"C:\kernels", r"C:\kernels"),  # as old Kineto wrote it, which is no JSON
    ],
)
def test_names_with_escapes_are_read_as_json_tells(tmp_path: Path, written: str, name: str) -> None:
    text = text_of([*events(), kernel(200, 5, 9, "ESCAPED")]).replace("ESCAPED", written)
    trace = read(write(tmp_path / "t.json", text))
    assert name in {code.name for code in trace.codes}
    assert len(trace.devices["0"].start) == 3


def test_what_sits_on_a_stream_and_is_no_work(tmp_path: Path) -> None:
    idle = [
        x("gpu_user_annotation", "nccl:all_reduce", 100, 500),
        x("cuda_sync", "Stream Wait Event", 100, 500, stream=7, correlation=2),
        x("Trace", "PyTorch Profiler (0)", 0, 9000, tid="PyTorch Profiler"),
        x("python_function", "nn.Module: Linear", 0, 9000),
    ]
    assert row(read(write(tmp_path / "t.json", text_of([*events(), *idle])))) == ROWS


def test_a_graph_launches_many_kernels(tmp_path: Path) -> None:
    graph = [step(1, 0, 90), launch(10, 5, 4, "cudaGraphLaunch")]
    graph += [kernel(20 + 10 * at, 10, 4) for at in range(3)]
    for order in (graph, list(reversed(graph))):
        trace = read(write(tmp_path / "t.json", text_of(order)))
        assert list(trace.devices["0"].launch_start) == [10_000] * 3


@pytest.mark.parametrize("turned", [False, True], ids=["fast", "slow"])
def test_operators_of_hccl_that_torch_npu_writes_through_kineto(
    tmp_path: Path, turned: bool
) -> None:
    """They have a category of their own; kernels by which HCCL runs them are no computing."""

    def npu(name: str, ts: float, dur: float, stream: int = 47, cat: str = "kernel") -> Event:
        return x(cat, name, ts, dur, tid=stream, streamId=stream)

    found = [
        step(2, 100, 100),
        npu("MatMulV2_ND_ND_FP32", 100, 40),
        npu("hcom_allReduce__844_0_1", 140, 30, 51, "collective_comm"),
        npu("AivKernel", 140, 30, 52),
        # A plugin for another device calls a host's call so.
        x("collective_comm", "oneccl_allreduce", 150, 30, pid=99, tid=99),
    ]
    path = tmp_path / "msprof_1.2.pt.trace.json"
    write(path, text_of([dict(reversed(each.items())) for each in found] if turned else found))
    facts = facts_of(path)
    (only,) = facts.steps
    assert (only.compute_ns, only.comm_ns, only.exposed_ns) == (40_000, 30_000, 30_000)
    assert (facts.backend, facts.accelerator) == ("hccl", "npu")
    assert [(move.kind, move.group, move.count) for move in facts.moved] == [
        ("allreduce", "844", 1)
    ]


def test_block_edges_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, _ = made(tmp_path, ranks=1, steps=2, layers=2, kernels=2)
    whole = facts_of(paths[0])
    for size in (97, 1024, 4093):
        monkeypatch.setattr(
            "commcheck.trace.read.blocks",
            lambda path, progress, size=size: source.blocks(path, progress, size),
        )
        assert facts_of(paths[0]) == whole


def test_copies_inside_a_collective_without_kernel_are_communication(tmp_path: Path) -> None:
    """NCCL 2.28 moves data inside a host by copy engines."""
    call = x("cpu_op", "record_param_comms", 105, 30, pid=99, tid=99, **MOVED, Seq=5)
    copies = [
        launch(110, 4, 1, "cudaMemcpyAsync"),
        x("gpu_memcpy", "Memcpy PtoP", 120, 10, tid=20, correlation=1),
        launch(160, 4, 2, "cudaMemcpyAsync"),
        x("gpu_memcpy", "Memcpy HtoD", 170, 10, tid=9, correlation=2),
    ]
    facts = facts_of(
        write(tmp_path / "t.json", text_of([step(1, 100, 100), call, *copies], **HEAD))
    )
    assert (facts.steps[0].comm_ns, facts.steps[0].mem_ns) == (10_000, 10_000)
    assert [(move.kind, move.size_bytes) for move in facts.moved] == [("allreduce", 2000)]
    assert facts.calls[0].seq == 5


def test_arguments_of_the_call_serve_a_kernel_without_any(tmp_path: Path) -> None:
    call = x("cpu_op", "record_param_comms", 105, 30, pid=99, tid=99, **MOVED)
    bare = [step(1, 100, 100), call, launch(110, 4, 1), kernel(120, 10, 1, NCCL)]
    (move,) = facts_of(write(tmp_path / "t.json", text_of(bare))).moved
    assert (move.kind, move.count, move.size_bytes, move.group_size) == ("allreduce", 1, 2000, 8)


GOOD = text_of(events(), **HEAD)

BROKEN = {
    "": "is empty",
    "   ": "has no traceEvents",
    "hello": "is no JSON object or list",
    "{}": "has no traceEvents",
    '{"a": 1}': "has no traceEvents",
    '{"version": "0.0.4", "columns": [1, 2]}': "has no traceEvents",
    '{"a": nonsense, "traceEvents": [': "is no JSON before its events",
    '{"traceEvents": []}': "holds no kernel",
    "[]": "holds no kernel",
    "[1, 2, 3]": "in its list of events",
    '[{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7}]': "without a time",
    '[{"ph": "X", "ts": 1, "dur": 1}, {"a": oops}]': "is no JSON",
    GOOD[: len(GOOD) // 2]: "is cut off",
    GOOD[:-20]: "is cut off",
    GOOD.replace('"gemm"', '"gemm" broken'): "is no JSON",
}


@pytest.mark.parametrize(("text", "told"), BROKEN.items(), ids=range(len(BROKEN)))
def test_what_is_no_trace_is_one_clear_line(tmp_path: Path, text: str, told: str) -> None:
    path = write(tmp_path / "rank0.json", text)
    with pytest.raises(UsageError) as error:
        read(path)
    assert re.fullmatch(rf"{re.escape(str(path))}: error: .*{told}.*\[trace\]", str(error.value))


def test_gzip_cut_or_damaged(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD.encode(), mtime=0)
    path = tmp_path / "t.json.gz"
    path.write_bytes(packed[:-30])
    with pytest.raises(UsageError, match="is cut off"):
        read(path)
    path.write_bytes(packed[:40] + b"\0\0\0\0\0\0\0\0" + packed[48:])
    with pytest.raises(UsageError, match=r"damaged|cut off|is no JSON|traceEvents"):
        read(path)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("magic", "told"), [(b"\x28\xb5\x2f\xfd", r"zstd \(zstd -d\)"), (b"PK\x03\x04", "zip")]
)
def test_other_packers_are_named(tmp_path: Path, magic: bytes, told: str) -> None:
    path = tmp_path / "rank0.json.zst"
    path.write_bytes(magic + b"\x04\x00\xff")
    with pytest.raises(UsageError, match=f"is packed with {told}"):
        read(path)


@given(st.floats(0.02, 0.98))
@settings(max_examples=40)
def test_a_cut_trace_is_never_taken_for_a_whole_one(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "t.json"
    write(path, GOOD[: int(share * (len(GOOD) - 40))])
    with pytest.raises(UsageError, match=r"\[trace\]"):
        read(path)


def test_the_rank_of_a_file(tmp_path: Path) -> None:
    bare = text_of(events())
    assert read(write(tmp_path / "job_rank_12.pt.trace.json", bare)).rank == 12
    assert read(write(tmp_path / "worker.json", bare)).rank is None
    (tmp_path / "profiler_info_5.json").write_text("{}")
    assert read(write(tmp_path / "trace_view.json", bare)).rank == 5


def test_numbers_of_a_pattern_of_ones_own(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.json", text_of([step(1, 0, 90), launch(1, 1, 1), kernel(5, 9, 1, "myAr")])
    )
    assert [code.kind for code in read(path).codes] == [Kind.COMPUTE]
    assert [code.kind for code in read(path, extra=("^myAr",)).codes] == [Kind.COMM]


def test_a_version_that_kineto_does_not_know_is_none(tmp_path: Path) -> None:
    paths, _ = made(tmp_path, ranks=1, steps=2, layers=2, kernels=2)
    paths[0].write_text(paths[0].read_text().replace('"2.21.5"', '"unknown"'))
    assert read(paths[0]).library == ""
