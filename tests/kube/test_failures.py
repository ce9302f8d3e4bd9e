"""What kubectl says, and what it means."""

from __future__ import annotations

import pytest

from commcheck.kube.failures import explain, late, telling
from commcheck.kube.place import Cluster, Place

POD = Place(cluster=Cluster(namespace="ml"), pod="train-0")
FORBIDDEN = (
    'Error from server (Forbidden): pods "train-0" is forbidden: User "ci" cannot create resource '
    '"pods/exec" in API group "" in the namespace "ml"'
)
NO_SHELL = (
    "error: Internal error occurred: error executing command in container: failed to exec in "
    'container: failed to start exec "e1": OCI runtime exec failed: exec failed: unable to start '
    'container process: exec: "sh": executable file not found in $PATH: unknown'
)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ('Error from server (NotFound): pods "train-0" not found', "pod-not-found"),
        ('Error from server (NotFound): namespaces "ml" not found', "pod-not-found"),
        (FORBIDDEN, "forbidden"),
        ("error: You must be logged in to the server (Unauthorized)", "auth-refused"),
        (
            'E1130 00:07:48.5 1 memcache.go:265] "Unhandled Error"\n'
            "error: You must be logged in to the server (the server has asked for the client to "
            "provide credentials)",
            "auth-refused",
        ),
        ("Unable to connect to the server: getting credentials: exec: no such", "auth-refused"),
        (
            'error: unable to upgrade connection: container not found ("main")',
            "container-not-found",
        ),
        (
            "Error from server (BadRequest): container x is not valid for pod train-0",
            "container-not-found",
        ),
        (
            "error: cannot exec into a container in a completed pod; current phase is Failed",
            "pod-not-running",
        ),
        (
            "Error from server (BadRequest): pod train-0 does not have a host assigned",
            "pod-not-running",
        ),
        (
            'Error from server (BadRequest): container "main" in pod "train-0" is waiting to '
            "start: ContainerCreating",
            "pod-not-running",
        ),
        (
            "error: Internal error occurred: error executing command in container: container is "
            "not created or running",
            "pod-not-running",
        ),
        (NO_SHELL, "no-shell"),
        ("chroot: can't execute 'sh': No such file or directory", "no-shell"),
        ("chroot: failed to run command 'sh': No such file or directory", "no-shell"),
        (
            'Error from server: Get "https://192.0.2.5:10250/containerLogs/ml/train-0/main": dial '
            "tcp 192.0.2.5:10250: connect: connection refused",
            "node-unreachable",
        ),
        ('Defaulted container "a" out of: a, b\n' + NO_SHELL, "no-shell"),
        ('error: context "prod" does not exist', "kubeconfig"),
        ("Error in configuration: context was not found for specified context: no", "kubeconfig"),
        ("error: stat /etc/kube/config: no such file or directory", "kubeconfig"),
        (
            "Error from server: error dialing backend: dial tcp 10.0.0.5:10250: i/o timeout",
            "node-unreachable",
        ),
        (
            "The connection to the server 10.0.0.1:6443 was refused - did you specify the right "
            "host or port?",
            "api-unreachable",
        ),
        ("Unable to connect to the server: dial tcp: lookup api: no such host", "api-unreachable"),
        (
            "Unable to connect to the server: tls: failed to verify certificate: x509: certificate "
            "signed by unknown authority",
            "api-unreachable",
        ),
        ("error: timed out waiting for the condition on jobs/commcheck-1", "debug-pod"),
        ("sh: 1: env: not found\ncommand terminated with exit code 127", "exec-refused"),
        ("error: something new", "exec-refused"),
        ("", "exec-refused"),
    ],
)
def test_every_complaint_has_a_code_and_a_remedy(said: str, code: str) -> None:
    error = explain(said, POD)
    assert error.code == code
    assert error.remedy
    assert "pod train-0 in namespace ml" in error.reason


def test_the_line_that_says_most() -> None:
    said = "W1130 kube.go:1] old\nWarning: soon\nerror: the reason\x1b[0m\n\ncommand terminated\n"
    assert telling(said) == "error: the reason[0m"
    assert telling("why\ncommand terminated with exit code 127\n") == "why"
    assert telling("only\x07 this\n") == "only this"
    assert telling('Defaulted container "a" out of: a, b\n') == ""
    assert len(telling("x" * 1000)) == 300


def test_a_late_answer_names_what_was_asked() -> None:
    assert "kubectl get had no answer" in str(late(("kubectl", "--context=c", "get"), 5.0))


def test_how_to_see_it_by_hand() -> None:
    assert POD.by_hand == "kubectl --namespace=ml describe pod train-0"
    node = Place(cluster=Cluster(), node="n1")
    assert node.by_hand == "kubectl describe node n1"
    assert str(node) == "node n1"


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        (FORBIDDEN, "auth can-i create pods/exec"),
        (
            'Error from server (Forbidden): error when creating "STDIN": jobs.batch is forbidden: '
            'User "ci" cannot create resource "jobs" in API group "batch" in the namespace "ml"',
            "auth can-i create jobs",
        ),
        (
            'Error from server (Forbidden): nodes is forbidden: User "ci" cannot list resource '
            '"nodes" in API group "" at the cluster scope',
            "auth can-i list nodes",
        ),
        (
            'Error from server (Forbidden): error when creating "STDIN": jobs.batch "commcheck-1" '
            "is forbidden: exceeded quota: small, requested: count/jobs.batch=1, used: 8",
            "describe resourcequota",
        ),
    ],
)
def test_what_is_forbidden_is_asked_for_by_its_name(said: str, remedy: str) -> None:
    error = explain(said, POD)
    assert error.code == "forbidden"
    assert remedy in error.remedy
