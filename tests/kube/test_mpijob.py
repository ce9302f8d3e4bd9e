"""MPIJobs: the manifest, against the fields that the CRD publishes, and whose pods were where."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from commcheck.errors import CommandMissing, Unjudgeable
from commcheck.jobs.collective import Limits, collective_job
from commcheck.jobs.job import Member
from commcheck.jobs.outcomes import Run
from commcheck.kube.mpijob import Job, laid_over, manifest, on_hosts, read_settings
from commcheck.loads import site_of
from commcheck.model import Accelerator, Host, Machine

SETTINGS = {"image": "registry/nccl:2.21", "resources": {"rdma/hca": 1}, "namespace": "bench"}

# What mpijobs.kubeflow.org v2beta1 publishes: fields, types and enumerations.
_COUNT = {"type": "integer", "minimum": 0}
_NAMES = {"type": "object", "additionalProperties": {"type": "string"}}


def _object(required: list[str], **fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": fields,
    }


_TEMPLATE = _object(
    ["spec"],
    metadata=_object([], labels=_NAMES, annotations=_NAMES),
    spec={
        "type": "object",
        "required": ["containers"],
        "properties": {
            "containers": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["name", "image"],
                    "properties": {
                        "command": {"type": "array", "items": {"type": "string"}},
                        "env": {"type": "array", "items": _object(["name"], name={}, value={})},
                        "resources": _object([], limits=_NAMES, requests=_NAMES),
                    },
                },
            },
            "activeDeadlineSeconds": {"type": "integer", "minimum": 1},
            "restartPolicy": {"enum": ["Always", "OnFailure", "Never"]},
        },
    },
)


def _replica(most: int | None = None) -> dict[str, Any]:
    count = {"type": "integer", "minimum": 1, **({"maximum": most} if most else {})}
    policy = {"enum": ["Never", "OnFailure"]}
    return _object(["template"], replicas=count, restartPolicy=policy, template=_TEMPLATE)


SCHEMA = _object(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "kubeflow.org/v2beta1"},
    kind={"const": "MPIJob"},
    metadata=_object(["name"], name={"type": "string"}, namespace={"type": "string"},
                     labels=_NAMES, annotations=_NAMES),
    spec=_object(
        ["mpiReplicaSpecs"],
        slotsPerWorker={"type": "integer", "minimum": 1},
        runLauncherAsWorker={"type": "boolean"},
        sshAuthMountPath={"type": "string"},
        launcherCreationPolicy={"enum": ["AtStartup", "WaitForWorkersReady"]},
        mpiImplementation={"enum": ["OpenMPI", "Intel", "MPICH"]},
        runPolicy=_object(
            [],
            cleanPodPolicy={"enum": ["None", "Running", "All"]},
            ttlSecondsAfterFinished=_COUNT,
            activeDeadlineSeconds=_COUNT,
            backoffLimit=_COUNT,
            suspend={"type": "boolean"},
            managedBy={"type": "string"},
            schedulingPolicy={"type": "object"},
        ),
        mpiReplicaSpecs=_object(["Launcher"], Launcher=_replica(1), Worker=_replica()),
    ),
)  # fmt: skip


def made(**settings: Any) -> dict[str, Any]:
    job = Job(nodes=["n1", "n2"], per_node=8, argv=("mpirun", "x"), limit_s=179.5)
    found = manifest(job, read_settings({**SETTINGS, **settings}))
    jsonschema.validate(found, SCHEMA)
    return found


def worker(found: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = found["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    return spec


def test_its_labels_are_the_site_s_beside_its_own() -> None:
    queue = {"kueue.x-k8s.io/queue-name": "bench", "app.kubernetes.io/managed-by": "me"}
    labels = made(labels=queue)["metadata"]["labels"]
    assert labels == {**queue, "app.kubernetes.io/managed-by": "commcheck"}


def test_one_worker_on_each_node_with_what_it_needs() -> None:
    found = made()
    spec = worker(found)
    assert found["spec"]["slotsPerWorker"] == 8
    assert found["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    nodes = [term["matchFields"][0]["values"] for term in terms["nodeSelectorTerms"]]
    assert nodes == [["n1"], ["n2"]]
    assert "podAntiAffinity" in spec["affinity"]
    [container] = spec["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8", "rdma/hca": "1"}
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert "hostNetwork" not in spec


def test_it_ends_by_itself() -> None:
    found = made()
    policy = found["spec"]["runPolicy"]
    assert policy == {
        "cleanPodPolicy": "Running",
        "backoffLimit": 0,
        "activeDeadlineSeconds": 180,
        "ttlSecondsAfterFinished": 60,
    }
    assert worker(found)["activeDeadlineSeconds"] == 240


def test_in_the_network_of_the_nodes_sshd_has_another_port() -> None:
    spec = worker(made(host_network=True))
    assert spec["hostNetwork"] is True
    assert spec["containers"][0]["command"][-2:] == ["-p", "2222"]


def test_what_a_site_adds_is_laid_over_the_templates() -> None:
    spec = worker(
        made(
            worker={
                "metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "rail0,rail1"}},
                "spec": {
                    "schedulerName": "volcano",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "worker", "env": [{"name": "A", "value": "1"}]}],
                },
            },
            resources={"nvidia.com/gpu": 4},
        )
    )
    assert spec["schedulerName"] == "volcano"
    assert len(spec["tolerations"]) == 2
    [container] = spec["containers"]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["image"] == "registry/nccl:2.21"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}


def test_laid_over() -> None:
    below = {"a": {"b": 1, "c": 2}, "l": [1], "n": [{"name": "x", "v": 1}]}
    over = {"a": {"b": 3}, "l": [2], "n": [{"name": "x", "w": 2}, {"name": "y"}], "z": 0}
    assert laid_over(below, over) == {
        "a": {"b": 3, "c": 2},
        "l": [1, 2],
        "n": [{"name": "x", "v": 1, "w": 2}, {"name": "y"}],
        "z": 0,
    }
    assert below["n"] == [{"name": "x", "v": 1}]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("nccl", "a mapping with an image"),
        ({}, "with an image"),
        ({"image": "a b"}, "with an image"),
        ({"image": "a", "gpus": 8}, "gpus: wanted image"),
        ({"image": "a", "namespace": "-x"}, "namespace: wanted"),
        ({"image": "a", "worker": [1]}, "worker: wanted a mapping"),
        ({"image": "a", "resources": 8}, "resources: wanted a mapping"),
        ({"image": "a", "labels": "queue"}, "labels: wanted a mapping"),
    ],
)
def test_settings_that_are_refused(value: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_settings(value)


def test_pods_are_named_by_their_nodes() -> None:
    text = (
        "# commcheck: pod j-worker-1 n1.example\n# commcheck: pod j-worker-10 n2\n"
        "on j-worker-1 device\nj-worker-10:7:7 [0] NCCL INFO\nmy-j-worker-1 j-worker-11\n"
    )
    said = on_hosts(text, {"n2": "second"})
    assert "on n1 device\nsecond:7:7 [0]" in said
    assert "my-j-worker-1 j-worker-11" in said
    assert "commcheck" not in said
    assert on_hosts("nothing", {}) == "nothing"


# --- in the engine ------------------------------------------------------------------------------


def member(name: str, **programs: str) -> Member:
    variables = {
        "commcheck_launcher": "mpijob",
        "commcheck_launch_host": "head",
        "commcheck_mpijob": SETTINGS,
        "commcheck_mpi_interface": "eth0",
        "ansible_kubectl_context": "prod",
        "ansible_kubectl_namespace": "not-this",
    }
    host = Host(name, variables)
    machine = Machine(name, "gpu-roce", f"{name.upper()}.example",
                      accelerators=tuple(Accelerator(at, "nvidia") for at in range(8)))  # fmt: skip
    return Member(host=host, machine=machine, site=site_of(host, "gpu-roce"), address=name,
                  programs=programs)  # fmt: skip


def launched(shape: str, *hosts: str, head: Member) -> tuple[str, ...]:
    members = {name: member(name) for name in hosts}
    job = collective_job(shape)  # type: ignore[arg-type] # of a table
    [part] = job.launch(Run(hosts), {**members, "head": head}, Limits())
    assert part.host == "head"
    return part.requests[0].command.argv


def test_a_run_of_the_engine_is_a_job_on_its_nodes() -> None:
    words = launched("pairs", "g1", "g2", head=member("head", kubectl="/usr/bin/kubectl"))
    assert words[6:] == ("/usr/bin/kubectl", "--context=prod", "--namespace=bench")
    found = json.loads(words[4])
    jsonschema.validate(found, SCHEMA)
    launcher = found["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    said = " ".join(launcher["command"])
    assert said.startswith("mpirun --allow-run-as-root -np 16 --map-by ppr:8:node --bind-to none")
    assert "-x NCCL_DEBUG=INFO" in said
    assert "all_gather_perf -b 64M" in said
    terms = worker(found)["affinity"]["nodeAffinity"]
    assert "g1.example" in json.dumps(terms)


def test_one_node_is_a_job_too() -> None:
    words = launched("node", "g1", head=member("head", kubectl="kubectl"))
    assert json.loads(words[4])["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 1
    assert "-np" in words[4]


def test_what_a_launch_lacks() -> None:
    with pytest.raises(CommandMissing, match="head has no kubectl"):
        launched("pairs", "g1", "g2", head=member("head"))
    bare = member("g1", kubectl="kubectl")
    host = Host("g1", {"commcheck_launcher": "mpijob"})
    without = Member(host=host, machine=bare.machine, site=site_of(host, "gpu-roce"), address="g1")
    job = collective_job("node")
    with pytest.raises(Unjudgeable, match="names no image"):
        job.launch(Run(("g1",)), {"g1": without}, Limits())
