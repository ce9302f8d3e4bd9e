"""Hosts that a label names: the pods or nodes of a group, asked of the cluster when it is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, replace
from typing import Any, Final, NoReturn, TypeVar

from commcheck.errors import HostError, InventoryError
from commcheck.inventory import kubectl
from commcheck.inventory.declared import AddHost, Notes, SetHost, Setting, Statement, quoted
from commcheck.inventory.merge import Settings, VariableFiles, of_group
from commcheck.inventory.templates import Scope, is_template, resolve
from commcheck.inventory.tree import Tree
from commcheck.kube.call import call
from commcheck.kube.place import Cluster, Place
from commcheck.lazy import dataclass, regex
from commcheck.report.ranges import natural

T = TypeVar("T")

LIMIT_S: Final = 60.0
_SELECTOR: Final = regex(r"[A-Za-z0-9][A-Za-z0-9_./=!, ()-]{0,1000}")
_OVER: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Found:
    """A pod or node by name, with the variables that lead to it. ``over``: why it is no host."""

    name: str
    variables: Mapping[str, object]
    over: str = ""


def statements(
    tree: Tree, files: VariableFiles, notes: Notes, environment: Mapping[str, str]
) -> list[Statement]:
    """The hosts of all groups that name a label, and how each is reached."""
    found: list[Statement] = []
    seen: dict[str, tuple[Cluster, str]] = {}
    for group in tree.groups.values():
        own = group.settings | files.groups.get(group.name, {})
        for variable in (kubectl.SELECTOR, kubectl.NODE_SELECTOR):
            if variable in own and own[variable].value not in (None, ""):
                settings = of_group(tree, files, group.name)
                reads = _Reads(settings, environment)
                found += _of_group(group.name, own[variable], reads, notes, seen)
    return found


def _of_group(
    group: str, by: Setting, read: _Reads, notes: Notes, seen: dict[str, tuple[Cluster, str]]
) -> Iterable[Statement]:
    """``seen``: where each host was found before, and by which group."""
    what = "pods" if by.name == kubectl.SELECTOR else "nodes"
    try:
        selector = read.first((by.name,), _selector)
        if selector is None:
            return
        cluster = kubectl.cluster(read.first)
        items = ask(cluster, what, selector)
    except InventoryError as error:
        notes.error(by.at, str(error), "kubectl")
        return
    except HostError as error:
        remedy = f"; {error.remedy}" if error.remedy else ""
        notes.error(by.at, f"{error.reason}{remedy}", "kubectl")
        return
    hosts = [each for each in items if not each.over]
    for each in items:
        if each.over:
            notes.warning(by.at, f"{each.name} is left out: {each.over}", "kubectl")
    if not hosts:
        notes.warning(by.at, f"no {what} match {quoted(selector)}: the group is empty", "kubectl")
    double: dict[tuple[str, Cluster], list[str]] = {}
    for host in hosts:
        place = replace(cluster, namespace=str(host.variables.get(kubectl.NAMESPACE, "")))
        before, other = seen.setdefault(host.name, (place, group))
        if _are_two(before, place):
            double.setdefault((other, before), []).append(host.name)
    for (other, before), names in double.items():
        theirs, ours = (f"{each.namespace} {each.context}".strip() for each in (before, place))
        more = f" and {len(names) - 1} more" if names[1:] else ""
        text = (
            f"{names[0]}{more}: other {what} have that name in group {other} ({theirs}) than here "
            f"({ours}), and a name is one host; run the groups one at a time, from files of their "
            f"own, or name each pod with {kubectl.POD}"
        )
        notes.error(by.at, text, "kubectl")
    for host in hosts:
        yield AddHost(host.name, group, by.at)
        for name, value in host.variables.items():
            yield SetHost(host.name, Setting(name, value, by.at))


def _are_two(one: Cluster, other: Cluster) -> bool:
    """True where two groups look at places that differ; what one leaves open is no difference."""
    pairs = zip(astuple(one), astuple(other), strict=True)
    return any(left and right and left != right for left, right in pairs)


def ask(cluster: Cluster, what: str, selector: str) -> list[Found]:
    """The pods or nodes that have the labels, in natural order. Raises ``HostError``."""
    place = Place(cluster=cluster, pod=f"with {selector}")
    words = (*cluster.words, "get", what, f"--selector={selector}", "--output=json")
    return read(call(words, place, limit_s=LIMIT_S), what)


def read(answer: bytes, what: str) -> list[Found]:
    """The same from what ``kubectl get --output=json`` prints. Raises ``InventoryError``."""
    try:
        items = json.loads(answer)["items"]
        found = [_pod(each) if what == "pods" else _node(each) for each in items]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InventoryError(f"kubectl get {what} printed no list of {what}: {error!r}") from error
    return sorted(found, key=lambda each: natural(each.name))


def _pod(item: dict[str, Any]) -> Found:
    meta, phase = item["metadata"], item.get("status", {}).get("phase", "")
    name = kubectl.name_of(meta["name"])
    over = f"its phase is {phase}" if phase in _OVER else ""
    if meta.get("deletionTimestamp"):
        over = "it is being deleted"
    variables = {
        "ansible_connection": "kubectl",
        kubectl.POD: name,
        kubectl.NAMESPACE: kubectl.name_of(meta["namespace"]),
    }
    return Found(name, variables, over)


def _node(item: dict[str, Any]) -> Found:
    name = kubectl.name_of(item["metadata"]["name"])
    return Found(name, {"ansible_connection": "kubectl", kubectl.NODE: name})


def _selector(value: object) -> str:
    if not isinstance(value, str) or not _SELECTOR.fullmatch(value):
        raise ValueError("is no label selector like app=train,tier in (a, b)")
    return value


class _Reads:
    """Reads a group's variables, templates resolved."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._scope = Scope(lambda name: settings[name].value, environment)

    def first(self, names: tuple[str, ...], read: Callable[[object], T]) -> T | None:
        for name in names:
            setting = self._settings.get(name)
            if setting is None or setting.value in (None, ""):
                continue
            value = setting.value
            if is_template(value):
                value = resolve(value, self._scope, (name,))
            try:
                return read(value)
            except ValueError as error:
                self._wrong(f"{name}: {quoted(value)} {error}")
        return None

    def _wrong(self, text: str) -> NoReturn:
        raise InventoryError(text)
