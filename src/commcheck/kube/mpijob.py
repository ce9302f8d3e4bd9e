"""A run as an MPIJob of the Kubeflow MPI operator: the manifest, and where its pods were. Pure.

Source: API kubeflow.org/v2beta1 of mpi-operator 0.5 and newer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from commcheck.kube.nodes import MANAGED_BY
from commcheck.kube.place import is_image, is_name
from commcheck.lazy import dataclass, regex
from commcheck.report.cleaning import holds_secret

NAME: Final = "@NAME@"
"""Stands for the job's name, which is only known where it is launched."""

JOB: Final = "commcheck.job"
"""Label of the pods of one job."""

ROLE: Final = "commcheck.role"

MARK: Final = "# commcheck: pod"
"""Begins a line that says on which node a pod is."""

_SSH_PORT: Final = 2222
"""In the node's network 22 is its own."""

_SLACK_S: Final = 60.0
_KEPT_S: Final = 60

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``commcheck_mpijob``. ``worker`` and ``launcher``: JSON, laid over their pod templates.

    ``resources``: of a worker, by name; what it does not say of GPUs is worked out. ``labels``: of
    the MPIJob; a queue of Kueue is named by one.
    """

    image: str
    namespace: str = ""
    resources: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    host_network: bool = False
    worker: str = "{}"
    launcher: str = "{}"


def read_settings(value: object) -> Settings:
    """The settings. Raises ``ValueError`` with what was wanted."""
    known = ("image", "namespace", "resources", "labels", "host_network", "worker", "launcher")
    if not isinstance(value, Mapping) or not is_image(value.get("image")):
        raise ValueError("wanted a mapping with an image that holds Open MPI, sshd and nccl-tests")
    if unknown := [str(key) for key in value if key not in known]:
        raise ValueError(f"{', '.join(unknown)}: wanted {', '.join(known)}")
    namespace, resources = value.get("namespace", ""), value.get("resources", {})
    labels = value.get("labels", {})
    if namespace and not is_name(namespace):
        raise ValueError(f"namespace: wanted the name of one, not {namespace!r}")
    templates = {name: value.get(name, {}) for name in ("worker", "launcher")}
    for name, template in {**templates, "resources": resources, "labels": labels}.items():
        if not isinstance(template, Mapping):
            raise ValueError(f"{name}: wanted a mapping, not {template!r}")
        if holds_secret(template):
            raise ValueError(f"{name}: holds a secret; name it with valueFrom: secretKeyRef")
    return Settings(
        image=str(value["image"]),
        namespace=str(namespace),
        resources=tuple((str(name), str(count)) for name, count in resources.items()),
        labels=tuple((str(name), str(told)) for name, told in labels.items()),
        host_network=value.get("host_network") is True,
        **{name: json.dumps(template) for name, template in templates.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to run. ``nodes``: their names, one worker on each; ``argv``: of the launcher."""

    nodes: Sequence[str]
    per_node: int
    argv: Sequence[str]
    limit_s: float


def ssh_options(settings: Settings) -> list[str]:
    """Options of the launcher's ssh: a pod that was made just now has a key that nobody knows."""
    words = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ConnectionAttempts=10"]
    words += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    return words + (["-p", str(_SSH_PORT)] if settings.host_network else [])


def manifest(job: Job, settings: Settings) -> Json:
    """The MPIJob. It ends by itself, also where nobody is left to delete it."""
    limit_s = math.ceil(job.limit_s)
    launcher = {
        "name": "launcher",
        "image": settings.image,
        "command": list(job.argv),
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": NAME, "labels": {**dict(settings.labels), **MANAGED_BY}},
        "spec": {
            "slotsPerWorker": job.per_node,
            "mpiImplementation": "OpenMPI",
            # A launcher that begins before its workers do fails, and there is no second try.
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {
                "cleanPodPolicy": "Running",
                "backoffLimit": 0,
                "activeDeadlineSeconds": limit_s,
                "ttlSecondsAfterFinished": _KEPT_S,
            },
            "mpiReplicaSpecs": {
                "Launcher": _replicas(1, "launcher", {"containers": [launcher]}, settings.launcher),
                "Worker": _replicas(
                    len(job.nodes), "worker", _worker(job, settings), settings.worker
                ),
            },
        },
    }


def _replicas(count: int, role: str, spec: Json, over: str) -> Json:
    labels = {**MANAGED_BY, JOB: NAME, ROLE: role}
    template = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", **spec}}
    return {
        "replicas": count,
        "restartPolicy": "Never",
        "template": laid_over(template, json.loads(over)),
    }


def _worker(job: Job, settings: Settings) -> Json:
    resources = {"nvidia.com/gpu": str(job.per_node), **dict(settings.resources)}
    container: Json = {
        "name": "worker",
        "image": settings.image,
        "resources": {"limits": resources, "requests": resources},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - in the pod
    }
    if settings.host_network:
        container["command"] = ["/usr/sbin/sshd", "-De", "-p", str(_SSH_PORT)]
    spec: Json = {
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        "affinity": _one_on_each(job.nodes),
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        # They sleep in sshd: nothing else would ever end them.
        "activeDeadlineSeconds": math.ceil(job.limit_s + _SLACK_S),
        "terminationGracePeriodSeconds": 1,
    }
    if settings.host_network:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return spec


def _one_on_each(nodes: Sequence[str]) -> Json:
    """These nodes and no other, never two workers on one."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    others = {
        "labelSelector": {"matchLabels": {JOB: NAME, ROLE: "worker"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "nodeAffinity": {required: {"nodeSelectorTerms": terms}},
        "podAntiAffinity": {required: [others]},
    }


def laid_over(below: Json, over: Json) -> Json:
    """Mappings key by key; lists of things with names thing by thing, other lists one by one."""
    result = dict(below)
    for key, value in over.items():
        under = result.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            result[key] = laid_over(under, value)
        elif isinstance(under, list) and isinstance(value, list):
            result[key] = _lists(under, value)
        else:
            result[key] = value
    return result


def _lists(below: list[Any], over: list[Any]) -> list[Any]:
    result = list(below)
    for each in over:
        name = each.get("name") if isinstance(each, dict) else None
        at = next((n for n, o in enumerate(result) if name and o.get("name") == name), None)
        if at is None:
            result.append(each)
        else:
            result[at] = laid_over(result[at], each)
    return result


_PLACED: Final = regex(rf"^{MARK} (\S+) (\S+)$", re.MULTILINE)


def on_hosts(text: str, hostname_of: Mapping[str, str]) -> str:
    """The output with the hosts' own names where it names pods. ``hostname_of``: by node."""
    pods = dict(_PLACED.findall(text))
    if not pods:
        return text
    names = "|".join(re.escape(pod) for pod in pods)

    def named(match: re.Match[str]) -> str:
        node = pods[match[0]]
        return hostname_of.get(node, node.partition(".")[0])

    return re.sub(rf"(?<![\w.-])(?:{names})(?![\w-])", named, _PLACED.sub("", text))
