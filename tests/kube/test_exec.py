"""Visits to pods and nodes: a real kubectl, a stand-in for the API server, the real runner."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commcheck.collect.base import SUBJECTS, Frame, Frames, Request, State
from commcheck.collect.kubectl import KubectlVisitor
from commcheck.collect.session import Session
from commcheck.errors import ConnectionLost, HostDeadline, HostError, Interrupted, Unreachable
from commcheck.model import Host
from tests.collect.shells import carriers, command, script, wait_until
from tests.kube.api import Cluster, Pod

MARK = f"kube-{os.getpid()}"
Make = Callable[..., Cluster]


def visitor(*, may_debug: bool = False, deadline_s: float = 20.0) -> KubectlVisitor:
    def session_of(host: Host) -> Session:
        return Session(mark=f"{MARK}.{host.name}", deadline_s=deadline_s)

    return KubectlVisitor(session_of, may_debug=may_debug, note=lambda text: pytest.fail(text))


def pod(cluster: Cluster, name: str, **variables: object) -> Host:
    to = {"ansible_connection": "kubectl", "ansible_kubectl_kubeconfig": str(cluster.kubeconfig)}
    return Host(name, {**to, **variables})


def visit(host: Host, *requests: Request, **settings: float) -> list[Frame]:
    frames = Frames()
    visitor(**settings).visit(host, lambda _subjects: requests, frames)  # type: ignore[arg-type]
    return frames


def children() -> set[str]:
    """Command lines of what we started and runs."""
    found = set()
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = each.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            words = each.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if parent == str(os.getpid()) and "kubectl" in words:
            found.add(words)
    return found


def test_one_exec_carries_all_answers(cluster_of: Make) -> None:
    cluster = cluster_of(Pod("train-0", containers=("side", "main"), env={"WHO": "me"}))
    host = pod(cluster, "t0", ansible_kubectl_pod="train-0", ansible_kubectl_container="main")
    requests = [
        command("echo", "a b"),
        script('echo "$WHO" >&2; exit 3'),
        script("head -c 200000 /dev/zero", cap=300_000),
        command("no-such-tool"),
    ]
    frames = visit(host, *requests)
    assert [frame.key for frame in frames] == [SUBJECTS, *(each.key for each in requests)]
    assert b"kernel Linux" in frames[0].stdout
    assert [frame.rc for frame in frames[1:]] == [0, 3, 0, 127]
    assert frames[1].stdout == b"a b\n"
    assert frames[2].stderr == b"me\n"
    assert frames[3].stdout == bytes(200_000)
    assert sum("exec" in each for each in cluster.asked) == 1
    assert wait_until(lambda: not carriers(f"{MARK}.t0"), 3.0)


@pytest.mark.parametrize(
    ("variables", "code", "says"),
    [
        ({"ansible_kubectl_pod": "gone"}, "pod-not-found", 'pods "gone" not found'),
        ({"ansible_kubectl_namespace": "else"}, "pod-not-found", "pod train-0 in namespace else"),
        ({"ansible_kubectl_pod": "done"}, "pod-not-running", "current phase is Succeeded"),
        ({"ansible_kubectl_pod": "early"}, "pod-not-running", "the pod does not run"),
        ({"ansible_kubectl_pod": "bare"}, "no-shell", "the container has no sh"),
        ({"ansible_kubectl_container": "no"}, "container-not-found", "container no is not valid"),
        ({"ansible_kubectl_context": "no"}, "kubeconfig", "specified context: no"),
        ({"ansible_kubectl_server": "http://127.0.0.1:9"}, "api-unreachable", "was refused"),
        ({"ansible_kubectl_kubeconfig": "/no/such"}, "kubeconfig", "/no/such"),
    ],
)
def test_what_is_refused_says_why_and_what_to_do(
    cluster_of: Make, variables: dict[str, object], code: str, says: str
) -> None:
    cluster = cluster_of(
        Pod("train-0"),
        Pod("done", phase="Succeeded"),
        Pod("early", phase="Pending"),
        Pod("bare", shell=False),
    )
    with pytest.raises(Unreachable, match=says) as caught:
        visit(pod(cluster, "train-0", **variables))
    assert caught.value.code == code
    assert caught.value.remedy


def test_rights_that_lack_are_named(cluster_of: Make) -> None:
    cluster = cluster_of(Pod("train-0"))
    cluster.forbidden = {"pods/exec"}
    with pytest.raises(Unreachable, match="forbids") as caught:
        visit(pod(cluster, "train-0"))
    assert caught.value.code == "forbidden"
    assert "pods/exec" in caught.value.remedy


def test_without_kubectl(cluster_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of(Pod("train-0"))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unreachable, match="kubectl cannot be started") as caught:
        visit(pod(cluster, "train-0"))
    assert caught.value.code == "no-kubectl"


def test_the_deadline_ends_what_runs_in_the_pod(cluster_of: Make) -> None:
    host = pod(cluster_of(Pod("train-0")), "train-0")
    start = time.monotonic()
    with pytest.raises(HostDeadline):
        visit(host, script("setsid sleep 60 & sleep 60", timeout_s=60), deadline_s=1.5)
    assert time.monotonic() - start < 6
    assert not children()
    assert wait_until(lambda: not carriers(f"{MARK}.train-0"), 3.0)


def test_a_server_that_never_answers_costs_the_deadline_and_leaves_no_kubectl(
    cluster_of: Make,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        host = pod(cluster_of(), "train-0", ansible_kubectl_server=address)
        with pytest.raises(HostError) as caught:
            visit(host, deadline_s=1.0)
    assert caught.value.code == "host-deadline"
    assert not children()


def test_stop_ends_the_visit_and_what_runs(cluster_of: Make) -> None:
    host, way = pod(cluster_of(Pod("train-0")), "train-0"), visitor()
    errors: list[Exception] = []

    def work() -> None:
        try:
            way.visit(host, lambda _frame: [command("sleep", "60", timeout_s=60)], lambda *_: None)
        except Interrupted as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert wait_until(lambda: len(carriers(f"{MARK}.train-0")) > 5, 8.0)
    way.stop()
    thread.join(6.0)
    assert len(errors) == 1
    assert wait_until(lambda: not carriers(f"{MARK}.train-0"), 3.0)
    with pytest.raises(Interrupted):
        way.visit(host, lambda _frame: [], lambda *_: None)


def test_a_killed_kubectl_leaves_nothing_in_the_pod(cluster_of: Make) -> None:
    host = pod(cluster_of(Pod("train-0")), "train-0")

    def kill() -> None:
        assert wait_until(lambda: len(carriers(f"{MARK}.train-0")) > 5, 8.0)
        for each in Path("/proc").glob("[0-9]*"):
            words = b""
            try:
                words = each.joinpath("cmdline").read_bytes()
                parent = each.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if b"kubectl" in words and parent == str(os.getpid()):
                os.kill(int(each.name), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(ConnectionLost, match="connection broke"):
        visit(host, command("sleep", "60", timeout_s=60))
    thread.join()
    assert wait_until(lambda: not carriers(f"{MARK}.train-0"), 3.0)


@pytest.mark.slow
def test_an_api_server_that_dies_costs_the_pods_answers_and_leaves_nothing_in_it(
    cluster_of: Make,
) -> None:
    cluster = cluster_of(Pod("train-0"))
    host = pod(cluster, "train-0")
    frames = Frames()
    asked = [command("echo", "before"), command("sleep", "60", timeout_s=60)]

    def cut() -> None:
        assert wait_until(lambda: len(frames) > 1, 8.0)
        cluster.dies()

    thread = threading.Thread(target=cut)
    thread.start()
    with pytest.raises(HostError) as caught:
        visitor().visit(host, lambda _subjects: asked, frames)
    thread.join()
    assert isinstance(caught.value, ConnectionLost), caught.value
    assert [frame.stdout for frame in frames[1:2]] == [b"before\n"]
    assert frames[-1].state is State.LOST
    assert not children()
    assert wait_until(lambda: not carriers(f"{MARK}.train-0"), 3.0)
    # Who comes while it is away is told so.
    with pytest.raises(Unreachable) as late:
        visit(host, deadline_s=5.0)
    assert "refused" in late.value.reason or "connect" in late.value.reason


def test_a_node_is_looked_at_only_where_that_is_allowed(cluster_of: Make) -> None:
    cluster = cluster_of(nodes=["node-1"])
    host = pod(cluster, "node-1", commcheck_kubectl_node="node-1")
    with pytest.raises(Unreachable, match="nobody allowed") as caught:
        visit(host)
    assert caught.value.code == "debug-pod"
    assert not cluster.asked


@pytest.mark.parametrize("ends", ["well", "late"])
def test_the_pod_on_a_node_is_removed(cluster_of: Make, ends: str) -> None:
    cluster = cluster_of(nodes=["node-1"])
    variables = {"commcheck_kubectl_node": "node-1", "commcheck_kubectl_debug_image": "r/b:2"}
    host = pod(cluster, "n1", ansible_kubectl_namespace="kube-system", **variables)
    if ends == "well":
        frames = visit(host, command("echo", "there"), may_debug=True)
        assert frames[1].stdout == b"there\n"
    else:
        with pytest.raises(HostDeadline):
            visit(host, command("sleep", "60", timeout_s=60), may_debug=True, deadline_s=3.0)
    [job] = cluster.made
    assert cluster.removed == [f"jobs/{job['metadata']['name']}"]
    assert job["metadata"]["namespace"] == "kube-system"
    assert job["spec"]["activeDeadlineSeconds"] < 200
    assert job["spec"]["ttlSecondsAfterFinished"] <= 60
    spec = job["spec"]["template"]["spec"]
    assert (spec["nodeName"], spec["hostPID"], spec["hostNetwork"]) == ("node-1", True, True)
    assert spec["containers"][0]["image"] == "r/b:2"
    assert spec["containers"][0]["securityContext"]["privileged"] is True
