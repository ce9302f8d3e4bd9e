"""Variables in documents: pods of Kubernetes, services of compose, a Ray ``runtime_env``.

Also in what ``kubectl describe pod`` prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from commcheck.kube.manifest import CONTAINERS, config_maps, documents, list_of, walk, words_of
from commcheck.lazy import dataclass, regex
from commcheck.nccl.environment import described
from commcheck.nccl.environment.containers import asks, gpus, lacks_rdma, shm_bytes
from commcheck.nccl.environment.model import SHM_DEFAULT, Layer, effective
from commcheck.nccl.environment.names import is_kept
from commcheck.nccl.environment.sources import command, conf_file, from_mapping, handed_over


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
    shm_bytes: int | None = None
    gpus: int | None = None
    job: str = ""
    lacks_rdma: bool = False


@dataclass(frozen=True, slots=True)
class _Listed:
    """A container where it stands."""

    container: Mapping[str, Any]
    spec: Mapping[str, Any]
    pod: str
    is_launcher: bool = False
    is_of_ray: bool = False
    job: str = ""
    annotations: tuple[object, ...] = ()

    @property
    def words(self) -> list[str]:
        """What it runs, as far as the document says."""
        return words_of(self.container)


def declared(text: str, where: str) -> tuple[Declared, ...]:
    """Every rank's container and every runtime environment of a text."""
    pods = described.pods(text)
    docs = pods or documents(text)
    maps = config_maps(docs)
    found = tuple(one for doc in docs for one in _of_document(doc, maps, where))
    if not pods:
        return found
    # Whether a pod shares its node's memory (hostIPC), or is privileged, is not printed.
    return tuple(
        replace(
            one,
            shm_bytes=None if one.shm_bytes == SHM_DEFAULT else one.shm_bytes,
            lacks_rdma=False,
        )
        for one in found
    )


def _of_document(doc: Any, maps: Mapping[str, Any], where: str) -> Iterator[Declared]:
    """Of containers only those that run ranks.

    Beside one that asks for GPUs those that ask for none are sidecars, heads or launchers. What a
    launcher's ``mpirun -x`` hands over is the ranks'.
    """
    found: list[_Listed] = []
    launchers: set[int] = set()
    of_ray: set[int] = set()
    jobs: dict[int, str] = {}
    notes: dict[int, tuple[object, ...]] = {}
    for number, (node, pod, key) in enumerate(walk(doc)):
        if isinstance(specs := node.get("mpiReplicaSpecs"), Mapping):
            launchers |= {id(inner) for inner, _, _ in walk(specs.get("Launcher"))}
        for name, group in _ray_groups(node):
            within = [id(inner) for inner, _, _ in walk(group)]
            of_ray.update(within)
            jobs |= dict.fromkeys(within, f"{pod}/{name}")
        match node:
            case {"metadata": {"annotations": dict(told)}, "spec": dict(spec)}:
                notes[id(spec)] = tuple(told)
            case _:
                pass
        if job := _job(node):
            jobs |= {id(inner): job for inner, _, _ in walk(node)}
        if isinstance(node.get("containers"), list):
            found += [
                _Listed(
                    each,
                    node,
                    pod,
                    is_launcher=id(each) in launchers,
                    is_of_ray=id(each) in of_ray,
                    job=jobs.get(id(each), ""),
                    annotations=notes.get(id(node), ()),
                )
                for each in node["containers"]
                if isinstance(each, Mapping)
            ]
        if key not in CONTAINERS:
            yield from _plain(node, key, where)
            for one in _alone(node, pod, key, maps, where):
                yield replace(one, job=f"{where} {number}")
    has_gpus = any(asks(each.container) for each in found)
    ranks = [each for each in found if asks(each.container) or not (has_gpus or each.is_launcher)]
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

_WITHIN: Final = ("runtimeEnvYAML", "serveConfigV2")
"""Keys of a text that is YAML itself: of a RayJob and a RayService."""

_NAMED: Final = ("env", "environment", "containerEnv", "extraEnv", "extraEnvVars")
"""Keys of lists of ``{name, value}``: of one container that stands by itself (a TrainJob's trainer,
a step of Argo), of AWS (ECS, Batch), of a chart's values."""


def _plain(node: Mapping[str, Any], key: str, where: str) -> Iterator[Declared]:
    for name in _PLAIN:
        told = node.get(name)
        if isinstance(told, list):
            pairs = (each.partition("=") for each in told if isinstance(each, str))
            told = {left: right if equals else None for left, equals, right in pairs}
        if not isinstance(told, Mapping):
            continue
        layer = from_mapping(told, f"{where} ({name})")
        if name == "env_vars":
            yield Declared("runtime_env", "ray", (layer,))
        elif layer.settings or layer.untold:
            yield Declared(key or name, "document", (layer,), job=f"{where} {key}")
    for text in (node[name] for name in _WITHIN if isinstance(node.get(name), str)):
        for inner in documents(text):
            for part, _, within in walk(inner):
                yield from _plain(part, within, where)


