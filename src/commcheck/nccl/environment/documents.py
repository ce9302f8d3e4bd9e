"""Variables in documents: pods and templates of Kubernetes, a Ray ``runtime_env``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from commcheck.lazy import dataclass
from commcheck.nccl.environment.model import Layer
from commcheck.nccl.environment.sources import from_mapping

NODES_MOST: Final = 200_000
DEPTH_MOST: Final = 60
"""Bounds of a walk: aliases make a small YAML file as large as one likes."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The variables of one container or of one runtime environment, the strongest first."""

    name: str
    kind: str  # "pod" or "ray"
    layers: tuple[Layer, ...]
    unread: tuple[str, ...] = ()
    shm_default: bool | None = None
    gpus: int | None = None


def documents(text: str) -> list[Any]:
    """The YAML or JSON documents of a text; empty where it is neither."""
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, OverflowError):
        return []


def declared(text: str, where: str) -> tuple[Declared, ...]:
    """Every container and every runtime environment of a text."""
    docs = documents(text)
    maps = {name: doc["data"] for doc in docs for name in [_config_map(doc)] if name is not None}
    found: list[Declared] = []
    for node, pod in _walk(docs):
        if isinstance(node.get("env_vars"), Mapping):
            layer = from_mapping(node["env_vars"], f"{where} (env_vars)")
            found.append(Declared("runtime_env", "ray", (layer,)))
        elif isinstance(node.get("containers"), list):
            for container in node["containers"]:
                if isinstance(container, Mapping):
                    found.append(_container(container, node, pod, maps, where))
    return tuple(found)


def _config_map(doc: Any) -> str | None:
    match doc:
        case {"kind": "ConfigMap", "metadata": {"name": str(name)}, "data": dict()}:
            return name
        case _:
            return None


def _walk(docs: list[Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """All mappings, each once, with the name of the nearest thing that has one."""
    seen: set[int] = set()
    left: list[tuple[Any, str, int]] = [(doc, "", 0) for doc in reversed(docs)]
    while left and len(seen) < NODES_MOST:
        node, name, depth = left.pop()
        if not isinstance(node, dict | list) or id(node) in seen or depth > DEPTH_MOST:
            continue
        seen.add(id(node))
        if isinstance(node, dict):
            match node:
                case {"metadata": {"name": str(own)}}:
                    name = own
                case _:
                    pass
            yield node, name
        children = node.values() if isinstance(node, dict) else node
        left.extend((child, name, depth + 1) for child in reversed(list(children)))


def _container(
    container: Mapping[str, Any],
    spec: Mapping[str, Any],
    pod: str,
    maps: Mapping[str, Any],
    where: str,
) -> Declared:
    name = "/".join(part for part in (pod, str(container.get("name", ""))) if part)
    place = f"{where} ({name})"
    own: dict[str, object] = {}
    unread = []
    for item in _listed(container.get("env")):
        match item:
            case {"name": str(key), "value": value}:
                own[key] = value
            case {"name": str(key), "valueFrom": _}:
                unread.append(f"{place}: valueFrom of {key}")
            case _:
                pass
    layers = [from_mapping(own, place)]
    # Of several sources the last one counts.
    for item in reversed(_listed(container.get("envFrom"))):
        match item:
            case {"configMapRef": {"name": str(source)}} if source in maps:
                prefix = str(item.get("prefix") or "")
                values = {f"{prefix}{key}": value for key, value in maps[source].items()}
                layers.append(from_mapping(values, f"{where} (ConfigMap {source})"))
            case {"configMapRef": {"name": str(source)}} | {"secretRef": {"name": str(source)}}:
                unread.append(f"{place}: envFrom {source}")
            case _:
                pass
    return Declared(
        name or "container",
        "pod",
        tuple(layers),
        tuple(unread),
        _shm_default(container, spec),
        _gpus(container),
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _shm_default(container: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """True where nothing gives the container another /dev/shm than the runtime's 64 MiB."""
    if spec.get("hostIPC") is True:
        return False
    return not any(
        isinstance(mount, Mapping) and mount.get("mountPath") == "/dev/shm"  # noqa: S108 - its name
        for mount in _listed(container.get("volumeMounts"))
    )


def _gpus(container: Mapping[str, Any]) -> int | None:
    """GPUs or NPUs that it asks for; None where it does not say."""
    resources = container.get("resources")
    for part in ("limits", "requests"):
        asked = resources.get(part) if isinstance(resources, Mapping) else None
        for name, count in asked.items() if isinstance(asked, Mapping) else ():
            if str(name) in ("nvidia.com/gpu", "huawei.com/Ascend910") and str(count).isdigit():
                return int(str(count))
    return None
