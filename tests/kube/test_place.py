"""What the inventory says of pods and nodes, and the groups that a label fills."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from commcheck.errors import InventoryError
from commcheck.inventory.endpoint import endpoint
from commcheck.inventory.load import load
from commcheck.inventory.selected import read
from commcheck.kube.place import Place
from commcheck.model import Host
from tests.kube.api import Cluster, Pod

KUBECTL = {"ansible_connection": "kubernetes.core.kubectl"}


def place(name: str, **variables: object) -> Place:
    found = endpoint(Host(name, {**KUBECTL, **variables})).place
    assert found is not None
    return found


def test_the_variables_of_ansible() -> None:
    found = place(
        "t0",
        ansible_kubectl_pod="train-0",
        ansible_kubectl_container="main",
        ansible_kubectl_namespace="ml",
        ansible_kubectl_context="prod",
        ansible_kubectl_kubeconfig="/etc/kube/config",
        ansible_kubectl_server="https://10.0.0.1:6443",
        ansible_kubectl_ca_cert="/etc/ca",
        ansible_kubectl_client_cert="/etc/cert",
        ansible_kubectl_client_key="/etc/key",
        ansible_kubectl_validate_certs=True,
    )
    assert found.exec_words("sh", "-c", "x y") == (
        "kubectl",
        "--kubeconfig=/etc/kube/config",
        "--context=prod",
        "--server=https://10.0.0.1:6443",
        "--certificate-authority=/etc/ca",
        "--client-certificate=/etc/cert",
        "--client-key=/etc/key",
        "--namespace=ml",
        "exec",
        "-i",
        "train-0",
        "--container=main",
        "--",
        "sh",
        "-c",
        "x y",
    )


def test_a_pod_is_the_host_by_default_and_a_node_is_none() -> None:
    assert place("train-0").exec_words("sh") == ("kubectl", "exec", "-i", "train-0", "--", "sh")
    assert endpoint(Host("t0", {**KUBECTL, "ansible_kubectl_pod": "p"})).address == "p"
    node = place("gpu_07", commcheck_kubectl_node="gpu-07")
    assert (node.node, node.pod) == ("gpu-07", "")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"ansible_kubectl_token": "s3cret"}, "put it into a kubeconfig"),
        ({"ansible_kubectl_extra_args": "-v 9"}, "is not supported"),
        ({"ansible_kubectl_verify_ssl": False}, "certificate is always verified"),
        ({"ansible_kubectl_pod": "--help"}, "is no name of a thing"),
        ({"ansible_kubectl_pod": "A_b"}, "is no name of a thing"),
        ({"ansible_kubectl_namespace": "a b"}, "is no name of a thing"),
        ({"ansible_kubectl_context": "-x"}, "is no name of a context"),
        ({"ansible_kubectl_host": "ftp://x"}, "is no address of an API server"),
        ({"commcheck_kubectl_debug_image": "a b"}, "is no image"),
    ],
)
def test_what_is_refused(variables: dict[str, object], says: str) -> None:
    with pytest.raises(InventoryError, match=says) as caught:
        place("train-0", **variables)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(InventoryError, match="'Some_Host' is no name of a pod"):
        place("Some_Host")


def test_only_a_pod_has_a_container_log(tmp_path: Path) -> None:
    (tmp_path / "i.yaml").write_text(
        "all: {hosts: {a: {ansible_connection: kubectl},"
        " b: {ansible_connection: kubectl, commcheck_kubectl_node: b},"
        " c: {ansible_connection: kubectl, commcheck_nccl_log: /log/nccl.*}, d: }}"
    )
    hosts = {each.name: each for each in load(["i.yaml"], cwd=tmp_path).hosts}
    logs = {name: host.variables.get("commcheck_nccl_log") for name, host in hosts.items()}
    assert logs == {"a": "kubectl logs", "b": None, "c": "/log/nccl.*", "d": None}
    assert str(hosts["a"].origin_of("commcheck_nccl_log")) == "default of pods"
    with pytest.raises(InventoryError, match="only a pod has 'kubectl logs'"):
        endpoint(Host("x", {"commcheck_nccl_log": "kubectl logs"}))


# --- labels -------------------------------------------------------------------------------------


def listed(*items: dict[str, object]) -> bytes:
    return json.dumps({"items": items}).encode()


def test_pods_in_natural_order_and_what_is_no_host() -> None:
    pods = [Pod(f"train-{n}") for n in (10, 2)] + [Pod("train-1", phase="Succeeded")]
    going = Pod("train-0").document
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = read(listed(*(each.document for each in pods), going), "pods")
    assert [each.name for each in found] == ["train-0", "train-1", "train-2", "train-10"]
    assert [each.over for each in found] == [
        "it is being deleted",
        "its phase is Succeeded",
        "",
        "",
    ]
    assert found[2].variables == {
        "ansible_connection": "kubectl",
        "ansible_kubectl_pod": "train-2",
        "ansible_kubectl_namespace": "default",
    }


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"[]", b"{}", b'{"items": [{}]}', b'{"items": 3}', b"\xff", b"No resources"),
        b'{"items": ' + b"[" * 50_000,
    ],
)
def test_an_answer_that_is_no_list_is_refused(answer: bytes) -> None:
    with pytest.raises(InventoryError, match="printed no list of pods"):
        read(answer, "pods")


def test_a_name_that_is_none_is_refused() -> None:
    pod = Pod("--all").document
    with pytest.raises(InventoryError):
        read(listed(pod), "pods")


def test_groups_of_an_inventory_are_filled(
    cluster_of: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = cluster_of(
        Pod("train-0", "ml", {"app": "train", "tier": "a"}),
        Pod("train-1", "ml", {"app": "train", "tier": "a"}),
        Pod("web", "ml", {"app": "web"}),
        nodes=["n1", "n2"],
    )
    cluster.nodes["n2"] = {"gpu": "yes"}
    (tmp_path / "i.yaml").write_text(
        f"""
