"""From files to an analysis: found, named, judged, drawn; and compared with another."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commcheck.analysis import Analysis, record_of
from commcheck.diagnose import diagnose
from commcheck.errors import UsageError
from commcheck.model import Figure, Status
from commcheck.report import html, markdown, text
from commcheck.report.record import JOB, Record
from commcheck.trace.compare import compare
from commcheck.trace.job import job_facts
from commcheck.trace.ladder import judge
from commcheck.trace.lanes import SPANS_MOST, figure
from commcheck.trace.limits import Limits
from commcheck.trace.offline import analyse_traces
from commcheck.trace.rungs import Known
from tests.trace.chrome import write
from tests.trace.expected import facts_of, made
from tests.trace.test_ascend import TABLE

SMALL: dict[str, Any] = {"layers": 4, "kernels": 3, "bucket_mb": 12.5}
RECORDED = Path(__file__).parents[1] / "recorded" / "traces"


def test_one_screen(tmp_path: Path) -> None:
    paths, _ = made(tmp_path, **SMALL, overlap=0.0, busbw=5, gz=True)
    analysis = analyse_traces(paths[:1])
    (result,) = analysis.results
    assert (result.host, result.check, result.status) == (JOB, "runtime.trace", Status.FAIL)
    text = "\n".join(analysis.screen)
    assert analysis.screen[0].startswith("1 of 2 ranks, 3 steps, median step ")
    for words in (
        "communication",
        "0 % of it overlaps",
        "allreduce",
        "waiting included",
    ):
        assert words in text
    assert "; likely; against it: of one rank alone" in result.worst.verdict.reason
    assert len(analysis.screen) <= 20
    assert max(map(len, analysis.screen)) <= 120
    assert any("one of 2 ranks" in note for note in analysis.notes)
    assert analysis.checks[0].id == "runtime.trace"
    facts = json.loads(json.dumps(analysis.facts))
    assert facts["ranks"][0]["steps"][0]["exposed_comm_ms"] > 0
    # Those of the cause, in whose card they are shown, and not all twenty.
    assert [bound.name for bound in result.worst.bounds] == [
        "overlap",
        "comm_share",
        "exposed_warn",
        "exposed_fail",
    ]


def test_a_folder_of_several_ranks_in_several_processes(tmp_path: Path) -> None:
    made(tmp_path, **SMALL, ranks=4, straggler=3, straggler_factor=2.0)
    seen: list[tuple[int, int]] = []
    analysis = analyse_traces([tmp_path], workers=2, watch=lambda *at: seen.append(at))
    (result,) = analysis.results  # the expectations beside the traces are passed over
    assert result.worst.verdict.hosts == ("rank 3", "node-03")
    assert seen[-1][0] <= seen[-1][1]
    assert seen[-1][0] > 0


def test_a_broken_file_among_good_ones_is_an_error_of_its_own(tmp_path: Path) -> None:
    paths, _ = made(tmp_path, **SMALL, ranks=3)
    write(paths[1], paths[1].read_text()[:5000])
    analysis = analyse_traces(paths)
    assert {result.host: result.status for result in analysis.results} == {
        JOB: Status.PASS,
        paths[0].name: Status.PASS,
        paths[1].name: Status.ERROR,
        paths[2].name: Status.PASS,
    }
    assert diagnose(as_record(analysis)).headline == (
        "No failure found, but 1 of 3 files could not be judged"
    )
    with pytest.raises(UsageError, match=r"trace_rank1\.json: error: is cut off"):
        analyse_traces([paths[1]])


def as_record(analysis: Analysis) -> Record:
    began = datetime(2026, 11, 29, tzinfo=UTC)
    run_id = "20261129T000000Z-0000"
    return record_of(
        analysis,
        "trace",
        ["traces"],
        run_id=run_id,
        started=began,
        ended=began,
        settings={},
        strict=False,
    )


def test_a_job_beside_a_broken_file_is_no_host_and_no_file(tmp_path: Path) -> None:
    paths, _ = made(tmp_path, ranks=2, steps=2, layers=8, mode="zero3", busbw=5, overlap=0)
    write(paths[1], paths[1].read_text()[:5000])
    record = as_record(analyse_traces(paths))
    assert diagnose(record).headline == (
        "Runtime layer is where it breaks: Forward waits for ZeRO-3 all-gather"
    )
    page, ticket = html.render(record).decode(), markdown.render(record)
    script = page.index('<script type="application/json"')
    for told in (page[:script], page[script:], ticket):
        assert JOB not in told
        assert "1 host" not in told
    assert "the whole job" in ticket
    assert '1 file</span></span> <code class="hosts">trace_rank1.json</code></h3>' in page
    assert "1 of 2 files could not be judged" in text.render(record)
    assert "of 2 files, " not in text.render(record)


def test_a_trace_that_was_never_finished_is_told_where_there_is_no_whole_one(
    tmp_path: Path,
) -> None:
    paths, _ = made(tmp_path, **SMALL, ranks=2)
    paths[1].rename(tmp_path / "trace_rank1.json.tmp")
    (tmp_path / "trace_rank0.json.tmp").write_text("{")  # of a run before
    record = as_record(analyse_traces([tmp_path]))
    (problem,) = [each for each in record.results if each.host == "trace_rank1.json.tmp"]
    assert problem.status is Status.ERROR
    assert "a profiler that was interrupted left" in problem.worst.verdict.reason
    assert len(record.plan.hosts) == 2
    (tmp_path / "trace_rank1.json.tmp").rename(tmp_path / "older.json.tmp")
    whole, _ = made(tmp_path, **SMALL, ranks=2)
    assert len(whole) == 2
    assert len(analyse_traces([tmp_path]).results) == 1  # no rank is missing
    for each in tmp_path.glob("*.json"):
        each.unlink()
    with pytest.raises(UsageError, match=r"older\.json\.tmp: error: is what a profiler"):
        analyse_traces([tmp_path])


def test_what_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        analyse_traces([tmp_path / "none"])
    with pytest.raises(UsageError, match=r"no \.json"):
        analyse_traces([tmp_path])
    with pytest.raises(UsageError, match="no pattern"):
        analyse_traces([tmp_path], kernels=("(",))


def renamed(paths: list[Path], *names: str) -> list[Path]:
    """The files by other names below their folder."""
    found = [paths[0].parent / name for name in names]
    for old, new in zip(paths, found, strict=True):
        new.parent.mkdir(exist_ok=True)
        old.rename(new)
    return found


def test_files_that_tell_no_rank_are_called_by_their_names(tmp_path: Path) -> None:
    """The third of worker1, worker10 and worker2 in the order of names is no rank 2."""
    paths, _ = made(tmp_path, **SMALL, ranks=3, dist_info="none", straggler=1, straggler_factor=2.0)
    job, problems = job_facts(renamed(paths, "worker1.json", "worker10.json", "local_rank2.json"))
    assert [rank.rank for rank in job.ranks] == [None] * 3
    assert problems == {}
    assert any("no file tells its rank" in note for note in job.notes)
    (verdict, *_) = judge(job, Limits(), Known())
    assert verdict.hosts[0] == "worker10.json"


def test_folders_tell_ranks_and_tell_files_of_one_name_apart(tmp_path: Path) -> None:
    paths, _ = made(tmp_path, **SMALL, dist_info="none")
    named = renamed(paths, "rank10/trace.json", "rank2/trace.json")
    job, _ = job_facts(named)
    assert [(rank.rank, rank.file) for rank in job.ranks] == [
        (2, "rank2/trace.json"),
        (10, "rank10/trace.json"),
    ]
    other = tmp_path / "other" / "trace.json"
    other.parent.mkdir()
    for path in (named[0], other):
        write(path, "{}")
    _, problems = job_facts([*named, other])
    assert sorted(problems) == ["other/trace.json", "rank10/trace.json"]


def test_of_several_traces_of_a_rank_the_newest_is_judged(tmp_path: Path) -> None:
    """Of a restarted job: names begin with the process, whose number says nothing of time."""
    new, _ = made(tmp_path / "new", **SMALL, ranks=1, world=2, clock=[9_000_000_000])
    old, _ = made(tmp_path / "old", **SMALL, ranks=1, world=2)
    job, _ = job_facts([*renamed(new, "node_1999.json"), *renamed(old, "node_2000.json")])
    assert [rank.file for rank in job.ranks] == ["node_1999.json"]


def test_of_several_traces_of_a_rank_the_last_is_judged(tmp_path: Path) -> None:
    first, _ = made(tmp_path / "a", **SMALL, name="a", ranks=1, world=2)
    second, _ = made(tmp_path / "b", **SMALL, name="b", ranks=1, world=2, seed=2)
    job, _ = job_facts([*first, *second])
    assert [rank.file for rank in job.ranks] == ["b_rank0.json"]
    assert any("rank 0 has several traces: b_rank0.json is judged" in note for note in job.notes)


def test_older_traces_of_many_ranks_are_one_note(tmp_path: Path) -> None:
    paths = [
        path
        for name in ("a", "b", "c")
        for path in made(tmp_path / name, **SMALL, name=name, ranks=2)[0]
    ]
    job, _ = job_facts(paths)
    (note,) = (each for each in job.notes if "several traces" in each)
    assert note.endswith("; 3 more that are not the newest of their rank are not judged")


def test_a_table_of_steps_is_judged_too(tmp_path: Path) -> None:
    write(tmp_path / "step_trace_time.csv", TABLE)
    (result,) = analyse_traces([tmp_path]).results
    assert result.status is Status.WARN
    assert "exposed communication is 18 % of the step" in result.worst.verdict.reason


def spans_of(drawn: Figure) -> list[list[Any]]:
    lanes: Any = drawn.data["lanes"]
    return [span for lane in lanes for span in lane["spans"]]


def test_the_picture_shows_what_is_exposed(tmp_path: Path) -> None:
    paths, _ = made(tmp_path, **SMALL, overlap=0.5)
    facts = facts_of(paths[0])
    step = next(each for each in facts.steps if each.name == facts.lanes_of)
    drawn = figure(facts)
    assert drawn.form == "lanes"
    assert drawn.data["span"] == [0, step.time_ns]
    spans = spans_of(drawn)

    def total(kind: str) -> int:
        return sum(end - start for start, end, what, _ in spans if what == kind)

    assert total("exposed") == step.exposed_ns
    assert total("comm") == step.overlapped_ns
    assert total("compute") == step.compute_ns
    assert total("blank") == step.time_ns - step.compute_ns
    assert {label for *_, kind, label in spans if kind == "exposed"} == {"allreduce 12.5 MB"}


def test_a_long_step_is_thinned(tmp_path: Path) -> None:
    paths, _ = made(
        tmp_path,
        layers=60,
        kernels=60,
        kernel_us=3,
        launch_us=9,
        steps=1,
        ranks=1,
        bucket_mb=0.1,
        layer_mb=0.1,
    )
    facts = facts_of(paths[0])
    drawn = figure(facts)
    assert facts.steps[0].kernels > SPANS_MOST
    assert len(spans_of(drawn)) <= SPANS_MOST
    assert len(json.dumps(drawn.data)) < 200_000


def test_before_and_after(tmp_path: Path) -> None:
    before, _ = made(tmp_path / "old", **SMALL, overlap=0.0)
    after, _ = made(tmp_path / "new", **SMALL, overlap=1.0)
    change = compare(job_facts(before)[0], job_facts(after)[0])
    assert change.of("compute").gone_ns == 0
    assert change.of("exposed").gone_ns > 0
    assert change.of("blank").gone_ns == change.of("step").gone_ns > 0
    assert change.notes == ()
    assert any(line.startswith("exposed") and "gone" in line for line in change.lines)
    assert [drawn.form for drawn in change.figures] == ["lanes", "lanes"]
    other, _ = made(tmp_path / "more", **SMALL, ranks=3, kernel_us=200)
    assert len(compare(job_facts(before)[0], job_facts(other)[0]).notes) == 2


def test_a_real_job_on_gloo() -> None:
    analysis = analyse_traces(sorted(RECORDED.glob("ddp_gloo_cap25_*.gz")))
    assert analysis.screen[0] == "2 ranks, 3 steps, median step 140.25 ms (DDP, gloo)"
    (result,) = analysis.results
    assert result.worst.verdict.cause is not None
