"""Folders that torch_npu and MindSpore leave for the ranks of a job: groups, hosts, raw data."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from commcheck.errors import UsageError
from commcheck.trace import hcclgroups
from commcheck.trace.job import job_facts
from commcheck.trace.offline import analyse_traces
from commcheck.trace.read import host_of
from tests.trace.chrome import write
from tests.trace.expected import made
from tests.trace.test_ascend import TABLE, operator


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
    # Also where a shell names each of them.
    job, problems = job_facts(sorted(tmp_path.iterdir()))
    assert list(problems) == [folder.name]
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


def test_a_rank_with_a_table_alone_beside_traces_is_told(tmp_path: Path) -> None:
    """Traces are large: of the other ranks only the tables were copied."""
    views = parallel(tmp_path)
    for view in views:
        (view.parent / "step_trace_time.csv").write_text(TABLE)
    views[3].unlink()
    job, problems = job_facts([tmp_path])
    assert [rank.rank for rank in job.ranks] == [0, 1, 2]
    assert list(problems) == [views[3].parents[1].name]
    assert "holds a table and no trace_view.json" in problems[views[3].parents[1].name]
    for view in views[:3]:
        view.unlink()
    assert job_facts([tmp_path])[1] == {}


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


def links(folder: Path, *gbytes: float, way: str = "RDMA", size: float = 100.0) -> list[str]:
    """Why four ranks are warned of, whose HCCL counted so much over a kind of link."""
    for view, speed in zip(parallel(folder, overlap=0.0, busbw=5.0), gbytes, strict=True):
        told = {way: (size, size / speed), "SDMA": (9.0, 90.0)}
        counted = {
            "step2": {"collective": {"hcom_allReduce__844_0_1@9127": operator(1.0, 0.0, **told)}}
        }
        write(view.with_name("communication.json"), json.dumps(counted))
    results = analyse_traces([folder]).results[0].findings
    return [
        finding.verdict.reason
        for finding in results
        if finding.verdict.cause and finding.verdict.cause.slug == "trace-slow-link"
    ]


def test_a_rank_whose_links_are_slower_than_those_of_its_peers(tmp_path: Path) -> None:
    (reason,) = links(tmp_path, 24.0, 24.5, 12.0, 24.2)
    assert reason == (
        "rank 2 moves 12.0 GB/s over RDMA, its peers 24.1 in the median (limit 70 %); likely; "
        "against it: both ends of a slow link are slow, and one of them is at fault"
    )


@pytest.mark.parametrize(
    "gbytes",
    [(24.0, 24.5, 20.0, 24.2), (24.0, 24.5, 12.0, 12.0)],
    ids=["within the limit", "half of them"],
)
def test_links_that_tell_no_slow_rank(tmp_path: Path, gbytes: tuple[float, ...]) -> None:
    assert links(tmp_path, *gbytes) == []
