"""``commcheck demo`` as somebody without a cluster runs it: one fault on each host, and none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from commcheck.demo.fault import known_faults
from commcheck.discover import discover
from tests.sshd import marked

COMMCHECK = Path(sys.executable).parent / "commcheck"
FAULTS = known_faults()
RIGHT = {("pass", ""), ("skip", "not-applicable")}


@dataclass(frozen=True)
class Ran:
    """One call from an empty folder."""

    code: int
    out: str
    err: str
    cwd: Path

    @property
    def document(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.out)
        return loaded

    def statuses(self) -> dict[str, dict[str, set[tuple[str, str]]]]:
        """Host to check to (status, kind) of its subjects."""
        found: dict[str, dict[str, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
        for each in self.document["verdicts"]:
            host = each["subject"].partition("/")[0]
            found[host][each["check"]].add((each["status"], each["kind"]))
        return found


def environment(folder: Path) -> dict[str, str]:
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(temporary),
        "COMMCHECK_DEBUG": "1",
    }


def demo(folder: Path, *words: object) -> Ran:
    cwd = folder / "empty"
    cwd.mkdir(exist_ok=True)
    done = subprocess.run(
        [COMMCHECK, "demo", *map(str, words)],
        cwd=cwd,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert "Traceback" not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr, cwd)


def test_a_healthy_fleet_passes_every_check_there_is(tmp_path: Path) -> None:
    ran = demo(tmp_path, "--hosts", 1, "--format", "json")
    assert ran.code == 0, ran.err
    looking = {one.id for one in discover(cwd=tmp_path) if not one.check.effects}
    (found,) = ran.statuses().values()
    assert found.keys() >= looking
    assert {each for check in looking for each in found[check]} <= RIGHT
    others = {each for check in found.keys() - looking for each in found[check]}
    assert others == {("skip", "not-permitted")}
    assert [each.name for each in ran.cwd.iterdir()] == ["reports"]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert marked(ran.document["run"]["id"]) == []


@pytest.mark.slow
def test_of_two_faults_the_lower_is_named(tmp_path: Path) -> None:
    faults = ("--fault", "pfc-off@gpu-01", "--fault", "link-down@gpu-03")
    ran = demo(tmp_path, "--hosts", 3, *faults, "--format", "json")
    verdict = ran.document["summary"]["verdict"]
    assert (verdict["layer"], verdict["cause"]) == ("physical", "link-no-cable")
    assert verdict["hosts"] == ["gpu-01", "gpu-03"]


@pytest.mark.slow
def test_two_faults_on_one_host_and_the_default_host(tmp_path: Path) -> None:
    words = ("--hosts", 2, "--fault", "nvlink-down", "--fault", "mtu-1500", "-l", "gpu-02")
    ran = demo(tmp_path, *words, "--format", "json")
    failed = {each["check"] for each in ran.document["verdicts"] if each["status"] == "fail"}
    assert failed == {"physical.nvlink-active", "physical.nic-mtu"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--fault", "pfc-of"], "did you mean 'pfc-off'?"),
        (["--fault", "pfc-off@gpu-09"], "gpu-01 to gpu-08"),
        (["--persona", "h200-1b"], "did you mean 'h200-ib'?"),
        (["--hosts", "0"], "range"),
        (["-i", "inventory.yaml"], "No such option"),
        (["-l", "nowhere"], "nowhere"),
    ],
)
def test_wrong_words_start_nothing(tmp_path: Path, words: list[str], says: str) -> None:
    ran = demo(tmp_path, *words)
    assert ran.code == 2
    assert says in ran.err
    assert list(ran.cwd.iterdir()) == []


def test_a_dry_run_contacts_nobody(tmp_path: Path) -> None:
    ran = demo(tmp_path, "--hosts", 2, "--dry-run")
    assert ran.code == 0, ran.err
    assert "gpu-02" in ran.out
    assert list(ran.cwd.iterdir()) == []


def test_the_first_finding_is_on_the_screen_before_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    child = subprocess.Popen(
        [COMMCHECK, "demo", "--hosts", "4", "--fault", "pfc-off@gpu-01", "-f", "1"],
        cwd=tmp_path / "empty",
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    with child.stderr as lines:
        next(line for line in lines if "FAIL" in line)
        child.send_signal(signal.SIGINT)
        lines.read()
    assert child.wait(30) == 130  # not 1: there was something left to interrupt
    assert list((tmp_path / "tmp").iterdir()) == []


def test_list_faults(tmp_path: Path) -> None:
    done = subprocess.run(
        [COMMCHECK, "list", "faults", "--format", "json"], capture_output=True, check=True
    )
    listed = json.loads(done.stdout)
    assert [each["fault"] for each in listed] == list(FAULTS)
    assert {each["check"] for each in listed} <= {one.id for one in discover(cwd=tmp_path)}


def test_list_personas() -> None:
    done = subprocess.run(
        [COMMCHECK, "list", "personas", "--format", "json"], capture_output=True, check=True
    )
    assert {"persona": "h200-ib", "title": "H200, ConnectX-7, InfiniBand NDR"} in json.loads(
        done.stdout
    )


@pytest.mark.slow
def test_make_demo_explains_itself_and_ends_with_0(tmp_path: Path) -> None:
    """On the environment of these tests, in the place of the one that it would make."""
    root = Path(__file__).parents[2]
    (tmp_path / "bin").symlink_to(COMMCHECK.parent)
    (tmp_path / ".demo").touch()
    done = subprocess.run(
        ["make", "-s", "demo", f"VENV={tmp_path}", f"REPORTS={tmp_path}/reports"],
        cwd=root,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    for words in ("on purpose", "physical", "gpu-03", "gpu-07", "mtu 4200", "exit code 1"):
        assert words in done.stdout
    assert f"{tmp_path}/reports/latest/report.html" in done.stdout
    assert (tmp_path / "reports/latest/report.html").is_file()
