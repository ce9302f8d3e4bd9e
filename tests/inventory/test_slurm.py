"""Hosts from Slurm: which nodes are meant, which are in service, and why the others are not."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from commcheck.errors import InventoryError
from commcheck.inventory.load import Inventory, load
from commcheck.inventory.slurm import declared, parse
from commcheck.jobs import scripts
from commcheck.jobs.idle import slurm_busy

SINFO: Final = """\
gpu-01|10.0.0.1|all|idle|root|none
gpu-01|10.0.0.1|h100|idle|root|none
gpu-02|10.0.0.2|all|drained*|root|bad NIC | mlx5_3
gpu-02|10.0.0.2|h100|drained*|root|bad NIC | mlx5_3
gpu-03|gpu-03|all|mixed|Unknown|none
gpu-04|gpu-04|h100|down|slurm|Not responding
gpu-05|gpu-05|h100|idle~|Unknown|none
gpu-06|gpu-06|h100|allocated$|root|none
"""


def found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *sources: str, says: str = SINFO
) -> Inventory:
    """The inventory where ``sinfo`` says that."""
    tool = tmp_path / "sinfo"
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{says}END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return load(sources, cwd=tmp_path)


@pytest.mark.parametrize(
    ("source", "hosts"),
    [
        ("slurm:", ["gpu-03", "gpu-01", "gpu-06"]),  # "ungrouped" comes first
        ("slurm:h100", ["gpu-01", "gpu-06"]),
        ("slurm:all", ["gpu-03", "gpu-01"]),
        ("slurm:gpu-[01-03]", ["gpu-03", "gpu-01"]),
        ("slurm:gpu-06,gpu-01", ["gpu-06", "gpu-01"]),
    ],
)
def test_a_source_means_nodes_that_are_in_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, hosts: list[str]
) -> None:
    inventory = found(tmp_path, monkeypatch, source)
    assert [host.name for host in inventory.hosts] == hosts


def test_a_node_that_commcheck_had_drained_is_asked_whether_it_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = ("drained", "draining", "drained*", "down", "drained~")
    says = "".join(
        f"n{number}|n{number}|p|{state}|root|commcheck pfc-off\n"
        for number, state in enumerate(states)
    )
    inventory = found(tmp_path, monkeypatch, "slurm:p", says=says + "n9|n9|p|drained|root|RMA\n")
    assert [host.name for host in inventory.hosts] == ["n0", "n1", "n2"]
    assert [warning.count("not asked") for warning in inventory.warnings] == [1, 1, 1]


def test_a_node_has_its_address_its_groups_and_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site.ini").write_text("[h100:vars]\ncommcheck_platform=gpu-roce\n[h100]\n")
    inventory = found(tmp_path, monkeypatch, "slurm:h100", "site.ini")
    first, sixth = inventory.hosts
    assert first.variables["ansible_host"] == "10.0.0.1"
    assert "ansible_host" not in sixth.variables
    assert (first.groups, first.variables["commcheck_platform"]) == (("h100",), "gpu-roce")
    assert inventory.warnings == (
        "slurm:h100:1:1: warning: not asked: gpu-02, in Slurm drained: bad NIC | mlx5_3 (root) "
        "[slurm]",
        "slurm:h100:1:1: warning: not asked: gpu-04, in Slurm down: Not responding (slurm) [slurm]",
        "slurm:h100:1:1: warning: not asked: gpu-05, in Slurm powered off [slurm]",
    )


def test_jobs_that_come_and_go_leave_the_inventory_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = found(tmp_path, monkeypatch, "slurm:h100")
    busy = SINFO.replace("idle|root", "allocated|root")
    assert found(tmp_path, monkeypatch, "slurm:h100", says=busy).digest == idle.digest
    less = SINFO.replace("allocated$", "drained")
    assert found(tmp_path, monkeypatch, "slurm:h100", says=less).digest != idle.digest


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("slurm:h10", r"no partition or node 'h10'; did you mean h100\? \[slurm\]"),
        ("slurm:debug", r"no partition or node 'debug'; its partitions: all, h100 \[slurm\]"),
        ("slurm:gpu-[07-08]", r"no partition or node 'gpu-\[07-08\]'"),
        ("slurm:gpu-[1", r"has '\[' where no list of nodes has it"),
        ("slurm:gpu-02", r"no node is in service: gpu-02, in Slurm drained: bad NIC"),
    ],
)
def test_what_means_no_host_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, why: str
) -> None:
    with pytest.raises(InventoryError, match=why):
        found(tmp_path, monkeypatch, source)


def test_without_slurm_it_says_which_program_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        InventoryError, match=r"slurm:h100 \(sinfo\): error: cannot be run: No such"
    ):
        load(("slurm:h100",), cwd=tmp_path)


@pytest.mark.parametrize("text", ["No partitions", "gpu-01|10.0.0.1|all|idle", "|a|b|c|d|e"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no line of a node"):
        parse(text)
    assert declared(text, "slurm:").notes.errors


@pytest.mark.parametrize(
    ("state", "out"),
    [
        ("idle", ""),
        ("idle*", ""),
        ("maint", ""),
        ("reserved", ""),
        ("allocated@", ""),
        ("planned-", ""),
        ("draining", "draining"),
        ("drained$", "drained"),
        ("DOWN*", "down"),
        ("failing", "failing"),
        ("idle%", "powering down"),
        ("down~", "down, powered off"),
        ("powering_up", "powering_up"),
        ("reboot_issued", "reboot_issued"),
    ],
)
def test_states(state: str, out: str) -> None:
    (node,) = parse(f"n|n|p|{state}|root|none\n")
    assert node.out == out


# --- a real Slurm -------------------------------------------------------------------------------

CONF: Final = """
ClusterName=commcheck
SlurmctldHost={name}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmdSpoolDir={folder}/spool
TmpFS={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName={name} NodeAddr=127.0.0.1 CPUs=1
NodeName=gpu-[01-03] NodeAddr=127.0.0.9 CPUs=1
PartitionName=all Nodes=ALL Default=YES State=UP
PartitionName=h100 Nodes=gpu-[01-03] State=UP
"""
TOOLS: Final = ("/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "sinfo")


def free_ports() -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Mapping[str, str]]:
    """The environment in which Slurm's tools find a controller with one real node, which is us."""
    if os.geteuid() != 0 or not all(map(shutil.which, TOOLS)):
        pytest.skip("needs root, and Debian's slurmctld, slurmd, slurm-client and munge")
    # Not below pytest's own folder, which is for nobody else.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield from running(Path(name))


def running(folder: Path) -> Iterator[Mapping[str, str]]:
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(bytes(range(256)) * 4)
    (folder / "munge.key").chmod(0o400)
    conf = folder / "slurm.conf"
    name = socket.gethostname().partition(".")[0]
    conf.write_text(CONF.format(folder=folder, name=name, ports=free_ports()))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    env = {**os.environ, "SLURM_CONF": str(conf)}
    munge = ["munged", "-F", "--force"]
    for option, file in (("key-file", "munge.key"), ("socket", "munge.socket"), ("pid-file", "p"),
                         ("log-file", "munge.log"), ("seed-file", "seed")):  # fmt: skip
        munge += [f"--{option}", str(folder / file)]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for words in (munge, ["slurmctld", "-D"], ["slurmd", "-D", "-N", name]):
            with (folder / f"{words[0]}.out").open("wb") as out:
                started.append(subprocess.Popen(words, env=env, stdout=out, stderr=out))
            until(lambda: (folder / "munge.socket").exists())
        until(lambda: f"{name}|idle" in said(env, "sinfo", "-h", "-N", "-p", "all", "-o", "%N|%T"))
        yield env
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def said(env: Mapping[str, str], *words: str, user: int | None = None) -> str:
    return subprocess.run(
        words, env=env, capture_output=True, text=True, check=False, user=user, cwd="/"
    ).stdout


def until(is_so: object, limit_s: float = 40) -> None:
    assert callable(is_so)
    ends = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.1)


