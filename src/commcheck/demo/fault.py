"""What a fault of the embedded fleet is, and how faults are found: one file each."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence

from commcheck.demo import faults
from commcheck.demo.state import HostState
from commcheck.errors import UsageError
from commcheck.fields import near
from commcheck.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of facts on one host, and what finds it.

    ``check`` answers ``status``; everything else that this host shows is blocked by that, gated
    above it, or a pass. ``blinds_root``: nothing can be read as root, so that every check that
    must is in error like it, and the others judge without.
    """

    title: str
    change: Callable[[HostState], HostState]
    check: str
    status: str = "fail"
    blinds_root: bool = False


def known_faults() -> Mapping[str, Fault]:
    """Every fault by name: ``faults/mtu_1500.py`` is ``mtu-1500``."""
    found = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(faults.__path__)):
        loaded = importlib.import_module(f"{faults.__name__}.{module}")
        found[module.replace("_", "-")] = loaded.FAULT
    return found


@dataclass(frozen=True, slots=True)
class Placed:
    """A fault and the host that has it."""

    name: str
    fault: Fault
    host: str


def place(words: Sequence[str], hosts: Sequence[str]) -> tuple[Placed, ...]:
    """Faults as given on the command line, ``NAME`` or ``NAME@HOST``; else the second host's.

    Raises ``UsageError`` for a name that is no fault, or no host of the fleet.
    """
    known, problems, placed = known_faults(), [], []
    for word in words:
        name, _, host = word.partition("@")
        host = host or hosts[min(1, len(hosts) - 1)]
        if name not in known:
            problems.append(f"error: no fault {name!r}{near(name, known)}; see list faults")
        elif host not in hosts:
            problems.append(
                f"error: no host {host!r} in the embedded fleet, "
                f"which is {hosts[0]} to {hosts[-1]}{near(host, hosts)}"
            )
        else:
            placed.append(Placed(name, known[name], host))
    if problems:
        raise UsageError(*problems)
    return tuple(placed)
