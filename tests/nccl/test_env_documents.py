"""Manifests: what is set elsewhere, who the ranks are, and what operators add to their pods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commcheck.errors import UsageError
from commcheck.model import Kind
from commcheck.nccl.environment.documents import declared
from commcheck.nccl.environment.model import effective, untold
from commcheck.nccl.offline_env import analyse_env


def values(text: str) -> list[dict[str, str]]:
    """The variables of each rank of a document."""
    found = (effective(one.layers)[0] for one in declared(text, "f"))
    return [{name: setting.value for name, setting in each.items()} for each in found]


def judged(text: str, folder: Path) -> dict[str, str]:
    """Reasons by rule, of what is wrong in a file."""
    (folder / "job.yaml").write_text(text)
    found = analyse_env([str(folder / "job.yaml")]).results[0].findings
    return {each.verdict.rule: each.verdict.reason for each in found if each.verdict.cause}


JOB = """
kind: PyTorchJob
metadata: {name: llm}
spec:
  pytorchReplicaSpecs:
    Master:
      template: {spec: {hostIPC: true, containers: [{name: pytorch, env: [
        {name: NCCL_ALGO, value: Ring}, {name: NCCL_IB_GID_INDEX, value: "3"}]}]}}
    Worker:
      template: {spec: {hostIPC: true, containers: [{name: pytorch, WORKER}]}}
---
kind: ConfigMap
metadata: {name: nccl}
data: {gid: "3"}
"""
OTHER = "envFrom: [{configMapRef: {name: elsewhere}}]"
BY_KEY = (
    "env: [{name: NCCL_IB_GID_INDEX, valueFrom: {configMapKeyRef: {name: nccl, key: gid}}},"
    " {name: NCCL_ALGO, valueFrom: {configMapKeyRef: {name: elsewhere, key: algo}}}]"
)


@pytest.mark.parametrize("worker", [OTHER, BY_KEY])
def test_what_stands_elsewhere_is_no_difference_between_ranks(worker: str, tmp_path: Path) -> None:
    assert "ENV-001" not in judged(JOB.replace("WORKER", worker), tmp_path)


def test_ranks_that_differ_are_told_by_their_role(tmp_path: Path) -> None:
    reason = judged(JOB.replace("WORKER", "env: []"), tmp_path)["ENV-001"]
    assert "(llm/Master/pytorch)" in reason
    assert "(llm/Worker/pytorch)" in reason


def test_a_key_of_a_map_in_the_same_file_is_read() -> None:
    (_, worker) = values(JOB.replace("WORKER", BY_KEY))
    assert worker == {"NCCL_IB_GID_INDEX": "3"}
    (_, one) = declared(JOB.replace("WORKER", BY_KEY), "f")
    assert set(untold(one.layers)) == {"NCCL_ALGO"}
    assert [each.partition(": ")[2] for each in one.unread] == ["valueFrom of NCCL_ALGO"]


def test_a_map_in_a_list_is_read_as_well() -> None:
    job, _, of_map = JOB.replace("WORKER", BY_KEY).partition("---\n")
    items = "".join(
        f"\n- {text.strip()}".replace("\n", "\n  ").replace("  - ", "- ", 1)
        for text in (job, of_map)
    )
    assert values(f"kind: List\nitems:{items}\n")[1] == {"NCCL_IB_GID_INDEX": "3"}


def test_a_pod_s_own_address_is_nothing_that_counts() -> None:
    text = "spec: {containers: [{name: t, env: [{name: POD_IP, valueFrom: {fieldRef: {}}}]}]}"
    assert declared(text, "f")[0].unread == ()


@pytest.mark.parametrize("text", ["${NCCL_DEBUG:-WARN}", "$LEVEL", "{{}}"])
def test_a_value_that_somebody_fills_in_is_not_judged(text: str, tmp_path: Path) -> None:
    compose = "services: {t: {environment: {NCCL_NET: IB, NCCL_DEBUG: 'TEXT'}}}"
    found = judged(compose.replace("TEXT", text), tmp_path)
    assert ("ENV-051" in found) is (text == "{{}}")
    (tmp_path / "x.yaml").write_text("services: {t: {environment: [NCCL_DEBUG=$X, NCCL_NET]}}")
    with pytest.raises(UsageError, match="what NCCL_DEBUG, NCCL_NET is set to stands elsewhere"):
        analyse_env([str(tmp_path / "x.yaml")])


def test_a_reference_is_filled_in_as_the_kubelet_does() -> None:
    text = """
