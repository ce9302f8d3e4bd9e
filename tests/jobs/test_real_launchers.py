"""Open MPI, MPICH's hydra and Slurm between hosts that are remote to each other.

One host launches, two are loaded. What runs is a real MPI program.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.jobs.netns import HEAD, IDLE_GPUS, NETWORK, Net, do, until, why_not

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

BOTH: Final = ("gpu-a", "gpu-b")
CHECK: Final = "physical.collective-pairs"
BENCH: Final = Path(__file__).parent / "launchers/bench.c"
NPU_SMI: Final = """
cat <<'END'
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| No running processes found in NPU 0                                                             |
| No running processes found in NPU 1                                                             |
END"""
SLURM: Final = """
ClusterName=commcheck
SlurmctldHost={head}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@dataclass(frozen=True)
class Launcher:
    """``starts`` runs on the launching host; ``daemons`` and ranks on the loaded ones."""

    name: str
    tools: tuple[str, ...]
    starts: str
    daemons: str
    program: str = "all_gather_perf"
    cards: int = 2  # of each host
    platform: str = "gpu-roce"
    variables: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


OPEN_MPI = Launcher(
    "openmpi",
    tools=("mpirun.openmpi", "mpicc.openmpi"),
    starts="mpirun.openmpi",
    daemons="orted",
    variables={
        "commcheck_mpi_interface": f"{NETWORK}.0/24",
        "commcheck_launch_args": ["--mca", "plm_rsh_agent", "ssh -F {folder}/ssh_config"],
    },
)
HYDRA = Launcher(
    "hydra",
    tools=("mpiexec.hydra", "mpicc.mpich"),
    starts="mpiexec.hydra",
    daemons="hydra_pmi_proxy",
    program="all_gather_test",
    platform="ascend",
    variables={
        "commcheck_mpi_interface": "eth0",
        "commcheck_launch_args": ["-launcher-exec", "{folder}/bin/ssh-keyed"],
    },
    # Two ranks of a host may hang in UCX here: memory is shared by ids of another namespace.
    cards=1,
    env={"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"},
)
SRUN = Launcher(
    "slurm",
    tools=("srun", "slurmctld", "slurmd", "munged", "mpicc.openmpi"),
    starts="srun",
    daemons="slurmstepd",
    variables={"commcheck_launcher": "srun"},
)


@pytest.fixture(scope="module", params=[OPEN_MPI, HYDRA, SRUN], ids=lambda each: each.name)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Net, Launcher]]:
    launcher: Launcher = request.param
    reason = why_not(*launcher.tools)
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp(launcher.name)
    net = Net(folder, gpus=BOTH)
    if launcher is SRUN:
        net.env = {"SLURM_CONF": f"{folder}/slurm.conf"}
        net.daemons = slurm_daemons(net)
    else:
        net.tool("mpirun", f'exec {launcher.tools[0]} "$@"')
    do(launcher.tools[-1], "-O1", "-o", net.bin / launcher.program, BENCH)
    net.tool("ssh-keyed", f'exec ssh -F {folder}/ssh_config "$@"')
    if launcher.platform == "ascend":
        net.accelerators("0x19e5", "0x120000", launcher.cards)
        net.tool("npu-smi", NPU_SMI)
    else:
        net.accelerators("0x10de", "0x030200", launcher.cards)
        net.tool("nvidia-smi", IDLE_GPUS)
    with net.running():
        yield net, launcher


