"""Where a pod or a node is, and the words of ``kubectl`` that lead there. Pure."""

from __future__ import annotations

from typing import Final, TypeGuard

from commcheck.lazy import dataclass, regex

KUBECTL: Final = "kubectl"

CONTAINER_LOG: Final = "kubectl logs"
"""What ``commcheck_nccl_log`` says where the log is the one that the pod's container writes."""


# RFC 1123. No name can be taken for an option.
_NAME: Final = regex(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_IMAGE: Final = regex(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}")


def is_name(value: object) -> TypeGuard[str]:
    """True for the name of a pod, container, namespace or node."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_image(value: object) -> TypeGuard[str]:
    """True for a container's image."""
    return isinstance(value, str) and _IMAGE.fullmatch(value) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """An API server, an identity and a namespace. "" leaves it to the kubeconfig."""

    kubeconfig: str = ""
    context: str = ""
    server: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    namespace: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """``kubectl`` with what leads to this cluster."""
        options = {
            "kubeconfig": self.kubeconfig,
            "context": self.context,
            "server": self.server,
            "certificate-authority": self.ca_file,
            "client-certificate": self.cert_file,
            "client-key": self.key_file,
            "namespace": self.namespace,
        }
        return (KUBECTL, *(f"--{name}={value}" for name, value in options.items() if value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A container of a pod, or, where ``node`` is set, a node.

    ``image``: of the pod through which a node is looked at; it needs sleep and chroot.
    """

    cluster: Cluster
    pod: str = ""
    container: str = ""
    node: str = ""
    image: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.cluster.namespace}" if self.cluster.namespace else ""
        return f"node {self.node}" if self.node else f"pod {self.pod}{where}"

    @property
    def by_hand(self) -> str:
        """A command that shows what the cluster says of it."""
        what = ("describe", "node", self.node) if self.node else ("describe", "pod", self.pod)
        return " ".join((*self.cluster.words, *what))

    @property
    def trial(self) -> str:
        """A command that shows whether it can be reached at all."""
        return self.by_hand if self.node else " ".join(self.exec_words("sh", "-c", "true"))

    def exec_words(self, *command: str) -> tuple[str, ...]:
        """The words that run a command in the container, our stdin its stdin."""
        chosen = (f"--container={self.container}",) if self.container else ()
        return (*self.cluster.words, "exec", "-i", self.pod, *chosen, "--", *command)

    def log_words(self, *options: str) -> tuple[str, ...]:
        """The words that print the container's log, each line behind its time."""
        chosen = (f"--container={self.container}",) if self.container else ()
        return (*self.cluster.words, "logs", self.pod, *chosen, "--timestamps", *options)
