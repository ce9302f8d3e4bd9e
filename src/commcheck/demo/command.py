"""``commcheck demo``: the climb of ``run``, on the embedded fleet."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from commcheck import commands
from commcheck.demo.fault import Placed, place
from commcheck.demo.state import HostState, healthy
from commcheck.discover import discover
from commcheck.lookup import readers_of

_QUERY: Final = "--query-gpu="


def demo(*, hosts: int, faults: tuple[str, ...], **options: Any) -> int:
    """Climb on ``hosts`` simulated hosts with ``faults``. ``options``: those of ``climb``, and
    ``connect_timeout`` and ``host_deadline`` in seconds. The exit code is that of ``run``.

    Raises ``UsageError`` for a fault or host that there is not.
    """
    states = [healthy(number) for number in range(1, hosts + 1)]
    placed = place(faults, [state.name for state in states])
    return climb([broken(state, placed) for state in states], placed, **options)


def broken(state: HostState, placed: Iterable[Placed]) -> HostState:
    """The host with the faults that are placed on it, in their order."""
    for each in placed:
        if each.host == state.name:
            state = each.fault.change(state)
    return state


def climb(
    states: list[HostState],
    placed: Iterable[Placed],
    *,
    connect_timeout: float,
    host_deadline: float,
    forks: int,
    **options: Any,
) -> int:
    """Start the fleet, climb on it, end it."""
    from commcheck.collect.ssh import SshSettings
    from commcheck.demo.fleet import INVENTORY, DemoVisitor, Fleet

    queries = gpu_queries(options["check_folders"])
    with Fleet(states, queries) as fleet:

        def visitors(run_id: str, note: commands.Note) -> Any:
            for each in placed:
                note(f"simulated fault {each.name} on {each.host}: {each.fault.title}")
            visitor = DemoVisitor(
                fleet,
                SshSettings(
                    run_id=run_id,
                    connect_timeout_s=connect_timeout,
                    host_deadline_s=host_deadline,
                    note=note,
                ),
            )
            return lambda _host: visitor

        return commands.climb(
            inventory=(INVENTORY,),
            inventory_from=fleet.folder,
            visitors=visitors,
            # All hosts share this machine's cores: fewer at a time, and the first is done sooner.
            forks=min(forks, 2 * (os.cpu_count() or 1)),
            reach={"simulated": ", ".join(f"{each.name}@{each.host}" for each in placed) or "yes"},
            host_deadline_s=host_deadline,
            **options,
        )


def gpu_queries(check_folders: tuple[Path, ...]) -> tuple[str, ...]:
    """The columns that the checks ask of ``nvidia-smi --query-gpu``: its answers are rendered."""
    words = (
        word
        for reader in readers_of(discover(check_folders, cwd=Path.cwd()))
        for command in reader.commands
        for word in command.argv
    )
    return tuple(
        dict.fromkeys(word.removeprefix(_QUERY) for word in words if word.startswith(_QUERY))
    )
