"""Hosts that Slurm knows: the nodes of a partition, or those of a list, that are in service.

So are those that were drained because of commcheck: it is asked whether they are mended.

``-i slurm:gpu-h100`` and ``-i slurm:gpu-[01-16]``. One ``sinfo`` tells nodes, addresses, states
and why a node was taken out. Each node is in the groups of its partitions.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from commcheck.errors import Position
from commcheck.inventory import hostlist
from commcheck.inventory.declared import (
    AddHost,
    Declared,
    Notes,
    Refused,
    SetHost,
    Setting,
    Statement,
    quoted,
)
from commcheck.lazy import dataclass, regex
from commcheck.report.ranges import fold_hosts

PREFIX: Final = "slurm:"

COMMAND: Final = shlex.join(
    ("sinfo", "--noheader", "--all", "--Node", "--format=%N|%o|%R|%T|%u|%E")
)
"""Node, address, partition, state, who set the reason, the reason: a line for each partition."""

_OUT: Final = regex(
    "down|drain(ed|ing)?|error|fail(ing)?|future|inval|power(ed|ing)?_(down|up)|reboot_issued"
)
_OUT_FLAGS: Final = {"~": "powered off", "#": "powering up", "!": "to be powered off",
                     "%": "powering down", "^": "rebooting"}  # fmt: skip
"""Behind a state. Others leave the node in service: ``*`` (silent), ``$`` (maintenance), ``@``.

Source: NODE STATE CODES of sinfo(1).
"""

DRAINED_BY: Final = "commcheck "
"""Begins the reason in a command that a report prints to drain what fails."""

_BUILT_IN: Final = ("all", "ungrouped")


@dataclass(frozen=True, slots=True)
class Node:
    """What Slurm knows of a node. ``out``: why it runs no jobs, "" where it may."""

    name: str
    address: str
    partitions: tuple[str, ...]
    out: str


def parse(text: str) -> tuple[Node, ...]:
    """The nodes of an answer to ``COMMAND``, in its order. Raises ``ValueError``."""
    found: dict[str, Node] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|", 5)]
        if len(cells) != 6 or not cells[0]:
            raise ValueError(f"sinfo printed {quoted(line)}, which is no line of a node")
        name, address, partition, state, user, reason = cells
        before = found[name].partitions if name in found else ()
        found[name] = Node(name, address, (*before, partition), _out(state, user, reason))
    return tuple(found.values())


def _out(state: str, user: str, reason: str) -> str:
    """``drained: bad NIC (root)``."""
    word = re.match(r"[a-z_]*", state.lower())
    base = word[0] if word else ""
    flags = [_OUT_FLAGS[flag] for flag in state[len(base) :] if flag in _OUT_FLAGS]
    told = [base, *flags] if _OUT.fullmatch(base) else flags
    if not told or (told in (["drained"], ["draining"]) and reason.startswith(DRAINED_BY)):
        return ""
    why = f": {reason} ({user})" if reason not in ("", "none") else ""
    return ", ".join(told) + why


def declared(answer: str, source: str) -> Declared:
    """The hosts that a source means. ``answer``: what ``COMMAND`` printed; never raises."""
    notes, at = Notes(), Position(source, 1)
    try:
        nodes = _meant(parse(answer), source.removeprefix(PREFIX).strip(), at)
    except ValueError as error:
        notes.error(at, str(error), "slurm")
        return Declared((), notes)
    except Refused as refused:
        return Declared((), Notes(errors={refused.problem}))
    serving = [node for node in nodes if not node.out]
    absent = list(_absent(nodes))
    if serving:
        for text in absent:
            notes.warning(at, f"not asked: {text}", "slurm")
    else:
        notes.error(at, f"no node is in service: {'; '.join(absent) or 'there is none'}", "slurm")
    return Declared(tuple(_statements(serving, at)), notes)


def _meant(nodes: Sequence[Node], wanted: str, at: Position) -> list[Node]:
    """The nodes of a partition, of a list, or all. A partition comes before a node of its name."""
    of_partition = [node for node in nodes if not wanted or wanted in node.partitions]
    if of_partition:
        return of_partition
    by_name = {node.name: node for node in nodes}
    names = dict.fromkeys(hostlist.expand(wanted))
    missing = [name for name in names if name not in by_name]
    if missing:
        partitions = sorted({each for node in nodes for each in node.partitions})
        near = difflib.get_close_matches(missing[0], [*partitions, *by_name], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        known = f"; its partitions: {', '.join(partitions)}" if len(names) == 1 else ""
        text = f"Slurm knows no partition or node {quoted(fold_hosts(missing))}{hint or known}"
        raise Refused(at, text, "slurm")
    return [by_name[name] for name in names]


def _absent(nodes: Iterable[Node]) -> Iterable[str]:
    """The nodes that are out of service, by what Slurm says of them."""
    by_reason: dict[str, list[str]] = {}
    for node in nodes:
        if node.out:
            by_reason.setdefault(node.out, []).append(node.name)
    for reason, names in by_reason.items():
        yield f"{fold_hosts(names)}, in Slurm {reason}"


def _statements(nodes: Iterable[Node], at: Position) -> Iterable[Statement]:
    for node in nodes:
        groups = [each for each in node.partitions if each not in _BUILT_IN]
        for group in groups or ["ungrouped"]:
            yield AddHost(node.name, group, at)
        if node.address not in ("", node.name):
            yield SetHost(node.name, Setting("ansible_host", node.address, at))
