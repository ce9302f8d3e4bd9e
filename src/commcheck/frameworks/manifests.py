"""Settings in manifests of Kubernetes: what containers run, and files that stand in ConfigMaps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from commcheck.errors import UsageError
from commcheck.frameworks import command
from commcheck.frameworks.rules import CONNECTIONS
from commcheck.frameworks.settings import Setting, Settings
from commcheck.kube.manifest import config_maps, list_of, walk, words_of

Read = Callable[[str, str], tuple[Settings, ...]]
"""Reads a file by its text and its name; raises ``UsageError`` where no setting is in it."""


def read(docs: list[Any], file: str, read_file: Read) -> tuple[Settings, ...]:
    """The settings of manifests, those that several containers share once.

    Raises ``UsageError`` where there are none.
    """
    found: dict[object, Settings] = {}
    here = {str(key) for data in config_maps(docs).values() for key in data}
    for one in (*_in_maps(docs, file, read_file), *_commands(docs, file)):
        if one.elsewhere.rpartition("/")[2] in here:
            continue  # what it names stands beside it
        values = tuple((name, str(each.value)) for name, each in sorted(one.values.items()))
        environ = tuple((name, str(each.value)) for name, each in (one.environ or {}).items())
        found.setdefault((one.framework, values, environ, one.elsewhere), one)
    if not found:
        raise UsageError(
            f"{file}: error: no setting of DeepSpeed, DDP, FSDP or Megatron in the commands of its "
            "containers or in its ConfigMaps; give the script or the file that they name [config]"
        )
    return tuple(found.values())


def _in_maps(docs: list[Any], file: str, read_file: Read) -> Iterator[Settings]:
    for name, data in config_maps(docs).items():
        for key, text in data.items():
            if not isinstance(text, str):
                continue
            try:
                yield from read_file(text, f"{file}: {name}/{key}")
            except UsageError:
                continue  # a map holds other files as well


def _commands(docs: list[Any], file: str) -> Iterator[Settings]:
    maps = config_maps(docs)
    for doc in docs:
        for node, pod, _ in walk(doc):
            told = node.get("entrypoint")  # of a RayJob
            text = told if isinstance(told, str) else _text(words_of(node))
            if text:
                name = "/".join(part for part in (pod, node.get("name")) if isinstance(part, str))
                where = f"{file} ({name})"
                yield from command.read_text(text, where, _environ(node, maps, where))


def _text(words: list[str]) -> str:
    """What a shell is given, or the command itself."""
    inner = (word for flag, word in pairwise(words) if re.fullmatch(r"-\w*c", flag))
    # The kubelet fills in $(NAME), as a shell would ${NAME}.
    return next(inner, "") or re.sub(r"\$\((\w+)\)", r"${\1}", shlex.join(words))


def _environ(
    container: Mapping[str, Any], maps: Mapping[str, Mapping[str, Any]], where: str
) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for each in list_of(container.get("envFrom")):
        match each:
            case {"configMapRef": {"name": str(name)}} if name in maps:
                found |= {key: Setting(str(told), where) for key, told in maps[name].items()}
            case {"configMapRef": {"name": name}}:
                # Whether it is in there nobody knows.
                found[CONNECTIONS] = Setting(f"left to {name}", where, is_known=False)
            case _:
                pass
    for each in list_of(container.get("env")):
        match each:
            case {"name": str(name), "value": value}:
                found[name] = Setting(str(value), where)
            case {"name": str(name)}:
                found[name] = Setting(f"${name}", where, is_known=False)
            case _:
                pass
    return found
