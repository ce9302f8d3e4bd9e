"""The command line over pods and nodes of a cluster: a climb, its log, a run as an MPIJob."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from commcheck.collect.base import Frames, Request
from commcheck.collect.kubectl import KubectlVisitor
from commcheck.collect.session import Session
from commcheck.command import Command
from commcheck.jobs.job import Member
from commcheck.jobs.launchers import Program, command
from commcheck.loads import site_of
from commcheck.model import Host, Machine
from tests.collect.shells import carriers, wait_until
from tests.jobs.netns import IDLE_GPUS
from tests.jobs.netns import why_not as why_no_hosts
from tests.kube.api import Cluster, Pod

COMMCHECK: Final = Path(sys.executable).with_name("commcheck")
RECORDED: Final = Path(__file__).parents[1] / "recorded"
SWEEP: Final = RECORDED / "collectives/04_allgather_2node_16xh100_400g_good.txt"
NO_DEVICE: Final = "nccl-no-rdma-device"
RANK: Final = ("fail", "error", "warn", "skip", "pass")
FALLBACK: Final = RECORDED / "nccl-logs/03-socket-fallback-2n4r-2.27.7.log"
Make = Callable[..., Cluster]


def commcheck(folder: Path, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMCHECK, *map(str, words)],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "COMMCHECK_DEBUG": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def verdicts(run: subprocess.Popen[str]) -> dict[tuple[str, str], dict[str, Any]]:
    out, err = run.communicate(timeout=90)
    assert out, err
    told = sorted(json.loads(out)["verdicts"], key=lambda each: -RANK.index(each["status"]))
    return {(each["subject"], each["check"]): each for each in told}  # the worst of several


@pytest.mark.slow
def test_a_climb_over_the_pods_of_a_label(cluster_of: Make, tmp_path: Path) -> None:
    secret = b"epoch 1 token=s3cret\n"
    log = [secret, *FALLBACK.read_bytes().splitlines(keepends=True)]
    cluster = cluster_of(
        Pod("trainer-0", labels={"app": "train"}, log=log),
        Pod("trainer-1", labels={"app": "train"}, log=[secret]),
        Pod("trainer-2", labels={"app": "train"}, phase="Pending"),
    )
    variables = {
        "ansible_kubectl_kubeconfig": str(cluster.kubeconfig),
        "commcheck_kubectl_selector": "app=train",
        "commcheck_platform": "gpu-roce",
    }
    (tmp_path / "i.yaml").write_text(yaml.safe_dump({"train": {"vars": variables}}))
    asked = ("-t", "physical.reachable", "-t", "library.log", "--format", "json", "-q")
    found = verdicts(commcheck(tmp_path, "run", "-i", "i.yaml", *asked))
    assert found["trainer-0", "physical.reachable"]["status"] == "pass"
    assert found["trainer-2", "physical.reachable"]["reason"].startswith("pod-not-running: ")
    assert found["trainer-0", "library.log"]["status"] == "fail"
    assert found["trainer-0", "library.log"]["cause"] in ("nccl-socket-fallback", NO_DEVICE)
    assert found["trainer-1", "library.log"]["kind"] == "undecidable"
    frames = (tmp_path / "reports/latest/frames").glob("trainer-*.ndjson*")
    assert all(b"s3cret" not in each.read_bytes() for each in frames)
    cluster.pods.clear()  # it is judged again from what was kept
    again = verdicts(commcheck(tmp_path, "judge", "last", "--format", "json"))
    assert {at: each["status"] for at, each in again.items()} == {
        at: each["status"] for at, each in found.items()
    }


# --- a run as an MPIJob -------------------------------------------------------------------------


@pytest.fixture
def nodes(cluster_of: Make, tmp_path: Path) -> Cluster:
    """Two nodes with eight GPUs each, and an image whose mpirun prints a recorded sweep."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-um", "true"], check=False).returncode:
        pytest.skip("nodes with their own names and GPUs need root and unshare")
    cluster = cluster_of(nodes=["node-1", "node-2"])
    cluster.bin = tmp_path / "bin"
    cluster.bin.mkdir()
    eight = "seq 0 7 | sed 's/$/, 4, 0/'"
    tool(cluster, "nvidia-smi", IDLE_GPUS.replace("printf '0, 4, 0\\n1, 4, 0\\n'", eight))
    pci = tmp_path / "pci"
    for number in range(8):
        card = pci / f"0000:{0x0A + number:02x}:00.0"
        card.mkdir(parents=True)
        (card / "vendor").write_text("0x10de\n")
        (card / "class").write_text("0x030200\n")
    for name in cluster.nodes:
        (tmp_path / f"{name}.id").write_text(f"{name.encode().hex():0>32}\n")
        seen = {f"{tmp_path}/{name}.id": "/etc/machine-id", pci: "/sys/bus/pci/devices"}
        binds = [f"mount --bind {mine} {theirs}" for mine, theirs in seen.items()]
        start = " && ".join((f"hostname {name}", *binds, 'exec "$@"'))
        cluster.inside[name] = ("unshare", "-um", "sh", "-c", start, "sh")
    return cluster


