"""Saved files lead to the same verdicts, results and figures as a run would."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.conclusions import exit_code
from commcheck.errors import UsageError
from commcheck.jobs.offline import Told, analyse_sweeps
from commcheck.model import Status
from commcheck.report.record import JOB
from tests.jobs.recordings import RECORDED, SWEEPS

TOLD = Told(nic_gbits=400, rails=8)


def files(*numbers: str) -> list[Path]:
    return [path for path in sorted(RECORDED.iterdir()) if path.name[:2] in numbers]


@pytest.mark.parametrize("name", SWEEPS)
def test_a_file_gives_its_verdict(name: str) -> None:
    analysis = analyse_sweeps([RECORDED / name], SWEEPS[name].told)
    (result,) = analysis.results
    assert result.host == name
    assert result.findings[0].verdict.status == SWEEPS[name].verdict
    assert [check.id for check in analysis.checks] == [result.check]
    assert len(analysis.screen) == 1
    assert json.dumps(analysis.facts)


@pytest.mark.parametrize(
    ("number", "check"),
    [
        ("01", "physical.collective-node"),
        ("02", "physical.collective-pairs"),
        ("15", "physical.collective-rails"),
        ("50", "physical.rdma-pairs"),
        ("40", "physical.collective-fleet"),
    ],
)
def test_the_check_follows_from_what_the_file_shows(number: str, check: str) -> None:
    analysis = analyse_sweeps(files(number), TOLD)
    assert [result.check for result in analysis.results] == [check]


def test_rails_are_read_from_nccls_lines() -> None:
    analysis = analyse_sweeps(files("09"), Told(nic_gbits=400))
    assert analysis.results[0].status is Status.PASS
    assert any("8 rails, as NCCL lists them" in note for note in analysis.notes)
    assert analyse_sweeps(files("02"), Told(nic_gbits=400)).results[0].status is Status.SKIP


def test_the_longest_list_of_nics_gives_the_bound_and_the_shortest_the_fault(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sweep.txt"
    listed = "gpu-a0{}:1:2 [0] NCCL INFO NET/IB : Using {} [RO]; OOB eth0:192.0.2.11<0>\n"
    nics = [f"[{n}]mlx5_{n}:1/RoCE" for n in range(8)]
    few = listed.format(1, " ".join(nics)) + listed.format(2, " ".join(nics[:4]))
    path.write_text(few + (RECORDED / "17_allreduce_2node_one_nic_absent.txt").read_text())
    analysis = analyse_sweeps([path], Told(nic_gbits=400))
    verdict = analysis.results[0].findings[0].verdict
    assert verdict.status is Status.FAIL
    assert "it is 'few-nics': NCCL lists 4 NICs of 8" in verdict.reason
    assert any("8 rails, as NCCL lists them" in note for note in analysis.notes)


def test_ranks_that_the_text_does_not_name_may_be_told(tmp_path: Path) -> None:
    """A table pasted without its head."""
    lines = (RECORDED / "02_allreduce_2node_16xh100_400g_ring_good.txt").read_text().splitlines()
    table = [line for line in lines if "Rank" not in line and not line.startswith("# n")]
    path = tmp_path / "table.txt"
    path.write_text("\n".join(table) + "\n")
    told = replace(TOLD, nranks=16, hosts=2, collective="all_reduce")
    assert analyse_sweeps([path], told).results[0].status is Status.PASS
    asked = analyse_sweeps([path], replace(TOLD, collective="all_reduce")).results[0].worst.verdict
    assert "--ranks N --hosts N" in asked.reason


def test_what_a_nic_said_while_it_ran_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "sweep.txt"
    warning = "[2026-04-22 21:34:20] gpu-a01:1:2 [0] net_ib.cc:1 NCCL WARN "
    warning += "NET/IB : mlx5_3:1 Got async error event: port error\n"
    path.write_text(warning + (RECORDED / "04_allgather_2node_16xh100_400g_good.txt").read_text())
    analysis = analyse_sweeps([path], TOLD)
    assert analysis.results[0].status is Status.PASS
    assert any("mlx5_3:1 Got async error event: port error" in note for note in analysis.notes)


def test_what_is_too_little_for_one_nic_fails_without_the_number_of_rails() -> None:
    analysis = analyse_sweeps(files("05"), Told(nic_gbits=400))
    assert analysis.results[0].findings[0].verdict.status is Status.FAIL
    assert any("held against one NIC a host" in note for note in analysis.notes)
    # 71 GB/s at its best: there is more than one NIC, and so one says nothing.
    verdict = analyse_sweeps(files("06"), Told(nic_gbits=400)).results[0].findings[0].verdict
    assert "of 50 GB/s" not in verdict.reason


@pytest.mark.parametrize(
    ("number", "told", "status"),
    [
        ("04", Told(nic_gbits=100, rails=32), "pass"),  # 363 GB/s of 400
        ("16", Told(nic_gbits=100, rails=32), "fail"),  # 95 GB/s
        ("16", Told(nic_gbits=100, rails=16, gpus=16), "pass"),  # half of the GPUs, 8 NICs
    ],
)
def test_nics_are_shared_by_all_gpus_of_a_host(number: str, told: Told, status: str) -> None:
    verdict = analyse_sweeps(files(number), told).results[0].worst.verdict
    assert verdict.status.value == status, verdict.reason


NPUS = Told(nic_gbits=200, rails=8, nranks=16, hosts=2)
NVIDIAS = ("nvidia", "dcgmi", "NCCL_", "ib_write_bw", "/sys/class/infiniband")


@pytest.mark.parametrize(
    ("number", "reference", "status", "told"),
    [
        ("31", None, Status.SKIP, "66% of 200 GB/s"),
        ("32", None, Status.SKIP, "what healthy NPUs reach of it is not known"),
        ("33", None, Status.FAIL, "3.0% of 200 GB/s"),
        ("31", 130.0, Status.PASS, "declared for this run"),
        ("31", 190.0, Status.FAIL, "69% of 190 GB/s"),
        ("34", None, Status.FAIL, "wrong data at 32 MiB, 64 MiB"),
    ],
)
def test_npus_are_held_against_a_reference(
    number: str, reference: float | None, status: Status, told: str
) -> None:
    """No figure of healthy NPUs is known: below the bound of their ports only a tenth is proof."""
    analysis = analyse_sweeps(files(number), replace(NPUS, reference_gbytes=reference))
    verdict = analysis.results[0].worst.verdict
    assert (verdict.status, told in verdict.reason) == (status, True), verdict.reason
    commands = " ".join(remedy.command for remedy in verdict.remedies)
    assert [word for word in NVIDIAS if word in commands] == []
    assert bool(verdict.remedies) is (status is Status.FAIL)
    if status is Status.SKIP:
        assert "--reference GB/s" in verdict.reason


def test_gpus_are_told_no_commands_for_npus() -> None:
    for number in ("05", "06", "07", "16"):
        verdict = analyse_sweeps(files(number), TOLD).results[0].findings[0].verdict
        commands = " ".join(remedy.command for remedy in verdict.remedies)
        assert verdict.remedies
        assert [word for word in ("hccn_tool", "npu-smi", "ascend") if word in commands] == []


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (replace(NPUS, rails=None), "give the number of NICs of a host: --rails N"),
        (replace(NPUS, nic_gbits=None), "give the line rate of a NIC: --nic-gbps GBITS"),
        (
            replace(NPUS, nic_gbits=None, rails=None),
            "give the line rate of a NIC and the number of NICs of a host: "
            "--nic-gbps GBITS --rails N",
        ),
    ],
)
def test_only_what_was_not_given_is_asked_for(told: Told, wanted: str) -> None:
    verdict = analyse_sweeps(files("31"), told).results[0].worst.verdict
    assert wanted in verdict.reason


def test_hccl_without_ranks_shows_no_busbw() -> None:
    analysis = analyse_sweeps(files("30"))
    verdict = analysis.results[0].worst.verdict
    assert verdict.status is Status.SKIP
    assert "busbw_gbytes" not in verdict.measured
    assert "algorithm bandwidth" in verdict.reason
    assert any("by its name" in note for note in analysis.notes)


def test_pairs_in_several_files_are_searched_together() -> None:
    analysis = analyse_sweeps(files("02", "16", "17"), TOLD)
    together = next(result for result in analysis.results if result.host == JOB)
    reasons = [finding.verdict.reason for finding in together.findings]
    assert all(finding.verdict.status is Status.SKIP for finding in together.findings)
    assert any("gpu-a04" in reason and "would decide" in reason for reason in reasons)
    assert together.findings[0].verdict.figures[0].form == "matrix"


def test_several_runs_in_a_file_keep_apart(tmp_path: Path) -> None:
    path = tmp_path / "both.txt"
    path.write_text("".join(each.read_text() for each in files("01", "04")))
    analysis = analyse_sweeps([path], TOLD)
    subjects = {
        (result.check, finding.subject)
        for result in analysis.results
        for finding in result.findings
    }
    assert subjects == {
        ("physical.collective-node", "run 1"),
        ("physical.collective-pairs", "run 2"),
    }


def test_what_is_no_sweep_is_refused_and_beside_a_sweep_no_pass(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind\n")
    with pytest.raises(UsageError, match=r"notes\.txt: error: expected an output of nccl-tests"):
        analyse_sweeps([path])
    analysis = analyse_sweeps([path, files("01")[0]], TOLD)
    assert analysis.results[0].status is Status.ERROR
    assert exit_code(analysis.results) == 3
    with pytest.raises(UsageError, match=r"missing\.txt: error"):
        analyse_sweeps([tmp_path / "missing.txt"])


def test_files_of_one_name_keep_their_folders(tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "out.txt"
        path.write_text(files("01")[0].read_text())
        paths.append(path)
    analysis = analyse_sweeps(paths, TOLD)
    assert {result.host for result in analysis.results} == {str(path) for path in paths}


def test_perftest_is_told_no_command_for_npus() -> None:
    verdict = analyse_sweeps(files("58"), Told(nic_gbits=400)).results[0].worst.verdict
    commands = [each.command for each in verdict.remedies]
    assert commands
    assert not [each for each in commands if "hccn_tool" in each or "ascend" in each]
