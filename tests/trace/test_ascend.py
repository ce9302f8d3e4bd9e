"""torch_npu: rows told by names, unions where there are any, planes never counted, tables."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from commcheck.errors import UsageError
from commcheck.trace import hcclgroups, hccltable, kerneltable, steptable
from commcheck.trace.job import job_facts
from commcheck.trace.offline import analyse_traces
from commcheck.trace.read import host_of
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


def parallel(folder: Path, *, told: bool = True, **options: Any) -> list[Path]:
    """Folders of four ranks of two data-parallel groups, 0 and 2, 1 and 3, as torch_npu leaves
    them; ``told``: with the file that tells the groups."""
    paths, _ = made(folder / "made", npu=True, ranks=4, kernels=3, **options)
    views = []
    for rank, path in enumerate(paths):
        key = f"192.0.2.7%eth0_60000_0_17388955077563{rank % 2}"
        number = str(hcclgroups.hash_of(key))
        # Rows are numbered on each rank anew, whatever groups it has.
        text = path.read_text().replace("Group 0 Communication", f"Group {rank} Communication")
        text = re.sub(
            r"(hcom_allReduce__)844(_\d+_1)@\d+", rf"\g<1>{number[-3:]}\g<2>@{number}", text
        )
        home = folder / f"node-0{rank // 2 + 1}_{4000 + rank}_2026030110000{rank}123_ascend_pt"
        (home / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
        write(home / f"profiler_info_{rank}.json", "{}")
        views.append(write(home / "ASCEND_PROFILER_OUTPUT" / "trace_view.json", text))
        groups = {
            "192.0.2.7%eth0_60000_0_1": {
                "group_name": "default_group",
                "global_ranks": [0, 1, 2, 3],
            },
            key: {"group_name": "dp_cp", "global_ranks": [rank % 2, rank % 2 + 2]},
        }
        if told:
            write(home / "profiler_metadata.json", json.dumps({"parallel_group_info": groups}))
    shutil.rmtree(folder / "made")
    return views


def test_ranks_are_matched_within_the_groups_that_stand_beside_the_traces(tmp_path: Path) -> None:
    parallel(tmp_path, straggler=2, straggler_factor=1.35)
    job, _ = job_facts([tmp_path])
    assert job.world == 4
    assert [move.group_size for move in job.ranks[0].moved] == [2]
    (verdict, *_) = (each.verdict for each in analyse_traces([tmp_path]).results[0].findings)
    assert verdict.cause is not None
    assert (verdict.cause.slug, verdict.hosts) == ("trace-straggler", ("rank 2", "node-02"))
    assert verdict.reason.endswith("certain")


@pytest.mark.parametrize(
    ("folder", "host"),
    [
        ("node-02_4002_20260301100002123_ascend_pt/ASCEND_PROFILER_OUTPUT", "node-02"),
        ("gpu_pool_7_4002_20260301100002123_ascend_ms", "gpu_pool_7"),
        ("worker-2_20260301100002123_ascend_pt", ""),  # a name of the user's own
        ("traces", ""),
    ],
)
def test_the_host_of_a_folder(folder: str, host: str, tmp_path: Path) -> None:
    assert host_of(tmp_path / folder / "trace_view.json") == host


def raw(view: Path, *, kept: str = "") -> Path:
    """The folder of a rank as the profiler leaves it where its text was not written yet."""
    folder = view.parent.parent
    shutil.rmtree(view.parent)
    (folder / "PROF_000001_20260301_A" / "device_0").mkdir(parents=True)
    write(folder / "PROF_000001_20260301_A" / "device_0" / "sample.json", "{}")
    if kept:
        view.parent.mkdir()
        write(view.with_name(kept), "x")
    return folder


def test_folders_without_text_are_told_with_what_writes_it(tmp_path: Path) -> None:
    for view in parallel(tmp_path):
        raw(view)
    with pytest.raises(UsageError) as told:
        job_facts([tmp_path])
    *lines, last = str(told.value).splitlines()
    call = f"from torch_npu.profiler.profiler import analyse; analyse('{tmp_path}')"
    assert len(lines) == 3
    assert all("is not exported yet" in line and call in line for line in lines)
    assert "1 more are not exported" in last


def test_a_rank_without_text_is_an_error_and_the_others_are_judged(tmp_path: Path) -> None:
    views = parallel(tmp_path, straggler=2, straggler_factor=1.35)
    folder = raw(views[2])
    job, problems = job_facts([tmp_path])
    assert [rank.rank for rank in job.ranks] == [0, 1, 3]
    assert list(problems) == [folder.name]
    assert "is not exported yet: python3 -c" in problems[folder.name]
    # Of another run that was killed nothing is missed.
    shutil.copytree(folder, tmp_path / "node-01_9_20260301090001123_ascend_pt")
    (tmp_path / "node-01_9_20260301090001123_ascend_pt" / "profiler_info_2.json").rename(
        tmp_path / "node-01_9_20260301090001123_ascend_pt" / "profiler_info_0.json"
    )
    assert list(job_facts([tmp_path])[1]) == [folder.name]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("w_1_20260301100001123_ascend_ms", "from mindspore.profiler.profiler import analyse"),
        ("PROF_000001_20260301_A", "msprof --export=on --output="),
    ],
)
def test_each_profiler_has_its_own_way(name: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name / "device_0").mkdir(parents=True)
    write(tmp_path / name / "device_0" / "sample.json", "{}")
    for top in (tmp_path, tmp_path / name):
        with pytest.raises(UsageError, match=told):
            job_facts([top])


def test_databases_and_archives_are_told_apart(tmp_path: Path) -> None:
    (view, *_) = parallel(tmp_path)
    folder = raw(view, kept="ascend_pytorch_profiler_0.db")
    with pytest.raises(UsageError, match="exported as a database alone; profile with export_type"):
        job_facts([folder])
    database = write(tmp_path / "profiler.db", "SQLite format 3\0")
    with pytest.raises(UsageError, match=r"is a database; expected .*, with export_type Text"):
        job_facts([database])
    archive = tmp_path / "traces.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(database, "profiler.db")
    with pytest.raises(UsageError, match=r"is an archive \(tar -xf\); give the folder"):
        job_facts([archive])


def test_a_job_on_npus_that_never_talks_is_told_its_own_activity(tmp_path: Path) -> None:
    for view in parallel(tmp_path):
        write(view, re.sub(r"hcom_\w+@\d+|Communication", "MatMul", view.read_text()))
    (verdict,) = (each.verdict for each in analyse_traces([tmp_path]).results[0].findings)
    assert "4 ranks and not one communication kernel" in verdict.reason
    assert "profile whole steps with ProfilerActivity.NPU" in verdict.reason


def test_without_that_file_it_is_said_what_tells_the_groups(tmp_path: Path) -> None:
    parallel(tmp_path, told=False, straggler=2, straggler_factor=1.35)
    analysis = analyse_traces([tmp_path])
    assert any("leave profiler_metadata.json, which tells" in note for note in analysis.notes)


def test_a_late_rank_may_be_among_those_that_are_not_seen(tmp_path: Path) -> None:
    """Without its trace all that the others show is exposed communication."""
    views = parallel(tmp_path, straggler=2, straggler_factor=1.35)
    analysis = analyse_traces([views[1], views[3]])
    (verdict, *_) = (each.verdict for each in analysis.results[0].findings)
    assert verdict.reason.endswith(
        "likely; against it: of 4 ranks 2 are seen: they may wait for one of the others"
    )


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


def test_alone_it_tells_of_no_step(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="tells of no step; give the folder"):
        job_facts([write(tmp_path / "communication.json", json.dumps(HCCL))])
