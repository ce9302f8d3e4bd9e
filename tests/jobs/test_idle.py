"""What says that a host is in use, and that nothing else does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from commcheck.jobs import idle, scripts
from commcheck.model import Kind, Status, Verdict

RECORDED = Path(__file__).parents[1] / "recorded" / "npu-smi"
FREE = (RECORDED / "info-910b-good.txt").read_text()
PROCESSES = """
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 1203345       | python3                  | 41231                   |
+===========================+===============+====================================================+
| No running processes found in NPU 1                                                            |
"""


def reason(verdict: Verdict | None) -> str:
    """Why the host is busy; "" where it is free."""
    if verdict is None:
        return ""
    assert verdict.kind is Kind.BUSY
    return verdict.reason


@pytest.mark.parametrize("name", ["info-910b-good", "info-910b-warning", "info-7-cards"])
def test_npus_at_rest_are_free(name: str) -> None:
    assert idle.npus_busy((RECORDED / f"{name}.txt").read_text()) is None


def test_a_process_on_an_npu_is_named_with_its_owner() -> None:
    assert "python3 (pid 1203345 of unknown, NPU 0, 41231 MB)" in reason(idle.npus_busy(PROCESSES))
    owned = f"{PROCESSES}owner 1203345 mallory\n"
    assert "python3 (pid 1203345 of mallory, NPU 0" in reason(idle.npus_busy(owned))


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("3392 / 65536", "48211 / 65536", "holds 48211 MB of HBM"),
        ("| 0           0    / 0 ", "| 87          0    / 0 ", "is 87 % busy"),
    ],
)
def test_an_npu_in_use_by_nobody_that_is_listed(was: str, now: str, says: str) -> None:
    assert was in FREE
    assert says in reason(idle.npus_busy(FREE.replace(was, now, 1)))


@pytest.mark.parametrize("text", ["", "npu-smi 23.0\n", FREE.partition("No running")[0]])
def test_npus_that_are_not_proven_idle(text: str) -> None:
    verdict = idle.npus_busy(text)
    assert verdict is not None
    assert verdict.status is Status.ERROR


@pytest.mark.parametrize(
    ("sent", "received", "says"),
    [
        (0, 0, ""),
        (120_000_000, 120_000_000, ""),  # 3.8 Gb/s
        (130_000_000, 0, "mlx5_1/1 sends 4.2 Gb/s of 400"),
        (0, 900_000_000, "mlx5_1/1 receives 28.8 Gb/s of 400"),
    ],
)
def test_one_percent_of_a_line_is_somebodys_traffic(sent: int, received: int, says: str) -> None:
    text = "0 mlx5_0/1 400 7 7\n0 mlx5_1/1 400 1000 1000\n1 mlx5_0/1 400 7 7\n"
    text += f"1 mlx5_1/1 400 {1000 + sent} {1000 + received}\n"
    assert says in reason(idle.nics_busy(text))
    assert bool(reason(idle.nics_busy(text))) is bool(says)


def test_half_a_reading_of_nics_says_nothing() -> None:
    assert idle.nics_busy("0 mlx5_0/1 400 7 7\n") is None
    assert idle.nics_busy("1 mlx5_0/1 400 7 7\n0 mlx5_9/1 0 7 7\nnonsense\n") is None


def test_jobs_of_slurm() -> None:
    assert idle.slurm_busy("") is None
    told = reason(idle.slurm_busy("11 alice\n12 bob\n13 eve\n"))
    assert "job 11 of alice, 12 of bob and 1 more" in told


# --- the scripts that bring it --------------------------------------------------------------------


def run(script: str, *words: object, path: Path | None = None) -> list[str]:
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None
    argv = ["sh", "-c", script, "sh", *map(str, words)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=env)
    return done.stdout.splitlines()


def tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_owners_of_processes_on_npus(tmp_path: Path) -> None:
    (tmp_path / "info").write_text(FREE.partition("| NPU     Chip")[0] + PROCESSES)
    tool(tmp_path, "npu-smi", f"cat {tmp_path}/info")
    (tmp_path / "1203345").mkdir()
    (tmp_path / "1203345/status").write_text("Name:\tpython3\nUid:\t0\t0\t0\t0\n")
    said = run(scripts.NPUS, f"{tmp_path}/", path=tmp_path)
    assert said[-1] == "owner 1203345 root"
    assert [line for line in said if line.startswith("owner")] == said[-1:]


def test_ports_are_read_twice(tmp_path: Path) -> None:
    port = tmp_path / "mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
    (port / "counters/port_xmit_data").write_text("12\n")
    (port / "counters/port_rcv_data").write_text("34\n")
    (tmp_path / "mlx5_9/ports/1").mkdir(parents=True)  # a virtual function shows no counters
    assert run(scripts.NICS, tmp_path) == ["0 mlx5_0/1 400 12 34", "1 mlx5_0/1 400 12 34"]
    assert run(scripts.NICS, tmp_path / "none") == []


def test_jobs_of_others_that_run_are_told(tmp_path: Path) -> None:
    me = run("id -un")[0]
    jobs = f"1 {me} RUNNING\\n2 eve PENDING\\n3 eve RUNNING\\n4 eve CONFIGURING\\n5 bob COMPLETING"
    tool(tmp_path, "squeue", f"printf '{jobs}\\n'")
    assert run(scripts.SLURM, path=tmp_path) == ["3 eve", "4 eve", "5 bob"]
