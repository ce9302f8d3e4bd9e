"""NCCL's start on hosts of the embedded fleet, launched over SSH, and its log judged."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from commcheck.cli import main
from commcheck.demo import command
from commcheck.demo.fault import known_faults
from commcheck.demo.state import HostState, healthy


def climb(states: list[HostState], folder: Path, **play: object) -> dict[str, dict[str, Any]]:
    book = folder / "init.yaml"
    plays = [
        {"layer": "physical", "checks": ["physical.roce-v2-gid"]},
        {"name": "init", "layer": "library", "checks": ["library.nccl-init"], **play},
    ]
    book.write_text(yaml.safe_dump({"name": "init", "allow": ["load"], "plays": plays}))
    given = [str(book), "--out", str(folder / "out"), "--allow", "load", "--format", "json"]
    options = dict(main.commands["demo"].make_context("demo", given).params)
    for name in ("hosts", "faults", "personas"):
        del options[name]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        command.climb(states, (), sources={}, **options)
    found = json.loads(said.getvalue())["verdicts"]
    return {each["subject"]: each for each in found if each["check"] == "library.nccl-init"}


@pytest.mark.slow
def test_a_healthy_start_and_one_that_falls_back_to_sockets(tmp_path: Path) -> None:
    states = [healthy(number) for number in range(1, 4)]
    good = climb(states, tmp_path)
    assert {each["status"] for each in good.values()} == {"pass"}
    assert good["gpu-02"]["reason"] == (
        "all 24 ranks on 3 hosts came up, network IB, GPU Direct on every rank, "
        "8 rings with 3 host crossings each"
    )
    states[2] = known_faults()["gid-v1-only"].change(states[2])
    bad = climb(states, tmp_path, gate="none", suspects="include")
    for host in ("gpu-01", "gpu-02"):
        assert (bad[host]["status"], bad[host]["kind"]) == ("skip", "blocked")
        assert bad[host]["follows"] == "gid-v1-only"
        assert "24 ranks on gpu-[01-03] use network Socket" in bad[host]["reason"]