def tool(cluster: Cluster, name: str, text: str) -> None:
    assert cluster.bin
    (cluster.bin / name).write_text(f"#!/bin/sh\n{text}\n")
    (cluster.bin / name).chmod(0o755)


def wire(cluster: Cluster, limit_s: int = 60) -> subprocess.Popen[str]:
    """A sweep over all nodes, launched from this machine."""
    at = {name: {"commcheck_kubectl_node": name} for name in cluster.nodes}
    shared: Mapping[str, object] = {
        "ansible_kubectl_kubeconfig": str(cluster.kubeconfig),
        "commcheck_platform": "gpu-roce",
        "commcheck_launcher": "mpijob",
        "commcheck_launch_host": "here",
        "commcheck_expected_busbw": {"fleet": 390},
        "commcheck_mpijob": {"image": "nccl:1", "namespace": "bench"},
    }
    children = {
        "head": {"hosts": {"here": {"ansible_connection": "local"}}},
        "gpu": {"vars": {"ansible_connection": "kubectl"}, "hosts": at},
    }
    inventory = {"all": {"vars": shared, "children": children}}
    (cluster.folder / "i.yaml").write_text(yaml.safe_dump(inventory))
    params = {"min_mib": 8, "max_mib": 8192, "run_limit_s": limit_s}
    checks = [{"check": "physical.collective-fleet", "params": params}]
    plays = [{"layer": "physical", "hosts": "gpu", "checks": checks}]
    book = {"name": "wire", "allow": ["load"], "plays": plays}
    (cluster.folder / "wire.yaml").write_text(yaml.safe_dump(book))
    allow = ("--allow", "load,debug-pod", "--format", "json", "-q")
    return commcheck(cluster.folder, "run", "-i", "i.yaml", "wire.yaml", *allow)


def jobs_of(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.made if each["kind"] == "MPIJob"]


def nothing_left(cluster: Cluster) -> bool:
    made = {
        f"{each['kind'].lower()}s/{each['metadata']['name']}": each["kind"] for each in cluster.made
    }
    return made.keys() <= set(cluster.removed)


@pytest.mark.slow
def test_a_sweep_as_an_mpijob(nodes: Cluster) -> None:
    # A rank says the name of its pod.
    pods = "s/ *gpu-a01/ $JOB-worker-0/; s/ *gpu-a02/ $JOB-worker-1/"
    tool(nodes, "mpirun", f'sed "{pods}" {SWEEP}')
    found = verdicts(wire(nodes))
    [job] = jobs_of(nodes)
    whole = found["@gpu", "physical.collective-fleet"]
    assert whole["status"] == "pass", whole
    assert "16 ranks on node-1, node-2: busbw 363.4 GB/s" in whole["reason"]
    assert found["node-2", "physical.collective-fleet"]["status"] == "pass"
    assert f"mpijobs/{job}" in nodes.removed
    assert wait_until(lambda: nothing_left(nodes), 5.0)


