"""torch_npu: rows told by names, unions where there are any, planes never counted, tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from commcheck.errors import UsageError
from commcheck.trace import hcclgroups, hccltable, kerneltable, steptable
from commcheck.trace.job import job_facts
from commcheck.trace.offline import analyse_traces
from tests.trace.chrome import write
from tests.trace.expected import assert_identity, facts_of, made

TABLE = """\
Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,\
Communication(Not Overlapped and Exclude Receive),Preparing
0,7,700.500,200.250,100.000,300.250,99.250,1000.000,50.000,150.250,10.0
0,8,690.000,210.000,100.000,310.000,100.000,1000.000,0,210.0,10.0
"""


def without_overlap_rows(path: Path, *, last: bool = False) -> None:
    """Take the ready-made unions out; ``last``: put the names of rows behind all events."""
    events: list[dict[str, Any]] = json.loads(path.read_text())
    (overlap,) = (
        each["pid"]
        for each in events
        if each["ph"] == "M" and each["args"].get("name") == "Overlap Analysis"
    )
    kept = [each for each in events if each["pid"] != overlap]
    if last:
        kept.sort(key=lambda each: each["ph"] == "M")
    path.write_text(json.dumps(kept))


@pytest.mark.parametrize("last", [False, True])
def test_without_the_overlap_rows_the_unions_are_rebuilt(tmp_path: Path, last: bool) -> None:
    paths, _ = made(tmp_path, npu=True, memcpy=True, layers=4, kernels=3)
    with_rows = facts_of(paths[0])
    without_overlap_rows(paths[0], last=last)
    if last:
        # A bare list is known by its rows' names; with those last it is any Chrome trace.
        text = paths[0].read_text()
        first = '{"ph": "M", "name": "process_name", "pid": -1, "args": {"name": "CANN"}}'
        paths[0].write_text(f"[{first}, {text[1:]}")
    rebuilt = facts_of(paths[0])
    assert rebuilt.layout == with_rows.layout == "ascend"
    assert rebuilt.steps == with_rows.steps
    assert [move.count for move in rebuilt.moved] == [move.count for move in with_rows.moved]


def test_operators_are_counted_and_their_planes_are_not(tmp_path: Path) -> None:
    paths, expected = made(tmp_path, npu=True, layers=4, kernels=3)
    facts = facts_of(paths[0])
    (move,) = facts.moved
    assert move.kind == "allreduce"
    assert move.count == expected["ranks"]["0"]["collectives"]["allreduce"]["count"]
    assert move.busbw_gbytes is None


def test_small_operators_are_told_by_their_count_and_type(tmp_path: Path) -> None:
    options = {"bucket_mb": 0.4, "layer_mb": 0.4, "layers": 60, "kernels": 2, "kernel_us": 20}
    paths, expected = made(tmp_path, npu=True, alpha_us=150, **options)
    (move,) = facts_of(paths[0]).moved
    assert move.size_bytes == expected["ranks"]["0"]["collectives"]["allreduce"]["bytes"]
    (verdict, *_) = (each.verdict for each in analyse_traces(paths).results[0].findings)
    assert verdict.cause is not None
    assert verdict.cause.slug == "trace-small-collectives"


@pytest.mark.parametrize(
    ("kind", "args", "size"),
    [
        ("allReduce", {"count": 5, "data_type": "INT16"}, 10),
        ("allReduce", {"count": "5", "data_type": "INT16"}, None),
        ("allReduce", {"count": 5, "data_type": "INVALID_TYPE"}, None),
        ("allGather", {"count": 5, "data_type": "INT16"}, None),
        ("allReduce", {}, None),
    ],
)
def test_the_bytes_of_an_operator(
    kind: str, args: dict[str, object], size: int | None, tmp_path: Path
) -> None:
    named = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "HCCL"}}
    only = {"ph": "X", "name": f"hcom_{kind}__844_0_1", "pid": 1, "tid": 0, "ts": "10.0", "dur": 2}
    text = json.dumps([named, {**only, "args": args}])
    facts = facts_of(write(tmp_path / "trace_view.json", text))
    assert [call.transfer.size_bytes for call in facts.calls] == [size]


KEY = "192.0.2.7%eth0_60000_0_1738895507756334"


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("name", "want"),
    [("pp", (True, False)), ("cp", (False, False)), ("", (False, True)), (None, (False, True))],
)
def test_sends_are_what_the_file_beside_the_trace_calls_their_group(
    tmp_path: Path, whole: bool, name: str | None, want: tuple[bool, bool]
) -> None:
    """Whether they are a bubble, and whether nobody knows what they are."""
    folder = tmp_path / "host_1_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    paths, _ = made(folder, npu=True, layers=4, kernels=3)
    number = str(hcclgroups.hash_of(KEY))
    group = f"{number[-3:]}_\\1_1" + (f"@{number}" if whole else "")
    text = re.sub(
        r"hcom_allReduce__844_(\d+)_1@[^\"]*", f"hcom_send__{group}", paths[0].read_text()
    )
    assert "hcom_send__" in text
    write(paths[0], text)
    if name is not None:
        groups = {KEY: {"group_name": name, "group_rank": 0, "global_ranks": [0, 4]}}
        about = json.dumps({"parallel_group_info": groups})
        write(folder.parent / "profiler_metadata.json", about)
    step = facts_of(paths[0]).steps[0]
    assert (step.bubble_ns > 0, step.untold_ns > 0) == want
    assert step.exposed_ns > 0


@pytest.mark.parametrize(
    "text",
    [
        *("", "[1]", "{}", '{"parallel_group_info": 7}', '{"distributed_args": 7}'),
        '{"parallel_group_info": {"a": 7}, "distributed_args": {"world_size": "8"}}',
    ],
)
def test_what_tells_no_group(tmp_path: Path, text: str) -> None:
    write(tmp_path / hcclgroups.NAME, text)
    groups = hcclgroups.beside(tmp_path / "trace_view.json")
    assert (dict(groups.by_id), groups.world) == ({}, None)


def test_table_of_steps(tmp_path: Path) -> None:
    (tmp_path / "profiler_info_3.json").write_text("{}")
    (facts,) = steptable.read(write(tmp_path / "step_trace_time.csv", TABLE))
    assert facts.rank == 3
    assert [step.name for step in facts.steps] == ["step 7", "step 8"]
    first = facts.steps[0]
    assert_identity(first)
    assert (first.time_ns, first.compute_ns, first.exposed_ns) == (1_000_000, 700_500, 200_250)
    assert (first.bubble_ns, first.exposed_judged_ns) == (50_000, 150_250)


def test_table_of_a_cluster(tmp_path: Path) -> None:
    lines = TABLE.splitlines()
    rows = [f"rank,{rank},{line}" for rank in (0, 1) for line in lines[1:]]
    text = "\n".join([f"Type,Index,{lines[0]}", *rows, f"stage,0,{lines[1]}", ""])
    ranks = steptable.read(write(tmp_path / "cluster_step_trace_time.csv", text))
    assert [(rank.rank, len(rank.steps), rank.world) for rank in ranks] == [(0, 2, 2), (1, 2, 2)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no column 'Computing'"),
        ("a,b\n1,2\n", "has no column 'Computing'"),
        (TABLE.splitlines()[0] + "\n", "has no rows"),
        (TABLE.replace("700.500", "n/a"), "line 2: Computing: 'n/a' is no time"),
    ],
)
def test_no_table(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        steptable.read(write(tmp_path / "step_trace_time.csv", text))


def kernel_table(trace: Path, folder: Path) -> Path:
    """The kernels and operators of a trace as kernel_details.csv has them."""
    events: list[dict[str, Any]] = json.loads(trace.read_text())
    named = [each for each in events if each["ph"] == "M"]
    processes = {e["pid"]: e["args"]["name"] for e in named if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in named if e["name"] == "thread_name"}
    windows = [(step.start, step.name.rpartition("#")[2]) for step in facts_of(trace).steps]
    rows = ["Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Stream ID"]
    for each in events:
        about = processes.get(each["pid"]), threads.get((each["pid"], each.get("tid")), "")
        if each["ph"] != "X" or "cat" in each:
            continue
        core, stream = each["args"].get("Task Type", ""), each["args"].get("Stream Id", "N/A")
        if about[0] in ("HCCL", "Communication") and about[1].startswith("Group"):
            core, stream = "HCCL", "N/A"
        elif about[0] != "Ascend Hardware":
            continue
        at = round(float(each["ts"]) * 1000) if "." not in each["ts"] else None
        at = int(each["ts"].replace(".", "")) if at is None else at
        step = [name for start, name in windows if start <= at][-1]
        rows.append(f"{step},0,{each['name']},x,{core},{each['ts']}\t,{each['dur']},{stream}")
    return write(folder / "kernel_details.csv", "\n".join([*rows, ""]))


def test_a_table_of_kernels_tells_what_its_trace_tells(tmp_path: Path) -> None:
    paths, _ = made(tmp_path, npu=True, layers=4, kernels=3, steps=3)
    without_overlap_rows(paths[0])
    want = facts_of(paths[0])
    (facts,) = kerneltable.read(kernel_table(paths[0], tmp_path))
    assert [step.comm_kernels for step in facts.steps] == [s.comm_kernels for s in want.steps]
    for step, wanted in zip(facts.steps, want.steps, strict=True):
        assert_identity(step)
        for name in ("compute_ns", "comm_ns", "overlapped_ns", "exposed_ns", "start"):
            assert getattr(step, name) == getattr(wanted, name), (step.name, name)
        assert (step.host_ns, step.host_wait_ns) == (None, None)
    assert [(move.kind, move.count) for move in facts.moved] == [
        (move.kind, move.count) for move in want.moved
    ]
    analysis = analyse_traces([tmp_path / "kernel_details.csv"])
    assert {result.check for result in analysis.results} == {"runtime.trace"}


KERNELS = """\
Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num
1,0,MatMulV2,MatMulV2,AI_CORE,1774670741777000.0\t,400.0,1,24
1,0,hcom_allReduce__688_0_1,hcom_allReduce_,COMMUNICATION,1774670741777400.0\t,90.0,1,N/A
1,0,MatMulV2,MatMulV2,AI_CORE,1774670741777500.0\t,500.0,1,24
"""


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(line.partition(",")[2] for line in KERNELS.splitlines()),
        KERNELS.replace("\n1,", "\n,"),
    ],
    ids=["no column", "an empty column"],
)
def test_a_table_of_kernels_without_steps_is_one_step(tmp_path: Path, text: str) -> None:
    (facts,) = kerneltable.read(write(tmp_path / "kernel_details.csv", text))
    (step,) = facts.steps
    assert (step.name, step.time_ns, step.compute_ns) == ("all", 1_000_000, 900_000)
    assert (step.comm_ns, step.exposed_ns, step.idle_ns) == (90_000, 90_000, 10_000)
    assert any("judged as one step; give the profiler schedule=" in note for note in facts.notes)


def test_at_level0_no_core_is_told_and_what_is_no_communication_computes(tmp_path: Path) -> None:
    text = KERNELS.replace(",AI_CORE,", ",N/A,").replace(",COMMUNICATION,", ",N/A,")
    (told,) = kerneltable.read(write(tmp_path / "kernel_details.csv", KERNELS))
    (facts,) = kerneltable.read(write(tmp_path / "kernel_details.csv", text))
    assert facts == told


def test_the_table_of_msprof_tells_the_same_without_steps(tmp_path: Path) -> None:
    names = KERNELS.replace("Step Id,", "").replace("\n1,", "\n")
    text = (
        names.replace(",Name,Type", ",Op Name,OP Type")
        .replace("Accelerator Core", "Task Type")
        .replace(
            "Start Time(us),Duration(us),Wait", "Task Start Time(us),Task Duration(us),Task Wait"
        )
    )
    (told,) = kerneltable.read(write(tmp_path / "kernel_details.csv", names))
    (tmp_path / "PROF_000001_20260301_A" / "mindstudio_profiler_output").mkdir(parents=True)
    table = tmp_path / "PROF_000001_20260301_A" / "mindstudio_profiler_output" / "x.csv"
    write(table.with_name("op_summary_20260301110003.csv"), text)
    for given in (
        table.with_name("op_summary_20260301110003.csv"),
        tmp_path / "PROF_000001_20260301_A",
    ):
        job, problems = job_facts([given])
        (rank,) = job.ranks
        assert (rank.steps, problems) == (told.steps, {})


OF_HCCL = """\
1,0,allreduceAicpuKernel,x,AI_CPU,1774670741777400.0\t,95.0,1,1
1,0,AivKernel,x,AI_VECTOR_CORE,1774670741777400.0\t,90.0,1,40
1,0,aiv_all_reduce_bfloat16_t,x,AI_VECTOR_CORE,1774670741777401.0\t,80.0,1,40
"""


def test_kernels_of_hccl_itself_are_no_computing(tmp_path: Path) -> None:
    """On Atlas A3 HCCL runs its operators on AI CPUs, with AIV on vector cores: no overlap."""
    (told,) = kerneltable.read(write(tmp_path / "kernel_details.csv", KERNELS))
    (facts,) = kerneltable.read(write(tmp_path / "kernel_details.csv", KERNELS + OF_HCCL))
    assert facts == told
    assert facts.steps[0].exposed_ns == 90_000
    alone = "".join(line for line in KERNELS.splitlines(True) if "hcom_" not in line) + OF_HCCL
    (facts,) = kerneltable.read(write(tmp_path / "kernel_details.csv", alone))
    assert (facts.steps[0].comm_ns, facts.steps[0].exposed_ns) == (95_000, 95_000)


@pytest.mark.parametrize("united", [True, False])
def test_a_trace_whose_operators_run_on_ai_cpus_tells_the_same(
    tmp_path: Path, united: bool
) -> None:
    paths, _ = made(tmp_path, npu=True, layers=4, kernels=3)
    if not united:
        without_overlap_rows(paths[0])
    want = facts_of(paths[0])
    events: list[dict[str, Any]] = json.loads(paths[0].read_text())
    (hardware,) = (e["pid"] for e in events if e.get("args", {}).get("name") == "Ascend Hardware")
    for each in list(events):
        if each["name"].startswith("hcom_"):
            each["name"] = each["name"].replace("allReduce_", "allReduce_AicpuKernel")
            kernel = {"name": "allreduceAicpuKernel", "args": {"Task Type": "AI_CPU"}}
            events.append({**each, **kernel, "pid": hardware, "tid": 99})
    assert "hcom_allReduce_AicpuKernel_844_" in str(events)
    write(paths[0], json.dumps(events))
    assert facts_of(paths[0]) == want


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no column 'Name'"),
        ("Name,Accelerator Core,Start Time(us),Duration(us)\n", "has no row of a kernel"),
        (
            "Name,Accelerator Core,Start Time(us),Duration(us)\nMatMul,AI_CORE,x,1\n",
            "line 2: Start Time.us.: 'x' is no time",
        ),
    ],
)
def test_no_table_of_kernels(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        kerneltable.read(write(tmp_path / "kernel_details.csv", text))


def operator(moved_ms: float, waited_ms: float, **links: tuple[float, float]) -> dict[str, Any]:
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": 1704161511420306.4,
            "Elapse Time(ms)": moved_ms + waited_ms,
            "Transit Time(ms)": moved_ms,
            "Wait Time(ms)": waited_ms,
            "Wait Time Ratio": 0.5,
        },
        "Communication Bandwidth Info": {
            name: {"Transit Size(MB)": size, "Transit Time(ms)": time, "Bandwidth(GB/s)": 0}
            for name, (size, time) in links.items()
        },
    }


ALL_REDUCE = operator(2.0, 6.0, RDMA=(100.0, 5.0), HCCS=(400.0, 10.0), PCIE=(0.0, 0.0))
HCCL = {
    "step7": {
        "p2p": {},
        "collective": {
            "hcom_allReduce__844_0_1@9127": ALL_REDUCE,
            "hcom_allGather__844_1_1@9127": operator(1.0, 0.0, RDMA=(20.0, 1.0)),
            "Total Op Info": ALL_REDUCE,
        },
    },
    "step8": {"p2p": {"hcom_send__844_0_1@9127": operator(1.0, 2.0)}, "collective": {}},
}


def test_what_hccl_counted_itself_stands_beside_the_trace(tmp_path: Path) -> None:
    options = {"layers": 2, "kernels": 2, "steps": 2, "ranks": 1, "overlap": 0.0, "busbw": 5.0}
    (path,), _ = made(tmp_path, npu=True, **options)
    (tmp_path / "view").mkdir()
    view = path.rename(tmp_path / "view" / "trace_view.json")
    write(view.with_name("communication.json"), json.dumps(HCCL))
    analysis = analyse_traces([view.parent])
    (line,) = (line for line in analysis.screen if "HCCL" in line)
    assert line.strip() == (
        "of HCCL's own time 67% waits for the peer, HCCS 40.0 GB/s, RDMA 20.0 GB/s"
    )
    reasons = [finding.verdict.reason for finding in analysis.results[0].findings]
    assert "of HCCL's own time 67 % waits for the peer: give the traces of all ranks" in reasons[0]
    job, problems = job_facts([view.parent])
    assert problems == {}
    hccl = job.ranks[0].hccl
    assert hccl is not None
    assert (hccl.count, hccl.moved_ns, hccl.waited_ns) == (3, 4_000_000, 8_000_000)


@pytest.mark.parametrize("text", ["", "[]", '{"step1": 3}', json.dumps(HCCL).replace("6.0", "-1")])
def test_what_is_no_table_of_hccl_is_one_clear_line(tmp_path: Path, text: str) -> None:
    write(tmp_path / "communication.json", text)
    with pytest.raises(UsageError, match="is no table of HCCL operators"):
        hccltable.beside(tmp_path / "trace_view.json")


@pytest.mark.parametrize(
    "name",
    [
        "communication.json",
        "communication_matrix.json",
        "cluster_communication.json",
        "cluster_communication_matrix.json",
        "communication_group.json",
    ],
)
def test_sums_of_hccl_alone_say_what_to_give_instead(name: str, tmp_path: Path) -> None:
    """Of one rank, and of all as msprof-analyze makes them: named, or alone in a folder."""
    path = tmp_path / "cluster_analysis_output" / name
    path.parent.mkdir()
    write(path, '{"p2p": {}, "collective": {}}')
    for given in (path, path.parent):
        with pytest.raises(UsageError, match=r"tells of no step; .* or cluster_step_trace_time"):
            job_facts([given])
    table = "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,"
    table += "Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing\n"
    table += "1,rank,0,1000,200,50,250,10,1210,0,200,5\n"
    write(path.with_name("cluster_step_trace_time.csv"), table)
    job, problems = job_facts([path.parent])
    assert [rank.rank for rank in job.ranks] == [0]
    assert not problems
