"""Completion: it must know every name that there is, without importing what has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from commcheck import complete
from commcheck.demo.fault import known_faults
from commcheck.discover import discover

COMMCHECK = Path(sys.executable).parent / "commcheck"


def context(**params: object) -> click.Context:
    ctx = click.Context(click.Command("x"))
    ctx.params = params
    return ctx


def test_names_are_those_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = discover(cwd=tmp_path)
    assert set(complete.checks(context())) == {one.id for one in found}
    causes = {cause.slug for one in found for cause in one.check.causes}
    told = set(complete.checks_and_causes(context()))
    assert told >= causes
    faults = set(complete.faults(context(hosts=2)))
    assert {name.partition("@")[0] for name in faults} == set(known_faults())
    assert "pfc-off@gpu-02" in faults


def words(cwd: Path, line: str) -> list[str]:
    """What bash offers for the last word of a line."""
    done = subprocess.run(
        [COMMCHECK],
        cwd=cwd,
        env={
            **os.environ,
            "_COMMCHECK_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_the_shell_is_told(tmp_path: Path) -> None:
    run = tmp_path / "reports" / "20261129T150405Z-7f3a"
    run.mkdir(parents=True)
    (run / "events.ndjson").touch()
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "ours.yaml").touch()
    (tmp_path / "commcheck.toml").write_text("broken = [")
    assert words(tmp_path, "commcheck explain physical.pfc-e") == ["plain,physical.pfc-enabled"]
    assert "plain,pfc-off" in words(tmp_path, "commcheck explain pfc")
    assert words(tmp_path, "commcheck run -i b1,a1, -l b1:!a") == ["plain,b1:!a1", "plain,b1:!all"]
    assert words(tmp_path, "commcheck run play") == ["plain,playbooks/ours.yaml"]
    assert words(tmp_path, "commcheck report 2026") == [f"plain,{run.name}"]
    assert words(tmp_path, "commcheck run --baseline last-") == ["plain,last-green"]
    assert words(tmp_path, "commcheck run -i nowhere.yaml -l a") == []


def test_no_program_is_started_for_a_completion(tmp_path: Path) -> None:
    """A script that makes an inventory is no less a program for its name, or for its folder."""
    script = tmp_path / "folder" / "hosts"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    (tmp_path / "sinfo").write_text(script.read_text())
    (tmp_path / "sinfo").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        for source in ("folder", "folder/hosts", "slurm:gpu", "exec:sinfo"):
            assert words(tmp_path, f"commcheck run -i {source} -l g") == []
    assert not (tmp_path / "ran").exists()
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "hosts").write_text("[gpu]\ngpu-01\n")
    for source in ("plain", "plain/hosts"):
        assert words(tmp_path, f"commcheck run -i {source} -l gpu-") == ["plain,gpu-01"]
