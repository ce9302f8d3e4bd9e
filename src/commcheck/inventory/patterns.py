"""Ansible's host patterns over an inventory: ``gpu:&rack1:!gpu-07``, ``gpu[0:3]``, ``~gpu-0[1-3]``.

Besides, names as every report folds them and Slurm prints them: ``gpu-[07,09-12]``.
The order of evaluation is fixed, whatever the order in the text: first what adds, then every
``&``, then every ``!``. The answer is in inventory order.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from commcheck.errors import InventoryError
from commcheck.files import opened
from commcheck.inventory import hostlist
from commcheck.inventory.declared import quoted
from commcheck.inventory.load import Inventory
from commcheck.inventory.ranges import expand, is_address, split_port
from commcheck.lazy import dataclass, regex
from commcheck.model import Host

_PIECE: Final = regex(r"(?:[^\s:\[\]]|\[[^\]]*\])+")
_SUBSCRIPT: Final = regex(r"(.+)\[(?:(-?[0-9]+)|([0-9]+)[:-]([0-9]*))\]", re.DOTALL)
_MAX_FILE: Final = 1 << 20


class NoSuchName(InventoryError):
    """A pattern names what the inventory does not have, or no longer."""


def select(inventory: Inventory, pattern: str, *, cwd: Path) -> tuple[Host, ...]:
    """The hosts that a pattern means, in inventory order.

    ``@file`` in it stands for the patterns in a file, one a line, relative to ``cwd``. Raises
    ``InventoryError`` where a name in it is unknown, or where it means no host.
    """
    hosts = matching(inventory, pattern, cwd=cwd)
    if not hosts:
        raise InventoryError(f"the pattern {quoted(pattern)} selects no host")
    return hosts


def matching(inventory: Inventory, pattern: str, *, cwd: Path) -> tuple[Host, ...]:
    """As ``select``, but a pattern of known names may mean no host: a group may be empty."""
    hosts, missing = still_there(inventory, pattern, cwd=cwd)
    for problem in missing:
        raise problem
    return hosts


def still_there(
    inventory: Inventory, pattern: str, *, cwd: Path
) -> tuple[tuple[Host, ...], tuple[NoSuchName, ...]]:
    """As ``matching``, but unknown names raise nothing: the hosts that are left, and what is not.

    Nobody is left where an unknown name stands behind ``&`` or ``!``: no more hosts are meant
    than whoever wrote it could mean.
    """
    pieces = [piece for each in _split(pattern) for piece in _from_file(each, cwd)]
    if not pieces:
        raise InventoryError(f"the pattern {quoted(pattern)} is empty")
    names = {host.name: None for host in inventory.hosts}
    missing: list[NoSuchName] = []
    chosen = _evaluate(_Matcher(inventory.groups, names), pieces, missing)
    return tuple(host for host in inventory.hosts if host.name in chosen), tuple(missing)


def _split(pattern: str) -> list[str]:
    if hostlist.COMMA.search(pattern):
        pieces = hostlist.COMMA.split(pattern)
    elif is_address(split_port(pattern)[0]):
        pieces = [pattern]  # an IPv6 address or a range: its colons do not separate
    else:
        pieces = _PIECE.findall(pattern)
    return [piece.strip() for piece in pieces if piece.strip()]


def _from_file(piece: str, cwd: Path) -> list[str]:
    if not piece.startswith("@"):
        return [piece]
    try:
        with opened(cwd / piece[1:]) as file:
            data = file.read(_MAX_FILE + 1)
        lines = [line.strip() for line in data.decode().splitlines()]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InventoryError(f"cannot read the limit file {quoted(piece[1:])}: {reason}") from error
    if len(data) > _MAX_FILE:
        raise InventoryError(f"the limit file {quoted(piece[1:])} is larger than 1 MiB")
    names = [line for line in lines if line and not line.startswith("#")]
    if not names:
        # Ansible would run on every host here.
        raise InventoryError(f"the limit file {quoted(piece[1:])} names no host")
    return names


def _evaluate(matcher: _Matcher, pieces: list[str], missing: list[NoSuchName]) -> set[str]:
    adding = [piece for piece in pieces if piece[0] not in "&!"]
    chosen: set[str] = set()
    for piece in adding or ["all"]:
        try:
            chosen |= matcher.hosts(piece, may_be_none=False)
        except NoSuchName as problem:
            missing.append(problem)
    try:
        for piece in pieces:
            if piece[0] == "&":
                chosen &= matcher.hosts(piece[1:], may_be_none=True)
        for piece in pieces:
            if piece[0] == "!":
                chosen -= matcher.hosts(piece[1:], may_be_none=True)
    except NoSuchName as problem:
        missing.append(problem)
        return set()
    return chosen


class _Matcher:
    """Matches one piece of a pattern, without its ``&`` or ``!``."""

    def __init__(self, groups: Mapping[str, tuple[str, ...]], names: Mapping[str, None]) -> None:
        self._groups = groups
        self._names = names

    def hosts(self, piece: str, *, may_be_none: bool) -> set[str]:
        """The names it means. Raises ``NoSuchName`` for an unknown one.

        ``may_be_none``: a glob that matches nothing is no error where it only takes away.
        """
        if piece in self._names and (not may_be_none or piece not in self._groups):
            return {piece}
        expression, subscript = _split_subscript(piece)
        if (subscript is None or expression not in self._groups) and (names := self._folded(piece)):
            return names
        found = self._matches(expression)
        if found is None:
            if may_be_none and _is_wild(expression):
                return set()
            raise NoSuchName(self._unknown(piece))
        return set(subscript.of(found, piece) if subscript else found)

    def _folded(self, piece: str) -> set[str]:
        """The hosts of a folded list; empty where it is none, or a range with unknown ends.

        Raises ``NoSuchName`` for an unknown one in a list: a glob would take ``[7,99]`` for
        characters, and ``n7`` and ``n9`` for what was meant.
        """
        try:
            names = hostlist.expand(piece) if hostlist.is_folded(piece) else []
        except ValueError:
            return set()
        missing = [name for name in names if name not in self._names]
        if missing and "," in piece:
            raise NoSuchName(f"there is no host {quoted(missing[0])}, of {quoted(piece)}")
        return set() if missing else set(names)

    def _matches(self, expression: str) -> list[str] | None:
        """Names in Ansible's order, doubled where several groups match; None: nothing is known."""
        try:
            is_match = re.compile(
                expression[1:] if expression.startswith("~") else fnmatch.translate(expression)
            ).match
        except (re.error, RecursionError, OverflowError) as error:
            raise InventoryError(
                f"the pattern {quoted(expression)} is no regular expression: {error}"
            ) from error
        groups = [group for group in self._groups if is_match(group)]
        found = [name for group in groups for name in self._groups[group]]
        if not groups or _is_wild(expression) or "." in expression:
            found += [name for name in self._names if is_match(name)]
        return found if groups or found else None

    def _unknown(self, piece: str) -> str:
        if _is_wild(piece):
            return f"the pattern {quoted(piece)} matches no host and no group{self._range(piece)}"
        known = {name.lower(): name for name in (*self._names, *self._groups)}
        near = difflib.get_close_matches(piece.lower(), known, 1)
        hint = f"; did you mean {known[near[0]]}?" if near else ""
        return f"there is no host and no group {quoted(piece)}{hint}"

    def _range(self, piece: str) -> str:
        """The hint where brackets behind a host's name were not meant as a subscript."""
        expression, subscript = _split_subscript(piece)
        if subscript is None:
            return ""
        try:
            meant = [name for name in expand(piece) if name in self._names]
        except ValueError:
            meant = [name for name in self._names if fnmatch.fnmatchcase(name, piece)]
        if not meant:
            return ""
        names = ",".join(meant) if len(meant) <= 8 else f"{expression.partition('[')[0]}*"
        return (
            f"; {piece[len(expression) :]} at the end of a pattern counts members of a group, "
            f"and there is no group {quoted(expression)}: write {names}"
        )


