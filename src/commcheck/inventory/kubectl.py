"""What the inventory says of a pod or a node, in the variables of Ansible's ``kubectl`` connection.

Source: kubernetes.core.kubectl of collection kubernetes.core 2.4 to 6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn, Protocol, TypeVar

from commcheck.kube.place import CONTAINER_LOG, Cluster, Place, is_image, is_name
from commcheck.lazy import regex

T = TypeVar("T")

# Where several names mean one thing, the first that is set counts.
_FILES: Final = {
    "kubeconfig": ("ansible_kubectl_kubeconfig", "ansible_kubectl_config"),
    "ca_file": ("ansible_kubectl_ssl_ca_cert", "ansible_kubectl_ca_cert"),
    "cert_file": ("ansible_kubectl_cert_file", "ansible_kubectl_client_cert"),
    "key_file": ("ansible_kubectl_key_file", "ansible_kubectl_client_key"),
}
_SERVER: Final = ("ansible_kubectl_host", "ansible_kubectl_server")
_SECRETS: Final = ("ansible_kubectl_password", "ansible_kubectl_token", "ansible_kubectl_api_key")
_REFUSED: Final = (
    *_SECRETS,
    "ansible_kubectl_username",
    "ansible_kubectl_user",
    "ansible_kubectl_extra_args",
    "ansible_kubectl_local_env_vars",
)
_VERIFY: Final = ("ansible_kubectl_verify_ssl", "ansible_kubectl_validate_certs")

POD: Final = "ansible_kubectl_pod"
CONTAINER: Final = "ansible_kubectl_container"
NAMESPACE: Final = "ansible_kubectl_namespace"
CONTEXT: Final = "ansible_kubectl_context"
NODE: Final = "commcheck_kubectl_node"
NCCL_LOG: Final = "commcheck_nccl_log"
IMAGE: Final = "commcheck_kubectl_debug_image"
SELECTOR: Final = "commcheck_kubectl_selector"
NODE_SELECTOR: Final = "commcheck_kubectl_node_selector"

VARIABLES: Final = frozenset(
    (
        *(name for names in _FILES.values() for name in names),
        *_SERVER,
        *_REFUSED,
        *_VERIFY,
        POD,
        CONTAINER,
        NAMESPACE,
        CONTEXT,
    )
)
"""The variables of Ansible that are read here."""

_CONTEXT: Final = regex(r"[A-Za-z0-9][\x21-\x7e]{0,252}")
_SERVER_URL: Final = regex(r"https?://[A-Za-z0-9.:\[\]_/-]{1,250}")
_FILE: Final = regex(r"[^\x00-\x1f]{1,1000}")


def by_itself(variables: Mapping[str, object]) -> Mapping[str, object]:
    """What holds for a pod where the inventory does not say: its log is that of its container."""
    connection = str(variables.get("ansible_connection", "")).rpartition(".")[2]
    is_pod = connection == "kubectl" and not variables.get(NODE)
    return {NCCL_LOG: CONTAINER_LOG} if is_pod and not variables.get(NCCL_LOG) else {}


class First(Protocol):
    """Reads the first of these variables that is set."""

    def __call__(self, names: tuple[str, ...], read: Callable[[object], T]) -> T | None:
        """None where none is. A value that ``read`` refuses is an ``InventoryError``."""


def place(host: str, first: First, wrong: Callable[[str, str, str], NoReturn]) -> Place:
    """The pod or node that a host is. Raises ``InventoryError``."""
    first(_VERIFY, _verifies)
    for name in _REFUSED:
        if first((name,), str):
            wrong(name, "is not supported; put it into a kubeconfig, and name that", "connection")
    node = first((NODE,), name_of)
    pod = "" if node else first((POD,), name_of)
    if pod is None:
        try:
            pod = name_of(host)
        except ValueError:
            wrong(POD, f"is not set, and {host!r} is no name of a pod", "connection")
    return Place(
        cluster=cluster(first),
        pod=pod,
        container=first((CONTAINER,), name_of) or "",
        node=node or "",
        image=first((IMAGE,), _image) or "",
    )


def cluster(first: First) -> Cluster:
    """The cluster that variables lead to."""
    return Cluster(
        **{name: first(names, _file) or "" for name, names in _FILES.items()},
        server=first(_SERVER, _server) or "",
        context=first((CONTEXT,), _context) or "",
        namespace=first((NAMESPACE,), name_of) or "",
    )


def name_of(value: object) -> str:
    """The name of a pod, container, namespace or node."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not is_name(text):
        raise ValueError("is no name of a thing in Kubernetes")
    return text


def _context(value: object) -> str:
    return _like(_CONTEXT, value, "is no name of a context")


def _server(value: object) -> str:
    return _like(_SERVER_URL, value, "is no address of an API server like https://10.0.0.1:6443")


def _verifies(value: object) -> bool:
    if str(value).lower() not in ("true", "yes", "1"):
        raise ValueError("is not supported: the API server's certificate is always verified")
    return True


def _image(value: object) -> str:
    if not is_image(value):
        raise ValueError("is no image")
    return value


def _file(value: object) -> str:
    return str(Path(_like(_FILE, value, "is no path of a file")).expanduser())


def _like(form: re.Pattern[str], value: object, why_not: str) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(why_not)
    return value