@pytest.mark.slow
def test_a_real_slurm_tells_its_nodes(
    slurm: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLURM_CONF", slurm["SLURM_CONF"])
    said(slurm, "scontrol", "update", "nodename=gpu-02", "state=drain", "reason=bad NIC | mlx5_3")
    inventory = load(("slurm:h100",), cwd=tmp_path)
    assert [host.name for host in inventory.hosts] == ["gpu-01", "gpu-03"]
    assert inventory.hosts[0].variables["ansible_host"] == "127.0.0.9"
    (warning,) = inventory.warnings
    assert "gpu-02, in Slurm drained: bad NIC | mlx5_3 (root)" in warning


@pytest.mark.slow
def test_lists_mean_what_slurm_says(slurm: Mapping[str, str]) -> None:
    from commcheck.inventory.hostlist import expand

    for text in ("gpu-[01-03,7]", "a[001-3]", "a[9-010]", "a[1,01,1]", "n[1-3]n[1-2,5]", "a,,b",
                 "a[00-1]", "x1,y[2-3]"):  # fmt: skip
        assert expand(text) == said(slurm, "scontrol", "show", "hostnames", text).split(), text


@pytest.mark.slow
def test_a_node_with_somebodys_job_is_busy(slurm: Mapping[str, str]) -> None:
    ask = ("sh", "-c", scripts.SLURM)
    assert slurm_busy(said(slurm, *ask)) is None
    nobody = pwd.getpwnam("nobody").pw_uid
    node = socket.gethostname().partition(".")[0]
    words = ("sbatch", "--parsable", "-w", node, "-D", "/", "-o", "/dev/null", "--wrap", "sleep 60")
    job = said(slurm, *words, user=nobody).strip()
    assert job.isdecimal()
    until(lambda: said(slurm, *ask).strip())
    busy = slurm_busy(said(slurm, *ask))
    assert busy is not None
    assert f"Slurm runs job {job} of nobody" in busy.reason
    said(slurm, "scancel", job)
    # Its step must report to a slurmd that is still there, or it waits for ever.
    until(lambda: not said(slurm, "squeue", "-h").strip())
