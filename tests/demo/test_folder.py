"""A simulated host's folder: tools answer for their words, time passes, sudo lets or does not."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.collect.base import Request
from commcheck.command import Command
from commcheck.demo import fleet
from commcheck.demo.folder import TIME_PASSES, write
from commcheck.demo.state import HostState, healthy
from commcheck.demo.tools import ethtool, ethtool_stats, nvidia_smi

HOST = healthy(1)
NIC = HOST.nics[0]
QUERY = ",".join(["index", "name", "pci.bus_id"] * 30)  # longer than a file's name may be


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "host"


def run(place: Path, tool: str, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "SECRET": "s3cret"}
    return subprocess.run(
        [str(place / "bin" / tool), *words],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
    )


def test_a_tool_answers_for_its_words_and_nothing_else(place: Path) -> None:
    write(replace(HOST, missing=frozenset({"lsmod", "lspci", "mpirun"})), place, [QUERY])
    assert run(place, "ethtool", NIC.netdev).stdout == ethtool.settings(NIC, root=False)
    assert run(place, "ethtool", NIC.netdev).stderr == ethtool.NOT_ROOT[True]
    assert run(place, "ethtool", "nowhere").returncode == 64
    assert run(place, "ethtool", "nowhere").stdout == ""
    for tool in ("lsmod", "mpirun"):  # the fleet has the one, and not the other
        missing = run(place, tool)
        assert (missing.returncode, missing.stderr) == (127, f"sh: 1: {tool}: not found\n")
    asked = run(place, "nvidia-smi", f"--query-gpu={QUERY}", "--format=csv")
    assert asked.stdout == nvidia_smi.query(HOST.gpus, QUERY.split(","))


def test_an_answer_may_be_a_complaint(place: Path) -> None:
    write(HOST.gpu(2, lambda gpu: replace(gpu, lost=True)), place)
    for words in (["-L"], ["nvlink", "-s"]):
        assert run(place, "nvidia-smi", *words).returncode == 255
        assert "Unable to determine" in run(place, "nvidia-smi", *words).stdout


def test_time_passes_once_and_changes_what_counts_up_alone(place: Path) -> None:
    write(HOST, place)

    def files() -> dict[Path, str]:
        return {path: path.read_text() for path in place.rglob("*") if path.is_file()}

    before = files()
    assert run(place, TIME_PASSES).stderr == ""
    after = files()
    assert before.keys() == after.keys()
    changed = {path.name for path in before if before[path] != after[path]}
    assert {"rx_write_requests", *(f"ethtool -S {nic.netdev}" for nic in HOST.nics)} <= changed
    assert not changed & {"mtu", "state", "lsmod", f"ethtool {NIC.netdev}", "out_of_sequence"}
    assert run(place, "ethtool", "-S", NIC.netdev).stdout == ethtool_stats.stats(NIC, 1)
    run(place, TIME_PASSES)
    assert files() == after


def test_sudo_runs_as_asked_with_an_environment_of_its_own(place: Path) -> None:
    write(HOST, place)
    assert run(place, "sudo", "-n", "env", "true").returncode == 0
    assert "s3cret" not in run(place, "sudo", "-n", "env").stdout
    found = run(place, "sudo", "-n", "env", "MARK=1", "lsmod")
    assert found.stdout == run(place, "lsmod").stdout


def test_sudo_refuses(place: Path) -> None:
    write(replace(HOST, sudo=False), place)
    refused = run(place, "sudo", "-n", "lsmod")
    assert (refused.stdout, refused.returncode) == ("", 1)
    assert refused.stderr == "sudo: a password is required\n"


def request(at: str) -> Request:
    return Request(Command(("tool", at)), at)


def test_time_passes_between_the_first_readings_and_the_rest() -> None:
    asked = [request(at) for at in ("start", "start", "once", "wait", "end")]
    words = [each.command.argv[0] for each in fleet.with_time_between(asked)]
    assert words == ["tool", "tool", TIME_PASSES, "tool", "tool", "tool"]
    assert fleet.with_time_between(asked[2:4]) == asked[2:4]


def test_the_fleet_lies_where_tmpdir_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with fleet.Fleet([]) as made:
        assert made.folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_what_the_inventory_declares_stands_in_it() -> None:
    state: HostState = replace(HOST, declared=(("commcheck_mtu", 9000),), reach="down")
    with fleet.Fleet([state]) as made:
        text = (made.folder / fleet.INVENTORY).read_text()
    assert "commcheck_mtu: 9000" in text
    assert "mlx5_0" in text