spec: {containers: [{name: t, env: [
  {name: RAIL, value: mlx5_3}, {name: NCCL_IB_HCA, value: "=$(RAIL)"},
  {name: NCCL_SOCKET_IFNAME, value: $(NOWHERE)}],
  args: [bash, -c, "export NCCL_NET=$(ls); train"]}]}
"""
    (one,) = declared(text, "f")
    assert values(text) == [{"NCCL_IB_HCA": "=mlx5_3"}]
    assert set(untold(one.layers)) == {"NCCL_SOCKET_IFNAME", "NCCL_NET"}


def test_what_a_command_computes_hides_the_container_s_value() -> None:
    text = """
spec: {containers: [{name: t, env: [{name: NCCL_SOCKET_IFNAME, value: eth0}],
  command: [bash, -c, "export NCCL_SOCKET_IFNAME=$(ip route | head -1); train"]}]}
"""
    assert values(text) == [{}]


ALONE = [
    "kind: TrainJob\nspec: {trainer: {numNodes: 2, env: [{name: NCCL_NET, value: IB}]}}",
    "spec: {templates: [{name: t, container: {image: x, env: [{name: NCCL_NET, value: IB}]}}]}",
    "spec: {templates: [{name: t, container: {args: [bash, -c, 'export NCCL_NET=IB; x'],"
    " env: [{name: A, value: b}]}}]}",
    "worker: {containerEnv: [{name: NCCL_NET, value: IB}]}",
    '{"containerDefinitions": [{"environment": [{"name": "NCCL_NET", "value": "IB"}]}]}',
    "kind: RayJob\nspec: {runtimeEnvYAML: 'env_vars: {NCCL_NET: IB}'}",
    "kind: RayService\nspec: {serveConfigV2: 'applications: [{runtime_env: {env_vars:"
    " {NCCL_NET: IB}}}]'}",
]


@pytest.mark.parametrize("text", ALONE)
def test_variables_outside_of_a_pod_s_containers(text: str) -> None:
    assert values(text) == [{"NCCL_NET": "IB"}]


def test_steps_of_a_workflow_are_no_ranks_of_one_job(tmp_path: Path) -> None:
    step = "{name: NAME, container: {env: [{name: NCCL_NET, value: VALUE}]}}"
    steps = [
        step.replace("NAME", name).replace("VALUE", value)
        for name, value in (("a", "IB"), ("b", "Socket"))
    ]
    assert "ENV-001" not in judged(f"spec: {{templates: [{', '.join(steps)}]}}", tmp_path)


def test_what_only_prepares_a_pod_is_no_rank() -> None:
    text = """
spec:
  initContainers: [{name: i, env: [{name: NCCL_NET, value: Socket}]}]
  containers: [{name: t, env: [{name: NCCL_NET, value: IB}]}]
"""
    assert values(text) == [{"NCCL_NET": "IB"}]


SHM = """
kind: Pod
spec:
  containers: [{name: t, volumeMounts: [{name: s, mountPath: /dev/shm/}]}]
  volumes: [{name: data, emptyDir: {sizeLimit: 1Mi}}, {name: s, VOLUME}]