@dataclass(frozen=True, slots=True)
class _Subscript:
    """``[2]``, ``[-1]``, ``[1:3]`` (both ends count) or ``[1:]``."""

    first: int
    last: int | None

    def of(self, names: list[str], piece: str) -> list[str]:
        """The members it means. Raises ``NoSuchName`` where there is no such member."""
        if not names:
            return []
        if self.last is not None:
            return names[self.first : (len(names) if self.last < 0 else self.last + 1)]
        try:
            return [names[self.first]]
        except IndexError:
            raise NoSuchName(
                f"the pattern {quoted(piece)} asks for a member that is not there: "
                f"it has {len(names)}, counted from 0"
            ) from None


def _split_subscript(piece: str) -> tuple[str, _Subscript | None]:
    match = None if piece.startswith("~") else _SUBSCRIPT.fullmatch(piece)
    if match is None or any(len(number or "") > 9 for number in match.groups()[1:]):
        return piece, None
    expression, single, first, last = match.groups()
    if single is not None:
        return expression, _Subscript(int(single), None)
    # Ansible reads [n:0] as [n].
    return expression, _Subscript(int(first), (int(last) or None) if last else -1)


def _is_wild(expression: str) -> bool:
    return expression.startswith("~") or any(char in expression for char in "*?[")
