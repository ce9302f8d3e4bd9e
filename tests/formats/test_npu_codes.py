"""Why a chip is not healthy: the tool's answers, and the script that asks only where it matters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.errors import ParseError
from commcheck.formats.npu_codes import SCRIPT, NpuFault, parse, parse_one

RECORDED = Path(__file__).parents[1] / "recorded"
SAMPLES = Path(os.environ.get("COMMCHECK_SAMPLES", "/nowhere")) / "physical" / "npu-smi"
FAULT = NpuFault("Alarm", "81078603", "node type=Link, sensor type=Network, event state=Link down")
FACTS = {"health.txt": NpuFault("OK", "", ""), "health-fault.txt": FAULT}


def text(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("folder", [RECORDED / "npu-smi", SAMPLES])
def test_an_answer(folder: Path, name: str) -> None:
    if not folder.is_dir():
        pytest.skip("COMMCHECK_SAMPLES names no folder with samples")
    assert parse_one(Output((folder / name).read_text())) == FACTS[name]


def test_all_that_were_asked() -> None:
    assert parse(Output(text("npu-codes/two-chips.txt"))) == (
        (3, 0, FAULT),
        (6, 0, NpuFault("Warning", "", "")),
    )
    assert parse(Output(text("npu-codes/all-ok.txt"))) == ()


def test_a_cut_answer_is_refused() -> None:
    whole = text("npu-codes/two-chips.txt")
    for end in range(len(whole)):
        with pytest.raises(ParseError):
            parse(Output(whole[:end]))


def asked(folder: Path, table: str) -> Output:
    """The script on a host whose ``npu-smi`` prints a recorded table."""
    tool = folder / "npu-smi"
    tool.write_text(
        f"#!/bin/sh\ncase $* in *health*) cat {RECORDED}/npu-smi/health-fault.txt ;; "
        f"*) cat {RECORDED}/npu-smi/{table} ;; esac\n"
    )
    tool.chmod(0o755)
    words = ["sh", "-c", SCRIPT]
    path = {"PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(words, env=path, capture_output=True, text=True, check=False)
    return Output(done.stdout, done.stderr, done.returncode)


@pytest.mark.parametrize(
    ("table", "places"),
    [
        ("info-910b-good.txt", []),
        ("info-910b-warning.txt", [(3, 0), (6, 0)]),
        ("info-a3-good.txt", []),
        ("not-in-container.txt", []),
    ],
)
def test_only_chips_that_are_not_ok_are_asked(
    tmp_path: Path, table: str, places: list[tuple[int, int]]
) -> None:
    found = parse(asked(tmp_path, table))
    assert [(npu, chip) for npu, chip, _ in found] == places
    assert all(fault == FAULT for *_, fault in found)


def test_without_the_tool() -> None:
    words = ["sh", "-c", SCRIPT]
    done = subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=False)
    assert done.returncode == 127
    assert b"not found" in done.stderr
