"""What a complaint of ``kubectl`` means: a code, words and a remedy. Pure.

Sources: messages of kubectl 1.27 to 1.33, of the API server and of the container runtimes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from commcheck.errors import Unreachable
from commcheck.kube.place import Place
from commcheck.lazy import dataclass, regex

_INFORMS: Final = regex(r"Defaulted container |Defaulting container |[WI]\d{4} |Warning: ")
"""Lines on stderr that are no complaint."""

_EXITED: Final = regex(r"command terminated with exit code")
"""Comes last, and says less than any other line."""

_RIGHTS: Final = (
    "a Role with get on pods and pods/log, and get and create on pods/exec, is what it takes; "
    "kubectl auth can-i create pods/exec shows what the identity may"
)


@dataclass(frozen=True, slots=True)
class _Kind:
    code: str
    form: re.Pattern[str]
    meaning: str
    remedy: str  # {by_hand}: a command that shows more


def _kind(code: str, form: str, meaning: str, remedy: str) -> _Kind:
    return _Kind(code, regex(form), meaning, remedy)


_KINDS: Final = (
    _kind(
        "no-shell",
        r"chroot: .*\bsh\b.*(?i:no such file)",
        "the node has no sh, which the probes need",
        "its system is made without one (Talos, Bottlerocket): let a pod on it that has sh and the "
        "node's network be the host, with ansible_kubectl_pod",
    ),
    _kind(
        "no-shell",
        r'exec(?:utable file)?:? "?(?:sh|chroot)"?.*not found|"sh": executable file not found'
        r"|no such file or directory.*\bsh\b",
        "the container has no sh, which the probes need",
        "name another container of the pod with ansible_kubectl_container, or look at the node "
        "itself: commcheck_kubectl_node",
    ),
    _kind(
        "forbidden",
        r"exceeded quota",
        "a quota of the namespace leaves no room",
        "kubectl describe resourcequota shows it; name another with ansible_kubectl_namespace",
    ),
    _kind(
        "forbidden",
        r'resource "jobs"',
        "the cluster forbids it",
        "to look at nodes a Role with create, get, list, watch and delete on jobs (batch), get and "
        "list on pods, and get and create on pods/exec is what it takes; kubectl auth can-i create "
        "jobs shows what the identity may",
    ),
    _kind(
        "forbidden",
        r'resource "nodes"',
        "the cluster forbids it",
        "a ClusterRole with get and list on nodes is what a label of nodes takes; kubectl auth "
        "can-i list nodes shows what the identity may",
    ),
    _kind(
        "forbidden",
        r"\(Forbidden\)|is forbidden:|Forbidden$",
        "the cluster forbids it",
        _RIGHTS,
    ),
    _kind(
        "auth-refused",
        r"Unauthorized|must be logged in to the server|getting credentials: ",
        "the API server does not accept the identity",
        "log in to the cluster anew, or name a kubeconfig with ansible_kubectl_kubeconfig",
    ),
    _kind(
        "container-not-found",
        r"container not found|container \S+ is not valid for pod|container \S+ not found in pod"
        r"|a container name must be specified",
        "the pod has no such container that runs",
        "name one of its containers with ansible_kubectl_container: {by_hand}",
    ),
    _kind(
        "pod-not-running",
        r"in a completed pod|does not have a host assigned|is not running|waiting to start"
        r"|is terminated|current phase is |is not created or running",
        "the pod does not run",
        "see why: {by_hand}",
    ),
    _kind(
        "debug-pod",
        r"timed out waiting for the condition on jobs",
        "the pod through which to look did not begin",
        "is the node Ready? {by_hand}; can it pull commcheck_kubectl_debug_image, and does the "
        "namespace admit privileged pods? kubectl get events shows what was refused",
    ),
    _kind(
        "pod-not-found",
        r"\(NotFound\)",
        "the cluster has no such thing",
        "pods of jobs change their names: let a group name a label instead, with "
        "commcheck_kubectl_selector; or correct ansible_kubectl_namespace",
    ),
    _kind(
        "kubeconfig",
        r"context .*does not exist|no context exists|Error in configuration|invalid configuration"
        r"|error loading config|stat .*: no such file|cluster .* does not exist",
        "the kubeconfig does not lead to the cluster",
        "correct ansible_kubectl_kubeconfig or ansible_kubectl_context; kubectl config "
        "get-contexts lists what there is",
    ),
    _kind(
        "node-unreachable",
        # The API server hands on what it heard from the kubelet: its port, or its way to a log.
        r"error dialing backend|proxy error from|502 Bad Gateway|:10250[/:]|/containerLogs/",
        "the API server cannot reach the kubelet of the node",
        "is the node up, and port 10250 open to it? {by_hand}",
    ),
    _kind(
        "api-unreachable",
        r"[Uu]nable to connect to the server|connection to the server .* was refused|no such host"
        r"|i/o timeout|TLS handshake timeout|x509:|connection refused|no route to host",
        "the API server cannot be reached",
        "kubectl cluster-info shows the same; a VPN, a proxy, or an address that has changed?",
    ),
)


def telling(said: str) -> str:
    """The line of a complaint that says most, "" where there is none."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if not _INFORMS.match(line)]
    lines = [line for line in lines if not _EXITED.match(line)] or lines
    errors = [line for line in lines if re.match(r"(?i)error|Unable|The connection", line)]
    chosen = (errors or lines)[-1:]
    return "".join(each for each in chosen[0] if each.isprintable())[:300] if chosen else ""


def explain(said: str, place: Place) -> Unreachable:
    """The error for what ``kubectl`` said before anything of ours ran."""
    line = telling(said)
    for kind in _KINDS:
        if kind.form.search(line):
            remedy = kind.remedy.replace("{by_hand}", place.by_hand)
            return Unreachable(kind.code, f"{place}: {kind.meaning}: {line}", remedy)
    what = line or "kubectl said nothing"
    return Unreachable(
        "exec-refused", f"{place}: no command could be run: {what}", f"try: {place.trial}"
    )


def no_kubectl(error: OSError) -> Unreachable:
    """The error where ``kubectl`` itself cannot be started."""
    return Unreachable(
        "no-kubectl",
        f"kubectl cannot be started: {error.strerror or error}",
        "install kubectl where commcheck runs, of the cluster's version or one beside it",
    )


def late(words: Sequence[str], limit_s: float) -> Unreachable:
    """The error where the API server did not answer."""
    verb = next((word for word in words[1:] if not word.startswith("-")), "")
    return Unreachable(
        "api-unreachable",
        f"kubectl {verb} had no answer within {limit_s:g} s",
        "kubectl cluster-info shows the same; a VPN, a proxy, or an address that has changed?",
    )
