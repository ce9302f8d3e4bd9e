"""Processes that use accelerators, as find and grep tell of them."""

from __future__ import annotations

import subprocess

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed
from commcheck.nccl.processes import ETC_CONF, USERS, Process, jobs, parse, ranks

HELD = "/proc/41000/fd/17\n/proc/41000/fd/18\n/proc/41001/fd/17\n/proc/41009/fd/9\n"
ENVIRON = (
    "/proc/41000/environ:RANK=0\0/proc/41000/environ:MASTER_ADDR=a\0"
    "/proc/41001/environ:RANK=1\0/proc/41001/environ:MASTER_ADDR=a\0"
    "/proc/41009/environ:RANK=1\0/proc/41009/environ:MASTER_ADDR=a\0"
    "/proc/77/environ:NCCL_DEBUG=INFO\0/proc/41000/environ:NCCL_TOKEN=geheim\0"
)


def test_who_holds_a_device_with_what_may_be_seen() -> None:
    users = parse(Output(HELD), Output(ENVIRON), Output("/proc/41001/status\n/proc/5/status\n"))
    assert [process.pid for process in users.processes] == [41000, 41001, 41009]
    assert users.stopped == {41001}
    assert "geheim" not in str(users)
    # 41009 is a data loader of rank 1.
    assert ranks(users) == (
        Process(41000, (("MASTER_ADDR", "a"), ("RANK", "0"))),
        Process(41001, (("MASTER_ADDR", "a"), ("RANK", "1"))),
    )
    assert list(jobs(ranks(users))) == ["a:?"]


def test_nobody_is_there_or_nobody_may_be_seen() -> None:
    assert parse(Output(""), Output(""), Output("")).processes == ()
    gone = Output("", "find: '/proc/9': No such file or directory\n", 1)
    assert not parse(gone, Output(""), Output("")).hidden
    denied = Output("", "find: '/proc/1/fd': Permission denied\n", 1)
    assert parse(denied, Output(""), Output("")).hidden
    assert parse(Output(HELD, denied.stderr, 1), Output(""), Output("")).hidden
    with pytest.raises(CommandFailed):
        parse(Output("", "find: unknown predicate\n", 2), Output(""), Output(""))


def test_the_commands_let_nothing_else_leave_the_host() -> None:
    """Really run on this machine, against a process with a secret."""
    variables = {"NCCL_DEBUG": "WARN", "HF_TOKEN": "geheim", "MANY": "geheim\nNCCL_ALGO=Ring"}
    with subprocess.Popen(["sleep", "30"], env=variables) as sleeper:
        command = USERS.readers[1].commands[1]
        said = subprocess.run(command.argv, capture_output=True, check=False).stdout
        sleeper.kill()
    mine = f"/proc/{sleeper.pid}/environ:".encode()
    assert [each for each in said.split(b"\0") if each.startswith(mine)] == [
        mine + b"NCCL_DEBUG=WARN"
    ]
    assert b"geheim" not in said


def test_a_configuration_file_that_is_not_there_sets_nothing() -> None:
    missing = Output("", "cat: /etc/nccl.conf: No such file or directory\n", 1)
    assert ETC_CONF.parse(missing).settings == {}
    with pytest.raises(CommandFailed):
        ETC_CONF.parse(Output("", "cat: /etc/nccl.conf: Permission denied\n", 1))
    assert ETC_CONF.parse(Output("NCCL_IB_TC=106")).settings["NCCL_IB_TC"].value == "106"
