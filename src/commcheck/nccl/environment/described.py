"""Pods in what ``kubectl describe pod`` prints. Pure.

Source: the printer of kubectl (kubernetes/kubectl pkg/describe, ``describeContainers``), which
indents containers by two blanks, their parts by four and each variable by six.
"""

from __future__ import annotations

from typing import Any, Final

from commcheck.lazy import regex

_HEAD: Final = regex(r"Name: +(\S+)")
_SECTION: Final = regex(r"(Containers|Volumes):\s*")
_THING: Final = regex(r"  (\S+):\s*")
_PART: Final = regex(r"    ([A-Z][A-Za-z ]+):\s*(.*)")
_PAIR: Final = regex(r"      ([^\s:]+):\s+(.*?)\s*")
_FROM: Final = regex(r"      (\S+)\s+(ConfigMap|Secret)\b.*")
_MOUNT: Final = regex(r"      (/\S*) from (\S+)\b.*")
_ELSEWHERE: Final = regex(r"<set to the key .*>.*|.*\(v1:[\w.]+\)")


def pods(text: str) -> list[dict[str, Any]]:
    """The pods that a text describes, as their manifests would say it; none where it does not."""
    found: list[dict[str, Any]] = []
    section, part, thing = "", "", dict[str, Any]()
    for line in text.splitlines():
        if head := _HEAD.fullmatch(line.rstrip()):
            spec: dict[str, Any] = {"containers": [], "volumes": []}
            found.append({"kind": "Pod", "metadata": {"name": head[1]}, "spec": spec})
            section = ""
        elif line[:1].strip():
            named = _SECTION.fullmatch(line)
            section = named[1].lower() if named else ""
        elif not section or not found:
            continue
        elif begins := _THING.fullmatch(line):
            thing = {"name": begins[1], "env": [], "envFrom": [], "volumeMounts": []}
            found[-1]["spec"][section].append(thing)
        elif thing:
            named = _PART.fullmatch(line)
            part = named[1] if named else part
            _take(thing, part, line)
            if named and part == "SizeLimit":
                thing["emptyDir"] = {"sizeLimit": named[2].strip()}
    return [pod for pod in found if pod["spec"]["containers"]]


def _take(container: dict[str, Any], part: str, line: str) -> None:
    pair = _PAIR.fullmatch(line)
    if part == "Environment" and pair:
        elsewhere = _ELSEWHERE.fullmatch(pair[2])
        told: dict[str, Any] = {"valueFrom": {}} if elsewhere else {"value": pair[2]}
        container["env"].append({"name": pair[1], **told})
    elif part == "Environment Variables from" and (source := _FROM.fullmatch(line)):
        kind = "configMapRef" if source[2] == "ConfigMap" else "secretRef"
        container["envFrom"].append({kind: {"name": source[1]}})
    elif part == "Mounts" and (mount := _MOUNT.fullmatch(line)):
        container["volumeMounts"].append({"mountPath": mount[1], "name": mount[2]})
    elif part == "Limits" and pair:
        container.setdefault("resources", {}).setdefault("limits", {})[pair[1]] = pair[2]
    elif part in ("Command", "Args") and line.startswith("      "):
        container.setdefault(part.lower(), []).append(line[6:])
