"""Settings in manifests: commands of containers, ConfigMaps, and what holds none."""

from __future__ import annotations

import json

import pytest

from commcheck.errors import UsageError
from commcheck.frameworks import documents
from commcheck.frameworks.settings import Settings


def read(text: str, file: str = "job.yaml") -> tuple[Settings, ...]:
    return documents.read(text, file)


JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llm}
spec:
  pytorchReplicaSpecs:
    Master: &role
      template:
        spec:
          containers:
          - name: pytorch
            command: COMMAND
            env: [{name: TP, value: "4"}, {name: CUDA_DEVICE_MAX_CONNECTIONS, value: "8"}]
    Worker:
      template:
        spec:
          containers:
          - name: pytorch
            command: COMMAND
            env: [{name: TP, value: "4"}, {name: CUDA_DEVICE_MAX_CONNECTIONS, value: "8"}]
"""
WORDS = (
    "[torchrun, --nnodes=2, --nproc_per_node=8, pretrain_gpt.py,"
    " --tensor-model-parallel-size, $TP, --overlap-grad-reduce]"
)
KUBELET = WORDS.replace("$TP", "$(TP)")
SHELL = (
    '[bash, -lc, "cd /work\\ntorchrun --nnodes=2 --nproc_per_node=8 pretrain_gpt.py \\\\\\n'
    '  --tensor-model-parallel-size ${TP} --overlap-grad-reduce"]'
)


@pytest.mark.parametrize("command", [WORDS, KUBELET, SHELL])
def test_the_command_of_a_container_counts_once_for_all_its_pods(command: str) -> None:
    (one,) = read(JOB.replace("COMMAND", command))
    assert (one.framework, one.ranks) == ("megatron", 16)
    assert one.values["tensor_model_parallel_size"].value == 4.0
    assert one.values["overlap_grad_reduce"].value is True
    assert one.where.startswith("job.yaml (llm/Master/pytorch)")
    assert one.environ is not None
    assert one.environ["CUDA_DEVICE_MAX_CONNECTIONS"].value == "8"


def test_variables_from_a_map() -> None:
    env = 'env: [{name: TP, value: "4"}, {name: CUDA_DEVICE_MAX_CONNECTIONS, value: "8"}]'
    text = JOB.replace("COMMAND", WORDS).replace(env, "envFrom: [{configMapRef: {name: vars}}]")
    (one,) = read(text)
    assert one.environ is not None
    assert not one.environ["CUDA_DEVICE_MAX_CONNECTIONS"].is_known
    vars_ = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars}\ndata: {TP: '2'}\n"
    (one,) = read(f"{text}\n---\n{vars_}")
    assert one.environ == {}
    assert one.values["tensor_model_parallel_size"].value == 2.0


def test_a_list_as_kubectl_prints_it_is_read() -> None:
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "w-0"}}
    args = ["--ddp_bucket_cap_mb", "200"]
    pod |= {"spec": {"containers": [{"name": "t", "args": ["python", "train.py", *args]}]}}
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod]})
    (one,) = read(text, "pods.json")
    assert (one.framework, one.values["bucket_cap_mb"].value) == ("ddp", 200.0)


MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  README: nothing of interest
  ds_config.json: |
    {"zero_optimization": {"stage": 3, "reduce_bucket_size": 1000000}}
  accelerate.yaml: |
    distributed_type: FSDP
    fsdp_config: {fsdp_forward_prefetch: true}
---
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: rj}
spec: {entrypoint: "python train.py --deepspeed /etc/settings/ds_config.json"}
"""


def test_files_in_a_map_and_the_entrypoint_of_a_ray_job() -> None:
    found = read(MAP)
    assert [one.framework for one in found] == ["deepspeed", "fsdp"]
    assert found[0].at("stage").startswith("job.yaml: settings/ds_config.json")
    elsewhere = read(MAP.replace("ds_config.json: |", "other: |"))[-1].elsewhere
    assert elsewhere == "/etc/settings/ds_config.json"


def test_a_manifest_without_settings_says_where_it_looked() -> None:
    with pytest.raises(UsageError, match="in the commands of its containers"):
        read(JOB.replace("COMMAND", "[./start.sh]"))
    with pytest.raises(UsageError, match="a second document"):
        read("a: 1\n---\nb: 2\n")
