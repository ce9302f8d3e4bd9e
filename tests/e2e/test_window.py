"""What a visit that only looks costs a host: one session, each command once, little time."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import COMMCHECK

RAILS = 4
MOST = 140
"""Commands of the whole physical layer on a host of four rails: each is a process there."""


def frames(folder: Path) -> list[dict[str, Any]]:
    """What one healthy host was asked over SSH for the physical layer, and answered."""
    done = subprocess.run(
        [COMMCHECK, "demo", "--hosts", "1", "-t", "physical.*", "--format", "json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("reports/2*/frames/*.ndjson")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_each_command_runs_once_and_they_are_not_too_many(tmp_path: Path) -> None:
    found = frames(tmp_path)
    keys = [each["key"] for each in found]
    assert len(set(keys)) == len(keys)
    # Several checks share these, and one answer: by rail, or once for the host.
    words = {key: key.partition(": ")[2].split() for key in keys if ": " in key}
    tools = Counter(command[0] for command in words.values())
    assert tools["mlnx_qos"] == tools["ibv_devinfo"] == RAILS
    assert tools["nvidia-smi"] == 8
    # Only what counts up is read twice, at both ends of the visit.
    times = Counter(map(tuple, words.values()))
    ends = {tuple(words[key]) for key in words if key.startswith(("start: ", "end: "))}
    assert {command for command, count in times.items() if count > 1} == ends
    assert len(keys) <= MOST
