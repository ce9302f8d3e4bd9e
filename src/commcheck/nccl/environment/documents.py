"""Variables in documents: pods of Kubernetes, services of compose, a Ray ``runtime_env``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import yaml

from commcheck.lazy import dataclass, regex
from commcheck.nccl.environment.model import Layer, effective
from commcheck.nccl.environment.sources import command, from_mapping, handed_over

NODES_MOST: Final = 200_000
DEPTH_MOST: Final = 60
"""Bounds of a walk: aliases make a small YAML file as large as one likes."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The variables of one container or of one runtime environment, the strongest first.

    ``job``: what it is a part of; several parts of one document may have nothing to do with each
    other, while its pods are ranks of one job ("").
    """

    name: str
    kind: str  # "pod", "ray" or "document"
    layers: tuple[Layer, ...]
    unread: tuple[str, ...] = ()
    shm_default: bool | None = None
    gpus: int | None = None
    job: str = ""


@dataclass(frozen=True, slots=True)
class _Listed:
    """A container where it stands."""

    container: Mapping[str, Any]
    spec: Mapping[str, Any]
    pod: str
    is_launcher: bool

    @property
    def words(self) -> list[str]:
        """What it runs, as far as the document says."""
        told = [*_listed(self.container.get("command")), *_listed(self.container.get("args"))]
        return [each for each in told if isinstance(each, str)]


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
    """Every rank's container and every runtime environment of a text."""
    docs = documents(text)
    maps = {name: doc["data"] for doc in docs for name in [_config_map(doc)] if name is not None}
    return tuple(one for doc in docs for one in _of_document(doc, maps, where))


def _of_document(doc: Any, maps: Mapping[str, Any], where: str) -> Iterator[Declared]:
    """Of containers only those that run ranks.

    Beside one that asks for GPUs those that ask for none are sidecars, heads or launchers. What a
    launcher's ``mpirun -x`` hands over is the ranks'.
    """
    found: list[_Listed] = []
    launchers: set[int] = set()
    for node, pod, key in _walk(doc):
        if isinstance(specs := node.get("mpiReplicaSpecs"), Mapping):
            launchers |= {id(inner) for inner, _, _ in _walk(specs.get("Launcher"))}
        if isinstance(node.get("containers"), list):
            found += [
                _Listed(each, node, pod, id(each) in launchers)
                for each in node["containers"]
                if isinstance(each, Mapping)
            ]
        yield from _plain(node, key, where)
    has_gpus = any(_asks(each.container) for each in found)
    ranks = [each for each in found if _asks(each.container) or not (has_gpus or each.is_launcher)]
    handed = [
        _handed(each, maps, where)
        for each in found
        if ranks and all(each is not one for one in ranks)
    ]
    for each in ranks or found:
        one = _container(each, maps, where)
        yield replace(one, layers=(*(layer for layer in handed if layer.settings), *one.layers))


def _handed(launcher: _Listed, maps: Mapping[str, Any], where: str) -> Layer:
    one = _container(launcher, maps, where)
    own, _ = effective(one.layers)
    return handed_over(launcher.words, f"{where} ({one.name}: command)", own)


_PLAIN: Final = ("env_vars", "environment", "env", "envs", "Env")
"""Keys of variables: of Ray, compose, an editor's launch.json, SkyPilot, ``docker inspect``."""


def _plain(node: Mapping[str, Any], key: str, where: str) -> Iterator[Declared]:
    for name in _PLAIN:
        told = node.get(name)
        if isinstance(told, list):
            pairs = (each.partition("=") for each in told if isinstance(each, str) and "=" in each)
            told = {left: right for left, _, right in pairs}
        if not isinstance(told, Mapping):
            continue
        layer = from_mapping(told, f"{where} ({name})")
        if name == "env_vars":
            yield Declared("runtime_env", "ray", (layer,))
        elif layer.settings:
            yield Declared(key or name, "document", (layer,), job=f"{where} {key}")


def _config_map(doc: Any) -> str | None:
    match doc:
        case {"kind": "ConfigMap", "metadata": {"name": str(name)}, "data": dict()}:
            return name
        case _:
            return None


def _walk(doc: Any) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """All mappings, each once; the name of the nearest thing that has one; the nearest key."""
    seen: set[int] = set()
    left: list[tuple[Any, str, str, int]] = [(doc, "", "", 0)]
    while left and len(seen) < NODES_MOST:
        node, name, key, depth = left.pop()
        if not isinstance(node, dict | list) or id(node) in seen or depth > DEPTH_MOST:
            continue
        seen.add(id(node))
        if isinstance(node, dict):
            match node:
                case {"metadata": {"name": str(own)}}:
                    name = own
                case _:
                    pass
            yield node, name, key
        children = (
            [(child, str(told)) for told, child in node.items()]
            if isinstance(node, dict)
            else [(child, key) for child in node]
        )
        left.extend((child, name, told, depth + 1) for child, told in reversed(children))


def _container(listed: _Listed, maps: Mapping[str, Any], where: str) -> Declared:
    container = listed.container
    name = "/".join(part for part in (listed.pod, str(container.get("name", ""))) if part)
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
    # What its command exports comes last, and counts.
    layers = [command(listed.words, f"{where} ({name}: command)"), from_mapping(own, place)]
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
        _shm_default(container, listed.spec),
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


_GPU: Final = regex(r"(?:nvidia\.com/(?:gpu|mig-)|amd\.com/gpu|huawei\.com/(?:Ascend|npu)).*")


def _gpus(container: Mapping[str, Any]) -> int | None:
    """GPUs or NPUs that it asks for; None where it does not say."""
    resources = container.get("resources")
    for part in ("limits", "requests"):
        asked = resources.get(part) if isinstance(resources, Mapping) else None
        for name, count in asked.items() if isinstance(asked, Mapping) else ():
            if _GPU.fullmatch(str(name)) and str(count).isdigit():
                return int(str(count))
    return None


def _asks(container: Mapping[str, Any]) -> bool:
    """True where it asks for GPUs; by a claim nobody knows what for, which may be these."""
    resources = container.get("resources")
    claims = resources.get("claims") if isinstance(resources, Mapping) else None
    return bool(_gpus(container)) or bool(claims)
