"""What a run keeps of its inventory: hosts, groups, and the variables that verdicts rest on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from commcheck.errors import RunFolderError
from commcheck.inventory.load import Inventory
from commcheck.model import Host, Origin
from commcheck.report.cleaning import masked

PREFIX: Final = "commcheck_"

Json = dict[str, Any]


def take(inventory: Inventory, also: Collection[str] = ()) -> Json:
    """Plain JSON. Of a host's variables those of commcheck and ``also``: no key, no password."""
    return {
        "sources": list(inventory.sources),
        "digest": inventory.digest,
        "groups": {name: list(hosts) for name, hosts in inventory.groups.items()},
        "hosts": [_host(host, also) for host in inventory.hosts],
    }


def restore(kept: Mapping[str, Any]) -> Inventory:
    """The inventory again, as far as it was kept. Raises ``RunFolderError``."""
    try:
        return Inventory(
            hosts=tuple(_restored(each) for each in kept["hosts"]),
            groups={name: texts(hosts) for name, hosts in kept["groups"].items()},
            warnings=(),
            sources=texts(kept["sources"]),
            digest=text(kept["digest"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise RunFolderError(f"the run kept no whole inventory: {error!r}") from error


def _host(host: Host, also: Collection[str]) -> Json:
    kept = {
        name: masked({name: value})[name] if name in also else masked(value)
        for name, value in host.variables.items()
        if name.startswith(PREFIX) or name in also
    }
    return {
        "name": host.name,
        "groups": list(host.groups),
        "platform_group": host.platform_group,
        "origin": str(host.origin),
        "variables": kept,
        "origins": {name: str(host.origins[name]) for name in kept if name in host.origins},
    }


def _restored(kept: Mapping[str, Any]) -> Host:
    return Host(
        name=text(kept["name"]),
        variables=dict(kept["variables"]),
        origins={name: Origin(text(told)) for name, told in kept["origins"].items()},
        groups=texts(kept["groups"]),
        origin=Origin(text(kept["origin"])),
        platform_group=text(kept.get("platform_group", "")),  # older runs did not keep it
    )


def selected(kept: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the hosts that all shards together have. Raises ``RunFolderError``."""
    try:
        return texts(kept.get("selected", []))
    except TypeError as error:
        raise RunFolderError(f"the run kept no whole inventory: {error}") from error


def text(told: object) -> str:
    """What should be text, and comes from a file. Raises ``TypeError`` where it is none."""
    if not isinstance(told, str):
        raise TypeError(f"{told!r:.80} is no text")
    return told


def texts(told: object) -> tuple[str, ...]:
    """A list of texts. Raises ``TypeError`` where it is none."""
    if not isinstance(told, list):
        raise TypeError(f"{told!r:.80} is no list")
    return tuple(map(text, told))