"""


@pytest.mark.parametrize(
    ("volume", "size"),
    [
        ("emptyDir: {medium: Memory}", -1),
        ("emptyDir: {medium: Memory, sizeLimit: 128Mi}", 128 << 20),
        ("emptyDir: {sizeLimit: 1.5G}", 1_500_000_000),
        ("emptyDir: {sizeLimit: 268435456}", 256 << 20),
        ("emptyDir: {medium: Memory, sizeLimit: '{{size}}'}", -1),
        ("hostPath: {path: /dev/shm}", -1),
    ],
)
def test_the_size_of_shared_memory(volume: str, size: int) -> None:
    (one,) = declared(SHM.replace("VOLUME", volume), "f")
    assert one.shm_bytes == size


def test_a_small_limit_of_shared_memory_is_told(tmp_path: Path) -> None:
    text = SHM.replace("VOLUME", "emptyDir: {medium: Memory, sizeLimit: 128Mi}")
    assert "has a /dev/shm of 128 MiB" in judged(text, tmp_path)["ENV-064"]


RAY = """
kind: RayCluster
metadata: {name: rc}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: head}]}}}
  workerGroupSpecs:
  - groupName: train
    template: {spec: {containers: [
      {name: ray, env: [{name: NCCL_NET, value: IB}], resources: {limits: {nvidia.com/gpu: 8}}},
      {name: beside, resources: {limits: {nvidia.com/gpu: 8}}}]}}
  - groupName: serve
    template: {spec: {containers: [{name: ray, env: [{name: NCCL_NET, value: Socket}],
      resources: {limits: {nvidia.com/gpu: 8}}}]}}
"""


def test_kuberay_gives_its_own_container_shared_memory() -> None:
    found = {one.name: one.shm_bytes for one in declared(RAY, "f")}
    assert found == {"rc/train/ray": -1, "rc/train/beside": 64 << 20, "rc/serve/ray": -1}


def test_groups_of_a_ray_cluster_are_no_ranks_of_one_job(tmp_path: Path) -> None:
    text = RAY.replace("      {name: beside, resources: {limits: {nvidia.com/gpu: 8}}}", "")
    assert "ENV-001" not in judged(text, tmp_path)


def test_a_pass_names_what_it_does_not_know(tmp_path: Path) -> None:
    text = "spec: {hostIPC: true, containers: [{name: t, env: [{name: NCCL_DEBUG, value: WARN}]}]}"
    more = text.replace("WARN}", "WARN}, {name: NCCL_ALGO, valueFrom: {secretKeyRef: {name: s}}}")
    (tmp_path / "pod.yaml").write_text(more)
    analysis = analyse_env([str(tmp_path / "pod.yaml")])
    passed = [
        each.verdict for each in analysis.results[0].findings if each.verdict.kind is Kind.NONE
    ]
    assert "NCCL_ALGO" in passed[0].reason
    assert any(
        note.startswith("set to what is not known here: NCCL_ALGO") for note in analysis.notes
    )


DESCRIBED = """\
Name:             llm-worker-0
Namespace:        ml
Node:             gpu-01/192.0.2.11
Labels:           app=llm
Init Containers:
  prepare:
    Image:         busybox
    Environment:
      NCCL_NET:  Socket
Containers:
  pytorch:
    Container ID:  containerd://0123
    Port:          23456/TCP
    Command:
      bash
      -c
    Args:
      export NCCL_IB_TC=106; torchrun train.py
    State:          Running
      Started:      Mon, 30 Nov 2026 08:00:00 +0000
    Ready:          True
    Limits:
      nvidia.com/gpu:  8
    Environment Variables from:
      nccl-site  ConfigMap  Optional: false
    Environment:
      NCCL_IB_DISABLE:    1
      NCCL_IB_HCA:        =mlx5_0:1,mlx5_1:1
      NCCL_IB_GID_INDEX:  <set to the key 'gid' of config map 'nccl'>  Optional: false
      HOST_IP:             (v1:status.hostIP)
    Mounts:
      /data from data (ro)
      /dev/shm from shm (rw)
  sidecar:
    Environment:  <none>
Conditions:
  Type              Status
  Ready             True
Volumes:
  data:
    Type:       PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)
  shm:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  LIMIT