def slurm_daemons(net: Net) -> dict[str, str]:
    """Munge and the controller on the launching host, a node's daemon on each of the others."""
    folder, at = net.folder, net.addresses
    nodes = "\n".join(f"NodeName={name} NodeAddr={at[name]} CPUs=2" for name in BOTH)
    text = SLURM.format(folder=folder, head=f"{HEAD}({at[HEAD]})", nodes=nodes)
    (folder / "slurm.conf").write_text(text)
    # Detection looks for a mount that the hosts' own sysfs hides; no plugin here needs cgroups.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    for name in BOTH:
        (folder / f"spool-{name}").mkdir()
    (folder / "munge.key").write_bytes(bytes(range(256)) * 4)
    (folder / "munge.key").chmod(0o400)
    munge = (
        f"munged -F --force --key-file {folder}/munge.key --socket {folder}/munge.socket "
        f"--pid-file {folder}/munge.pid --log-file {folder}/munge.log --seed-file {folder}/seed"
    )
    conf = f"{folder}/slurm.conf"
    waits = f"while [ ! -S {folder}/munge.socket ]; do sleep 0.1; done"
    node = f"({waits}; exec slurmd -D -f {conf}) & "
    return {
        HEAD: f"{munge} & ({waits}; exec slurmctld -D -f {conf}) & ",
        **dict.fromkeys(BOTH, node),
    }


def run(site: tuple[Net, Launcher], **env: str) -> subprocess.Popen[bytes]:
    """Start commcheck. The wire of this test is this machine's memory: any bandwidth will do."""
    net, launcher = site
    variables = {
        **json.loads(json.dumps(launcher.variables).replace("{folder}", str(net.folder))),
        "commcheck_platform": launcher.platform,
        "commcheck_job_env": {**launcher.env, **env},
        "commcheck_expected_busbw": {"pairs": 0.001},
        "commcheck_thresholds": {
            f"{CHECK}.min_mib": 1,
            f"{CHECK}.max_mib": 2,
            "placement_fail": 1.0,
            "collapse_fail": 0.0,
            "spread_fail": 9.0,
        },
    }
    return net.commcheck(CHECK, variables)


def ours(launcher: Launcher) -> tuple[str, ...]:
    """Programs of which none may be left."""
    return (launcher.starts, launcher.daemons, launcher.program, "sleep")


def test_it_runs_between_remote_hosts(site: tuple[Net, Launcher]) -> None:
    net, launcher = site
    run(site).wait(120)
    said = net.verdicts(CHECK)
    assert [(each["subject"], each["status"]) for each in said] == [
        ("@gpu", "pass"),
        ("gpu-a", "pass"),
        ("gpu-b", "pass"),
    ], said
    # hccl_test names no host
    on = "2 hosts" if launcher.platform == "ascend" else "gpu-a, gpu-b"
    assert f"{2 * launcher.cards} ranks on {on}" in said[1]["reason"]
    assert not net.processes(*ours(launcher))


def test_a_killed_commcheck_leaves_no_daemon_and_no_rank(site: tuple[Net, Launcher]) -> None:
    net, launcher = site
    started = run(site, BENCH_HANGS="1")
    loaded = {launcher.daemons: set(BOTH), launcher.program: set(BOTH)}
    try:
        until(lambda: net.processes(*loaded) == loaded, 60)
        assert net.processes(launcher.starts) == {launcher.starts: {HEAD}}
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()
    until(lambda: not net.processes(*ours(launcher)), 60)
    if launcher is SRUN:  # nor an allocation
        words = ["squeue", "-h"]
        env = {**os.environ, **net.env}
        until(
            lambda: not subprocess.run(words, capture_output=True, check=True, env=env).stdout, 20
        )


def test_a_host_that_another_run_holds_is_skipped_and_named(site: tuple[Net, Launcher]) -> None:
    net, launcher = site
    with (net.folder / "gpu-a.id").open() as machine_id:
        fcntl.flock(machine_id, fcntl.LOCK_EX)
        run(site).wait(120)
    by_subject = {each["subject"]: each for each in net.verdicts(CHECK)}
    held = by_subject["gpu-a"]
    assert (held["status"], held["kind"]) == ("skip", "busy")
    assert "holds the host's lock" in held["reason"]
    assert "it takes 2 free hosts, and 1 of 2 are" in by_subject["gpu-b"]["reason"]
    assert not net.processes(launcher.starts, launcher.program)
    junit = (net.folder / "reports/latest/junit/TEST-commcheck-physical.xml").read_text()
    assert "holds the host's lock" in junit.partition("<skipped")[2]