all:
  vars: {{ansible_kubectl_kubeconfig: {cluster.kubeconfig}, tier: a, ansible_kubectl_namespace: ml}}
  children:
    train: {{vars: {{commcheck_kubectl_selector: "app=train,tier={{{{ tier }}}}"}}}}
    nodes:
    none: {{vars: {{commcheck_kubectl_selector: app=none}}}}
"""
    )
    for folder, name, text in (
        ("group_vars", "nodes", "commcheck_kubectl_node_selector: gpu=yes"),
        ("group_vars", "train", "ansible_kubectl_container: main"),
        ("host_vars", "train-1", "commcheck_platform: gpu-ib"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.yaml").write_text(text)
    found = load(["i.yaml"], cwd=tmp_path)
    assert found.groups["train"] == ("train-0", "train-1")
    assert found.groups["nodes"] == ("n2",)
    assert found.groups["ungrouped"] == ()
    by_name = {host.name: host for host in found.hosts}
    assert by_name["train-1"].variables["commcheck_platform"] == "gpu-ib"
    place = endpoint(by_name["train-0"]).place
    assert place is not None
    assert (place.pod, place.container, place.cluster.namespace) == ("train-0", "main", "ml")
    assert "no pods match 'app=none'" in found.warnings[0]


def test_pods_of_one_name_in_two_namespaces_are_not_one_host(
    cluster_of: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = cluster_of(
        *(Pod(f"train-{number}", name, {"app": "x"}) for name in "ab" for number in range(3))
    )
    text = f"""
all: {{vars: {{ansible_kubectl_kubeconfig: {cluster.kubeconfig}}}}}
one: {{vars: {{commcheck_kubectl_selector: app=x, ansible_kubectl_namespace: a}}}}
two: {{vars: {{commcheck_kubectl_selector: app=x, ansible_kubectl_namespace: NAME}}}}
"""
    (tmp_path / "i.yaml").write_text(text.replace("NAME", "b"))
    with pytest.raises(InventoryError) as caught:
        load(["i.yaml"], cwd=tmp_path)
    (problem,) = caught.value.problems
    assert "train-0 and 2 more: other pods have that name in group one (a) than here (b)" in problem
    (tmp_path / "i.yaml").write_text(text.replace("NAME", "a"))
    assert load(["i.yaml"], cwd=tmp_path).groups["two"] == ("train-0", "train-1", "train-2")


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        ("--all", "is no label selector"),
        ("app=train", "i.yaml:2:.*the cluster forbids it.*a Role with"),
    ],
)
def test_a_label_that_cannot_be_asked_stops_before_any_host(
    cluster_of: Callable[..., Cluster], tmp_path: Path, selector: str, says: str
) -> None:
    cluster = cluster_of()
    cluster.forbidden = {"pods"}
    (tmp_path / "i.yaml").write_text(
        "train:\n"
        f"  vars: {{commcheck_kubectl_selector: {selector},"
        f" ansible_kubectl_kubeconfig: {cluster.kubeconfig}}}\n"
    )
    with pytest.raises(InventoryError, match=says):
        load(["i.yaml"], cwd=tmp_path)