QoS Class:       Burstable
Events:          <none>
"""


@pytest.mark.parametrize(("limit", "size"), [("<unset>", -1), ("128Mi", 128 << 20)])
def test_what_kubectl_describes_is_read(limit: str, size: int) -> None:
    text = DESCRIBED.replace("LIMIT", limit)
    (one,) = declared(text, "f")
    assert (one.name, one.gpus, one.shm_bytes) == ("llm-worker-0/pytorch", 8, size)
    assert values(text) == [
        {"NCCL_IB_TC": "106", "NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1"}
    ]
    assert set(untold(one.layers)) == {"NCCL_IB_GID_INDEX"}
    assert any("envFrom nccl-site" in each for each in one.unread)


def test_of_a_described_pod_nobody_knows_whether_it_shares_its_node_s_memory() -> None:
    (one,) = declared(DESCRIBED.replace("      /dev/shm from shm (rw)\n", ""), "f")
    assert one.shm_bytes is None
    assert not one.lacks_rdma  # nor whether it is privileged


def test_two_described_pods_are_two(tmp_path: Path) -> None:
    other = DESCRIBED.replace("worker-0", "worker-1").replace("=mlx5_0:1,mlx5_1:1", "=mlx5_0:1")
    reason = judged(f"{DESCRIBED}\n\n{other}", tmp_path)["ENV-001"]
    assert "(llm-worker-0/pytorch)" in reason


POD = """
- kind: Pod
  metadata: {name: NAME, labels: {LABEL}}
  spec: {hostIPC: true, containers: [{name: t, env: [{name: NCCL_NET, value: VALUE}]}]}
"""
LABELS = ("training.kubeflow.org/job-name", "volcano.sh/job-name", "ray.io/group", "app", "")


@pytest.mark.parametrize("label", LABELS)
def test_pods_of_two_jobs_are_not_compared(label: str, tmp_path: Path) -> None:
    def pod(name: str, job: str, value: str) -> str:
        told = f"{label}: {job}" if label else ""
        return POD.replace("NAME", name).replace("LABEL", told).replace("VALUE", value)

    two = "kind: List\nitems:" + pod("a-0", "a", "IB") + pod("b-0", "b", "Socket")
    # Without a word on jobs, whoever gives several pods means one.
    assert ("ENV-001" in judged(two, tmp_path)) is (label in ("app", ""))
    one = "kind: List\nitems:" + pod("a-0", "a", "IB") + pod("a-1", "a", "Socket")
    assert "ENV-001" in judged(one, tmp_path)


def test_two_jobs_in_one_file_are_not_compared(tmp_path: Path) -> None:
    text = JOB.replace("WORKER", "env: [{name: NCCL_ALGO, value: Ring}]").partition("---")[0]
    text = text.replace(', {name: NCCL_IB_GID_INDEX, value: "3"}', "")
    other = text.replace("Ring", "Tree").replace("llm", "other")
    assert "ENV-001" not in judged(f"{text}\n---\n{other}", tmp_path)


BARE = """
kind: Pod
metadata: {name: w-0, annotations: {NOTE: x}}
spec:
  hostIPC: true
  containers: [{name: t, env: [{name: NCCL_IB_HCA, value: mlx5}, ENV], SECURITY
    resources: {limits: {nvidia.com/gpu: 8, memory: 1Ti, RESOURCE}}}, {name: sidecar}]
  volumes: [{name: d, hostPath: {path: PATH}}]
