"""What a container of a pod is given: GPUs, shared memory, devices for RDMA. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from commcheck.command import whole_number
from commcheck.kube.manifest import list_of
from commcheck.lazy import regex
from commcheck.nccl.environment.model import SHM_DEFAULT

Json = Mapping[str, Any]


def shm_bytes(container: Json, spec: Json, *, is_of_ray: bool) -> int:
    """Of /dev/shm: the runtime's default, the limit of what is mounted there, or -1.

    KubeRay mounts one as large as the container's memory into the first container of a pod
    (ray-operator controllers/ray/common/pod.go). An emptyDir may be limited: a medium of memory is
    made that large, of any other medium the pod is evicted (Kubernetes' manual, emptyDir).
    """
    if spec.get("hostIPC") is True:
        return -1
    mounts = [each for each in list_of(container.get("volumeMounts")) if isinstance(each, Mapping)]
    volume = next(
        (each.get("name") for each in mounts if str(each.get("mountPath")).rstrip("/") == _SHM),
        None,
    )
    if volume is None:
        is_first = container is next(iter(list_of(spec.get("containers"))), None)
        return -1 if is_of_ray and is_first else SHM_DEFAULT
    for each in list_of(spec.get("volumes")):
        match each:
            case {"name": str(name), "emptyDir": {"sizeLimit": limit}} if name == volume:
                return _quantity(limit)
            case _:
                pass
    return -1


_SHM: Final = "/dev/shm"  # noqa: S108 - its name

_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
                 "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}  # fmt: skip
_QUANTITY: Final = regex(r"(\d{1,15}(?:\.\d{1,9})?)([kMGT]?i?)")


def _quantity(value: object) -> int:
    """Bytes of a quantity of Kubernetes; -1 for what is none."""
    match = _QUANTITY.fullmatch(str(value))
    unit = _UNITS.get(match[2]) if match else None
    return -1 if match is None or unit is None else int(float(match[1]) * unit)


_GPU: Final = regex(r"(?:nvidia\.com/(?:gpu|mig-)|amd\.com/gpu|huawei\.com/(?:Ascend|npu)).*")


def gpus(container: Json) -> int | None:
    """GPUs or NPUs that it asks for; None where it does not say."""
    found = (
        number
        for name, count in _asked(container)
        if _GPU.fullmatch(name) and (number := whole_number(count)) is not None
    )
    return next(found, None)


def _asked(container: Json) -> Iterator[tuple[str, object]]:
    resources = container.get("resources")
    for part in ("limits", "requests"):
        asked = resources.get(part) if isinstance(resources, Mapping) else None
        for name, count in asked.items() if isinstance(asked, Mapping) else ():
            yield str(name), count


def asks(container: Json) -> bool:
    """True where it asks for GPUs; by a claim nobody knows what for, which may be these."""
    resources = container.get("resources")
    claims = resources.get("claims") if isinstance(resources, Mapping) else None
    return bool(gpus(container)) or bool(claims)


_ON_GPU_HOSTS: Final = regex(r"nvidia\.com/(?:gpu|mig-.*)|amd\.com/gpu")
_NETWORKS: Final = regex(
    r"networks?\b|networking|rdma|roce|infiniband|cdi\.k8s|\bnri\b|dranet", re.I
)
"""In an annotation: a plugin, a webhook or a runtime that may add devices."""


def lacks_rdma(container: Json, spec: Json, annotations: Iterable[object]) -> bool:
    """True where nothing gives the container of a pod with GPUs a device for RDMA.

    That is a resource of a device plugin, whatever its name, a claim, a privileged container, a
    path of the node below /dev, NVIDIA's runtime (NVIDIA_MOFED), or an annotation of a network.
    NPUs have NICs of their own.
    """
    if not any(_ON_GPU_HOSTS.fullmatch(name) for name, _ in _asked(container)):
        return False
    names = {name for each in list_of(spec.get("containers")) if isinstance(each, Mapping)
             for name, _ in _asked(each)}  # fmt: skip
    others = {name for name in names if "/" in name and not _ON_GPU_HOSTS.fullmatch(name)}
    resources, rights = container.get("resources"), container.get("securityContext")
    claims = spec.get("resourceClaims") or (
        isinstance(resources, Mapping) and resources.get("claims")
    )
    is_privileged = isinstance(rights, Mapping) and rights.get("privileged") is True
    mofed = any(
        isinstance(each, Mapping) and each.get("name") == "NVIDIA_MOFED"
        for each in list_of(container.get("env"))
    )
    is_noted = any(_NETWORKS.search(str(each)) for each in annotations)
    given = (others, claims, is_privileged, mofed, is_noted, _has_devices(spec))
    return not any(given)


_DEVICES: Final = regex(r"/|/dev/?|/dev/infiniband(?:/.*)?")


def _has_devices(spec: Json) -> bool:
    """True where a path of the node is mounted that holds its devices."""
    for each in list_of(spec.get("volumes")):
        match each:
            case {"hostPath": {"path": str(path)}} if _DEVICES.fullmatch(path):
                return True
            case _:
                pass
    return False
