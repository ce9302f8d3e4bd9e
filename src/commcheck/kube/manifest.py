"""Manifests of Kubernetes as plain data: their documents, their parts by name, their maps. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

DEPTH_MOST: Final = 60
"""Of a walk; no manifest is nested so deeply."""


CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


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


def of_kubernetes(text: str) -> list[Any]:
    """The documents of a text where one of them is an object of Kubernetes; else none."""
    if "kind" not in text:
        return []
    docs = documents(text)
    is_one = any(isinstance(doc, dict) and "kind" in doc and "apiVersion" in doc for doc in docs)
    return docs if is_one else []


def config_maps(docs: list[Any]) -> dict[str, Mapping[str, Any]]:
    """The data of the ConfigMaps among documents and in lists of ``kubectl get``, by name."""
    found: dict[str, Mapping[str, Any]] = {}
    lists = [list_of(doc.get("items")) for doc in docs if isinstance(doc, dict)]
    for each in (*docs, *(item for items in lists for item in items)):
        match each:
            case {"kind": "ConfigMap", "metadata": {"name": str(name)}, "data": dict(data)}:
                found[name] = data
            case _:
                pass
    return found


def walk(doc: Any) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """All mappings, each once; the name of the nearest thing, and its role in it; the nearest key.

    However many aliases lead to one: a small YAML file may be as large as one likes by them.
    Master and Worker of one job have containers of one name: their role tells them apart.
    """
    seen: set[int] = set()
    left: list[tuple[Any, str, str, int]] = [(doc, "", "", 0)]
    while left:
        node, name, key, depth = left.pop()
        if not isinstance(node, dict | list) or id(node) in seen or depth > DEPTH_MOST:
            continue
        seen.add(id(node))
        if isinstance(node, dict):
            match node:
                case {"metadata": {"name": str(own)}}:
                    name = own
                case _:
                    name = "/".join(part for part in (name, _role(node, key)) if part)
            yield node, name, key
        children = (
            [(child, str(told)) for told, child in node.items()]
            if isinstance(node, dict)
            else [(child, key) for child in node]
        )
        left.extend((child, name, told, depth + 1) for child, told in reversed(children))


def _role(node: Mapping[str, Any], key: str) -> str:
    """Of what makes pods: Worker, a task's or a group's name, leaderTemplate; "" elsewhere."""
    if isinstance(node.get("template"), dict):
        told = node.get("name") or node.get("groupName") or key
        return "" if told == "spec" else str(told)
    return key if key.endswith("Template") and isinstance(node.get("spec"), dict) else ""


def list_of(value: Any) -> list[Any]:
    """A list, empty where it is none."""
    return value if isinstance(value, list) else []


def words_of(container: Mapping[str, Any]) -> list[str]:
    """What a container runs, as far as the document says."""
    told = [*list_of(container.get("command")), *list_of(container.get("args"))]
    return [each for each in told if isinstance(each, str)]