"""
NOTHING = {"NOTE": "a", "ENV": "", "SECURITY": "", "RESOURCE": "cpu: 8", "PATH": "/data"}


def bare(**given: str) -> str:
    text = BARE
    for place, word in (NOTHING | given).items():
        text = text.replace(place, word)
    return text


def test_a_pod_that_is_given_no_rdma_device(tmp_path: Path) -> None:
    reason = judged(bare(), tmp_path)["ENV-066"]
    assert reason.startswith("NCCL_IB_HCA=mlx5 (")
    assert reason.endswith(
        "nothing in the pod asks for an RDMA device: between hosts NCCL takes TCP"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"RESOURCE": "rdma/hca: 1"},
        {"RESOURCE": "nvidia.com/hostdev: 1"},
        {"RESOURCE": "vpc.amazonaws.com/efa: 32"},
        {"SECURITY": "securityContext: {privileged: true},"},
        {"PATH": "/dev/infiniband"},
        {"PATH": "/dev"},
        {"NOTE": "k8s.v1.cni.cncf.io/networks"},
        {"ENV": "{name: NVIDIA_MOFED, value: enabled}"},
        {"ENV": "{name: NCCL_IB_DISABLE, value: '1'}"},
        {"ENV": "{name: NCCL_NET, value: Socket}"},
        {"RESOURCE": "huawei.com/Ascend910: 8", "NOTE": "a"},
    ],
)
def test_a_pod_that_may_have_an_rdma_device(given: dict[str, str], tmp_path: Path) -> None:
    assert "ENV-066" not in judged(bare(**given), tmp_path)


def test_of_a_pod_that_is_made_elsewhere_nothing_is_lacking() -> None:
    text = "spec: {trainer: {env: [{name: NCCL_IB_HCA, value: mlx5}], resources: {limits: GPU}}}"
    (one,) = declared(text.replace("GPU", "{nvidia.com/gpu: 8}"), "f")
    assert (one.gpus, one.lacks_rdma) == (8, False)


def test_without_a_word_on_rdma_nothing_is_missed(tmp_path: Path) -> None:
    assert "ENV-066" not in judged(bare().replace("NCCL_IB_HCA", "NCCL_DEBUG"), tmp_path)
    claimed = bare().replace("cpu: 8}", "cpu: 8}, claims: [{name: nic}]")
    assert "ENV-066" not in judged(claimed, tmp_path)


def test_the_last_of_thousands_of_pods_counts_and_aliases_cost_nothing() -> None:
    pods = [
        {"kind": "Pod", "metadata": {"name": f"w-{number}", "uid": [[[]]] * 40},
         "spec": {"containers": [{"env": [{"name": "NCCL_NET", "value": "IB"}]}]}}
        for number in range(2000)
    ]  # fmt: skip
    assert len(declared(json.dumps({"items": pods}), "f")) == 2000
    bomb = "a0: &a0 [{env: {NCCL_NET: IB}}]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))
    assert len(declared(bomb, "f")) == 1


RINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: rings-config-llm}
data:
  hccl.json: '{"status": "completed", "server_list": [{"server_id": "node-01", "device": [
    {"device_id": "0", "device_ip": "192.0.2.1", "rank_id": "0"},
    {"device_id": "1", "device_ip": "192.0.2.1", "rank_id": "1"}]}]}'
---
kind: Pod
spec: {hostIPC: true, containers: [{name: t, env: [{name: HCCL_CONNECT_TIMEOUT, value: "600"}]}]}
"""


def test_a_rank_table_in_a_map_is_read_beside_the_pods(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(RINGS)
    analysis = analyse_env([str(tmp_path / "job.yaml")])
    reasons = [each.verdict.reason for each in analysis.results[0].findings if each.verdict.cause]
    assert any("device_ip 192.0.2.1 stands there 2 times" in reason for reason in reasons)
    (one,) = analysis.facts["environments"]  # type: ignore[misc] # one of a list
    assert one["settings"].keys() == {"HCCL_CONNECT_TIMEOUT"}  # type: ignore[has-type]


MOUNTED = """
kind: Pod
spec:
  containers: [{name: t, env: [{name: NCCL_NET, value: IB}], volumeMounts: [{name: v, MOUNT}]}]
  volumes: [{name: v, configMap: {name: nccl, ITEMS}}]
---
kind: ConfigMap
metadata: {name: MAP}
data: {nccl.conf: "NCCL_NET=Socket\\nNCCL_IB_TC=106\\n", other: "NCCL_IB_TC=26"}
"""


@pytest.mark.parametrize(
    ("mount", "items", "want"),
    [
        ("mountPath: /etc/nccl.conf, subPath: nccl.conf", "", "106"),
        ("mountPath: /etc/", "", "106"),
        ("mountPath: /etc/nccl.conf, subPath: c", "items: [{key: other, path: c}]", "26"),
        ("mountPath: /opt", "", None),
        ("mountPath: /etc/nccl.conf", "", None),  # a folder of that name
    ],
)
def test_a_map_that_is_mounted_as_nccl_s_file(mount: str, items: str, want: str | None) -> None:
    text = MOUNTED.replace("MOUNT", mount).replace("ITEMS", items).replace("MAP", "nccl")
    expected = {"NCCL_NET": "IB"} | ({"NCCL_IB_TC": want} if want else {})
    assert values(text) == [expected]


def test_a_map_elsewhere_that_is_mounted_as_nccl_s_file_is_named() -> None:
    text = MOUNTED.replace("MOUNT", "mountPath: /etc").replace("ITEMS", "").replace("MAP", "x")
    (one,) = declared(text, "f")
    assert one.unread == ("f (t): /etc/nccl.conf of nccl",)
