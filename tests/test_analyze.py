"""The offline analyses as a user calls them: one screen, the reports, exit codes, bad input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from commcheck.cli import main
from commcheck.errors import UsageError
from tests.nccl.made import job

RECORDED = Path(__file__).parent / "recorded"
SWEEP = RECORDED / "collectives" / "06_allreduce_2node_pfc_broken.txt"


def analyze(tmp_path: Path, *words: str | Path) -> Result:
    args = ["analyze", *map(str, words), "-o", str(tmp_path / "reports")]
    env = {"COLUMNS": "300"}
    return CliRunner().invoke(main, args, env=env, standalone_mode=False, catch_exceptions=False)


def test_a_sweep_ends_in_one_screen_and_all_reports(tmp_path: Path) -> None:
    result = analyze(tmp_path, "sweep", SWEEP, "--nic-gbps", "400")
    assert result.return_value == 1
    assert "Physical layer is where it breaks: Bandwidth falls as messages grow" in result.stdout
    assert "library" not in result.stdout  # a layer that nobody asked for
    (folder,) = (path for path in (tmp_path / "reports").iterdir() if not path.is_symlink())
    page = (folder / "report.html").read_text()
    assert '<svg class="chart"' in page
    assert "frames/" not in page  # no host answered anything
    assert (folder / "junit" / "TEST-commcheck-physical.xml").is_file()
    summary = (folder / "summary.md").read_text()
    assert "breaks here" not in summary  # hosts are counted there, and none was asked
    assert "06_allreduce_2node_pfc_broken.txt, commcheck" in summary


def test_json_holds_the_facts_of_the_files(tmp_path: Path) -> None:
    result = analyze(tmp_path, "sweep", SWEEP, "--nic-gbps", "400", "--format", "json")
    document = json.loads(result.stdout)
    assert document["schema"] == "commcheck.results/1"
    assert document["facts"]["runs"][0]["run"]["nranks"] == 16
    assert document["run"]["playbook"] == "analyze sweep"


def test_a_report_is_rendered_again_with_its_screen(tmp_path: Path) -> None:
    first = analyze(tmp_path, "sweep", SWEEP, "--nic-gbps", "400")
    again = CliRunner().invoke(
        main,
        ["report", "last", "-o", str(tmp_path / "reports")],
        env={"COLUMNS": "300"},
        standalone_mode=False,
    )
    assert again.stdout == first.stdout
    assert again.return_value == 1


def test_the_logs_of_all_ranks_are_one_job_and_not_one_file(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for line in job().splitlines(keepends=True):
        host, pid, *_ = line.split(":")
        with (tmp_path / "logs" / f"nccl.{host}.{pid}").open("a") as file:
            file.write(line)
    result = analyze(tmp_path, "log", tmp_path / "logs")
    assert result.stdout.splitlines()[-1].startswith("PASS  1 job, ")


@pytest.mark.parametrize("what", ["sweep", "trace"])
def test_a_file_that_is_no_such_thing_is_one_line_and_leaves_nothing(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind\n")
    with pytest.raises(UsageError) as caught:
        analyze(tmp_path, what, path)
    (problem,) = caught.value.problems
    assert "notes.txt: error: " in problem
    assert "expected" in problem
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("what", ["sweep", "trace", "log"])
def test_a_missing_file_is_one_line(tmp_path: Path, what: str) -> None:
    with pytest.raises(UsageError, match=r"missing\.txt: "):
        analyze(tmp_path, what, tmp_path / "missing.txt")


@pytest.mark.parametrize("what", ["log", "env", "hang"])
def test_the_folder_of_a_run_holds_nothing_to_analyse(tmp_path: Path, what: str) -> None:
    analyze(tmp_path, "log", RECORDED / "nccl-logs/01-healthy-2n16r-roce-2.21.5.log")
    with pytest.raises(UsageError, match="none but those of runs of commcheck"):
        analyze(tmp_path, what, tmp_path / "reports")


@pytest.mark.parametrize(
    ("what", "recorded"),
    [
        ("log", "nccl-logs/01-healthy-2n16r-roce-2.21.5.log"),
        ("env", "nccl-logs/01-healthy-2n16r-roce-2.21.5.log"),
        ("trace", "traces/ddp_gloo_cap25_rank0.json.gz"),
        ("hang", "flight-recorder/fr-gloo-desync/rank0.json"),
    ],
)
def test_a_folder_with_reports_in_it_says_the_same_the_second_time(
    tmp_path: Path, what: str, recorded: str
) -> None:
    """A run's own runbook quotes EI0006 and the like: it is no log of the job."""
    shutil.copy(RECORDED / recorded, tmp_path)
    first, second = (analyze(tmp_path, what, tmp_path, "--format", "json") for _ in range(2))
    assert first.return_value == second.return_value
    told = [json.loads(each.stdout) for each in (first, second)]
    assert told[0]["verdicts"] == told[1]["verdicts"]
    assert told[0]["run"]["inventory"] == told[1]["run"]["inventory"]


def test_a_log_without_a_line_of_nccl_is_unknown_and_says_what_to_turn_on(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("step 1 loss 2.0\n")
    result = analyze(tmp_path, "log", path)
    assert result.return_value == 3
    assert "NCCL_DEBUG=INFO" in result.stdout


def test_an_environment_and_settings_end_in_their_own_layer(tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.write_text("NCCL_IB_DISABLE=1\nNCCL_DEBUG=INFO\n")
    result = analyze(tmp_path, "env", env)
    assert "NCCL_IB_DISABLE=1" in result.stdout
    assert "declare the host in an inventory (-i)" in result.stdout
    settings = tmp_path / "ds_config.json"
    settings.write_text('{"zero_optimization": {"stage": 2, "reduce_bucket_size": 25}}')
    result = analyze(tmp_path, "config", settings)
    assert result.return_value == 1
    assert "Application layer is where it breaks: A bucket size in the wrong unit" in result.stdout


def test_a_change_of_a_step_is_told_and_both_steps_are_drawn(tmp_path: Path) -> None:
    traces = RECORDED / "traces"
    old, new = sorted(traces.glob("*cap1_rank0*")), sorted(traces.glob("*cap25_rank0*"))
    result = analyze(tmp_path, "trace", *new, "--before", old[0])
    assert "before -> after, a step:" in result.stdout
    assert result.return_value in (0, 1)
