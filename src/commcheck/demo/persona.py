"""What kind of machine a simulated host is, and how the kinds are found: one file each."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from commcheck.demo import personas
from commcheck.demo.state import HostState, healthy
from commcheck.errors import UsageError
from commcheck.fields import near
from commcheck.lazy import dataclass

DEFAULT = "h100-roce"


@dataclass(frozen=True, slots=True)
class Persona:
    """A generation of hosts.

    ``change``: from an H100 host with RoCE at 400 Gb/s. ``declared``: what an inventory says of
    such hosts; nothing of it is a default of commcheck. ``like``: other personas that can have its
    faults as they are.
    """

    title: str
    change: Callable[[HostState], HostState]
    declared: Mapping[str, object]
    like: tuple[str, ...] = ()


def known_personas() -> Mapping[str, Persona]:
    """Every persona by name: ``personas/h200_ib.py`` is ``h200-ib``."""
    found = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(personas.__path__)):
        loaded = importlib.import_module(f"{personas.__name__}.{module}")
        found[module.replace("_", "-")] = loaded.PERSONA
    return found


def cast(hosts: int, names: Sequence[str] = ()) -> list[HostState]:
    """Healthy hosts, the personas given to them in turn.

    Raises ``UsageError`` for a name that is no persona.
    """
    known = known_personas()
    problems = [
        f"error: no persona {name!r}{near(name, known)}; one of {', '.join(known)}"
        for name in dict.fromkeys(names)
        if name not in known
    ]
    if problems:
        raise UsageError(*problems)
    given = names or (DEFAULT,)
    return [become(given[index % len(given)], healthy(index + 1), known) for index in range(hosts)]


def become(name: str, host: HostState, known: Mapping[str, Persona]) -> HostState:
    """The host as one of that persona; only its own kind are its peers.

    One that is of it already, or of one like it, stays as it is, with what is broken there: faults
    that need a persona may meet on one host, and peers stay peers.
    """
    persona = known[name]
    if any(("commcheck_peers", each) in host.declared for each in (name, *persona.like)):
        return host
    declared = {**persona.declared, "commcheck_peers": name}
    return replace(persona.change(host), declared=tuple(declared.items()))
