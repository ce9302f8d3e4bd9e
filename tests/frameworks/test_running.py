"""Command lines on a host: what grep lets pass, and what stays."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed
from commcheck.frameworks.running import COMMAND_LINES, parse, settings
from commcheck.nccl.processes import Process, Users

PID = 4242


def passed(tmp_path: Path, *words: str) -> tuple[str, ...]:
    """The words that leave a host, by the real find and grep over a copy of /proc."""
    place = tmp_path / "proc" / str(PID)
    place.mkdir(parents=True)
    (place / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
    command = COMMAND_LINES.readers[1].commands[0]
    argv = [word.replace("/proc/", f"{tmp_path}/proc/") for word in command.argv]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    text = done.stdout.replace(str(tmp_path), "")
    return parse(Output(text, done.stderr, done.returncode)).words.get(PID, ())


def test_secrets_stay_on_the_host(tmp_path: Path) -> None:
    words = passed(
        tmp_path,
        "/usr/bin/python3",
        "/home/u/pretrain_gpt.py",
        "--wandb-key=SECRET",
        "--api-key",
        "SECRET",
        "--overlap-grad-reduce",
        "--ddp-bucket-size=40000000",
        "--no-overlap_param-gather",
        "x\n--ddp-bucket-size=3 SECRET",
        "postgres://u:SECRET@host/db",
        "--tensor-model-parallel-size",
        "8",
    )
    assert not any("SECRET" in word for word in words)
    assert words == (
        "/home/u/pretrain_gpt.py",
        "--wandb-key",
        "--api-key",
        "--overlap-grad-reduce",
        "--ddp-bucket-size=40000000",
        "--no-overlap_param-gather",
        "--tensor-model-parallel-size",
        "8",
    )


def test_a_job_with_another_job_beside_it(tmp_path: Path) -> None:
    words = passed(tmp_path, "python", "train.py", "--fsdp", "full_shard auto_wrap", "--lr", "1")
    users = Users((Process(PID, (("RANK", "0"),)), Process(7), Process(8)))
    lines = parse(
        Output("".join(f"/proc/{pid}/cmdline:{word}\0" for pid in (PID, 8) for word in words))
    )
    found = settings(users, lines)
    assert [job.framework for job in found] == ["fsdp"]
    assert found[0].word("fsdp") == "full_shard"
    assert found[0].where == f"pid {PID} and 1 like it"
    assert found[0].runs


def test_find_that_fails_is_said_so() -> None:
    with pytest.raises(CommandFailed, match="not found"):
        parse(Output("", "sh: find: not found", 127))