@pytest.mark.slow
def test_an_mpijob_that_does_not_begin_is_given_up_and_removed(
    nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the clock of the machine that launches it is put back meanwhile."""
    nodes.unscheduled = True
    clock = tmp_path / "clock" / "date"
    clock.parent.mkdir()
    clock.write_text(
        f"#!/bin/sh\nif [ -e {clock}.set ]; then echo 100; exit; fi\n"
        f'touch {clock}.set; exec /bin/date "$@"\n'
    )
    clock.chmod(0o755)
    monkeypatch.setenv("PATH", f"{clock.parent}:{os.environ['PATH']}")
    found = verdicts(wire(nodes, limit_s=25))
    whole = found["@gpu", "physical.collective-fleet"]
    assert whole["status"] == "error"
    assert "the MPIJob did not begin within 5 s" in whole["reason"]
    assert "it is suspended: a queue (Kueue) has not let it in" in whole["reason"]
    assert wait_until(lambda: nothing_left(nodes), 5.0)


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_an_mpijob_does_not_outlive_commcheck(nodes: Cluster, by: signal.Signals) -> None:
    tool(nodes, "mpirun", "echo '# nThread 1'; exec sleep 60")
    run = wire(nodes)
    assert wait_until(lambda: bool(jobs_of(nodes)), 40.0)
    time.sleep(1.5)
    run.send_signal(by)
    run.communicate(timeout=30)
    [job] = jobs_of(nodes)
    assert wait_until(lambda: f"mpijobs/{job}" in nodes.removed, 8.0)


# --- from pod to pod ----------------------------------------------------------------------------


@pytest.mark.slow
def test_open_mpi_reaches_other_pods_by_kubectl_exec(cluster_of: Make, tmp_path: Path) -> None:
    """A real mpirun in one pod, its daemon in another: the words that the engine would launch."""
    if why_not := why_no_hosts("mpirun.openmpi", "orted"):
        pytest.skip(why_not)
    cluster = cluster_of()
    for name in ("trainer-0", "trainer-1"):
        inside = ("unshare", "-u", "sh", "-c", f'hostname {name} && exec "$@"', "sh")
        env = {"HOME": str(tmp_path), "KUBECONFIG": str(cluster.kubeconfig)}
        cluster.pods.append(Pod(name, inside=inside, env=env))
    machine = Machine("x", "gpu-roce", uid=0)
    members = []
    for name in ("trainer-0", "trainer-1"):
        host = Host(name, {"ansible_connection": "kubectl", "commcheck_launcher": "kubectl"})
        programs = {"mpirun": "/usr/bin/mpirun.openmpi", "kubectl": "kubectl"}
        members.append(Member(host=host, machine=machine, site=site_of(host, ""), address=name,
                              launchers=frozenset({"openmpi"}), programs=programs))  # fmt: skip
    program = Program(argv=("hostname",), per_host=2, env={}, limit_s=60.0)
    launch = Request(Command(command(program, members[0], members), timeout_s=60.0))
    frames = Frames()
    variables = {"ansible_connection": "kubectl", "ansible_kubectl_config": cluster.kubeconfig}
    head = Host("trainer-0", {name: str(value) for name, value in variables.items()})
    session = Session(mark=f"pods-{os.getpid()}.job-1", deadline_s=60.0)
    way = KubectlVisitor(lambda _host: session, may_debug=False, note=pytest.fail)
    way.visit(head, lambda _frame: [launch], frames)
    assert sorted(frames[1].stdout.split()) == [b"trainer-0"] * 2 + [b"trainer-1"] * 2, frames[1]
    assert frames[1].rc == 0
    assert wait_until(lambda: not carriers(session.mark), 5.0)
