"""What a visit that only looks costs a host: one session, each command once, little time."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import COMMCHECK

RAILS = 4
REMOTE_S = 1.0
"""Seconds of a host's own time for the whole physical layer, with tools that only print."""


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
def test_each_command_runs_once_and_all_of_them_take_less_than_a_second(tmp_path: Path) -> None:
    found = frames(tmp_path)
    keys = [each["key"] for each in found]
    assert len(set(keys)) == len(keys)
    # Several checks share these, and one answer: by rail, or once for the host.
    words = {key: key.partition(": ")[2].split() for key in keys if ": " in key}
    tools = Counter(command[0] for command in words.values())
    assert tools["mlnx_qos"] == tools["ibv_devinfo"] == RAILS
    assert tools["nvidia-smi"] == 7
    # Only what counts up is read twice, at both ends of the visit.
    times = Counter(map(tuple, words.values()))
    ends = {tuple(words[key]) for key in words if key.startswith(("start: ", "end: "))}
    assert {command for command, count in times.items() if count > 1} == ends
    took_s = sum(each["ended_s"] - each["started_s"] for each in found)
    # Where more wants to run than there are cores, everything waits that much longer.
    waiting = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert took_s < REMOTE_S * waiting
