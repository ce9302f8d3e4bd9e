"""``commcheck demo``: the climb of ``run``, on the embedded fleet."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from commcheck import commands
from commcheck.demo.fault import Placed, place
from commcheck.demo.parts import tool_names
from commcheck.demo.persona import cast
from commcheck.demo.state import HostState
from commcheck.discover import discover
from commcheck.lookup import readers_of

_QUERY: Final = "--query-gpu="


def demo(*, hosts: int, faults: tuple[str, ...], personas: tuple[str, ...], **options: Any) -> int:
    """Climb on ``hosts`` simulated hosts, of ``personas`` in turn, with ``faults``.

    ``options``: those of ``climb``, and ``connect_timeout`` and ``host_deadline`` in seconds. The
    exit code is that of ``run``.

    Raises ``UsageError`` for a fault, host or persona that there is not.
    """
    states = cast(hosts, personas)
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

    argvs = command_words(options["check_folders"])
    absent = {argv[0] for argv in argvs} - {*tool_names(), *PLAIN}
    states = [replace(state, missing=state.missing | absent) for state in states]
    if "load" in options["allow"].split(","):
        # Who measures the fabric does it on hosts that nobody uses.
        states = [replace(state, job=None) for state in states]
    with Fleet(states, gpu_queries(argvs)) as fleet:

        def visitors(run_id: str, note: commands.Note, _allow: object, _reach: object) -> Any:
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
            return nullcontext(lambda _host: visitor)

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


def command_words(check_folders: tuple[Path, ...]) -> tuple[tuple[str, ...], ...]:
    """The words of every command that the checks ask for."""
    return tuple(
        command.argv
        for reader in readers_of(discover(check_folders, cwd=Path.cwd()))
        for command in reader.commands
    )


PLAIN: Final = frozenset({"cat", "find", "grep", "sh", "sleep"})
"""Programs of this machine that a simulated host has, too: they know only what is named to them.

Others that the fleet does not simulate are missing there: they would tell of this machine.
"""


def gpu_queries(argvs: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The columns that are asked of ``nvidia-smi --query-gpu``: its answers are rendered."""
    return tuple(
        dict.fromkeys(
            word.removeprefix(_QUERY) for argv in argvs for word in argv if word.startswith(_QUERY)
        )
    )