def _alone(
    node: Mapping[str, Any], pod: str, key: str, maps: Mapping[str, Any], where: str
) -> Iterator[Declared]:
    """What looks like a container and stands in no list of them."""
    for name in _NAMED:
        items = [each for each in list_of(node.get(name)) if isinstance(each, Mapping)]
        if not items:
            continue
        listed = _Listed({**node, "env": items, "name": key or name}, {}, pod)
        one = _container(listed, maps, where)
        # Its pod is made elsewhere: what that is given nobody knows.
        yield replace(one, kind="document", shm_bytes=None, lacks_rdma=False)


_JOBS: Final = ("PyTorchJob", "MPIJob", "JobSet", "LeaderWorkerSet", "AscendJob", "TFJob")
"""Kinds that are one job each."""

_OF_JOBS: Final = ("training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name",
                   "leaderworkerset.sigs.k8s.io/name", "volcano.sh/job-name",
                   "ray.io/cluster", "ray.io/group")  # fmt: skip
"""Labels by which an operator's pod says of which job it is."""


def _job(node: Mapping[str, Any]) -> str:
    """Of an object that is a job, or a pod of one; "" where nobody can tell."""
    match node:
        case {"kind": str(kind), "metadata": {"name": str(name)}} if kind in _JOBS:
            return name
        case {"kind": "Pod", "metadata": {"labels": dict(labels)}}:
            return "/".join(str(labels[name]) for name in _OF_JOBS if name in labels)
        case _:
            return ""


def _ray_groups(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The groups of a RayCluster: each may be for another work."""
    if "headGroupSpec" in node:
        yield "head", node["headGroupSpec"]
    for number, group in enumerate(list_of(node.get("workerGroupSpecs"))):
        told = group.get("groupName") if isinstance(group, Mapping) else None
        yield str(told or f"group {number}"), group


def _container(listed: _Listed, maps: Mapping[str, Any], where: str) -> Declared:
    container = listed.container
    name = "/".join(part for part in (listed.pod, str(container.get("name", ""))) if part)
    place = f"{where} ({name})"
    own: dict[str, object] = {}
    unread = []
    for item in list_of(container.get("env")):
        match item:
            case {"name": str(key), "value": value}:
                own[key] = _expanded(value, own)
            case {
                "name": str(key),
                "valueFrom": {"configMapKeyRef": {"name": str(source), "key": str(entry)}},
            } if entry in maps.get(source, {}):
                own[key] = maps[source][entry]
            case {"name": str(key), "valueFrom": _}:
                own[key] = None
                if is_kept(key):
                    unread.append(f"{place}: valueFrom of {key}")
            case _:
                pass
    # What its command exports comes last, and counts.
    layers = [command(listed.words, f"{where} ({name}: command)"), from_mapping(own, place)]
    # Of several sources the last one counts.
    for item in reversed(list_of(container.get("envFrom"))):
        match item:
            case {"configMapRef": {"name": str(source)}} if source in maps:
                prefix = str(item.get("prefix") or "")
                values = {f"{prefix}{key}": value for key, value in maps[source].items()}
                layers.append(from_mapping(values, f"{where} (ConfigMap {source})"))
            case {"configMapRef": {"name": str(source)}} | {"secretRef": {"name": str(source)}}:
                unread.append(f"{place}: envFrom {source}")
            case _:
                pass
    # NCCL's file only adds what is not set yet.
    for source, entry in _conf_of(container, listed.spec):
        if entry in maps.get(source, {}):
            file = conf_file(str(maps[source][entry]), f"{where} (ConfigMap {source}: {entry})")
            layers.append(file)
        else:
            unread.append(f"{place}: {_ETC} of {source}")
    return Declared(
        name or "container",
        "pod",
        tuple(layers),
        tuple(unread),
        shm_bytes(container, listed.spec, is_of_ray=listed.is_of_ray),
        gpus(container),
        listed.job,
        lacks_rdma(container, listed.spec, listed.annotations),
    )


_ETC: Final = "/etc/nccl.conf"


def _conf_of(container: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The ConfigMap and its key that are mounted where NCCL looks for its file."""
    sources = {}
    for volume in list_of(spec.get("volumes")):
        match volume:
            case {"name": str(name), "configMap": {"name": str(source), **more}}:
                sources[name] = source, list_of(more.get("items"))
            case _:
                pass
    for mount in list_of(container.get("volumeMounts")):
        match mount:
            case {"name": str(name), "mountPath": path, **rest} if name in sources:
                source, items = sources[name]
                keys = {
                    str(each.get("path")): str(each.get("key"))
                    for each in items
                    if isinstance(each, Mapping)
                }
                file = str(rest.get("subPath") or _ETC.rpartition("/")[2])
                whole = path if rest.get("subPath") else f"{str(path).rstrip('/')}/{file}"
                if whole == _ETC:
                    yield source, keys.get(file, file)
            case _:
                pass


_REFERENCE: Final = regex(r"\$\(([A-Za-z_][\w.-]*)\)")


def _expanded(value: object, own: Mapping[str, object]) -> object:
    """With ``$(NAME)`` filled in from the variables above it, as the kubelet does."""
    if not isinstance(value, str):
        return value

    def filled(match: re.Match[str]) -> str:
        told = own.get(match[1])
        return match[0] if told is None else str(told)

    return _REFERENCE.sub(filled, value)
