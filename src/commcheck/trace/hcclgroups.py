"""What HCCL's groups are called and whose they are, by profiler_metadata.json beside a trace.

An operator's name carries the last three digits of its group's hash, ``hcom_send__868_0_1``, and
the whole hash where it ends in ``@HASH``. Source: torch_npu and msprof-analyze (double_hash,
parallel_group_info); MindSpeed and Megatron name their groups there: tp, pp, cp, dp_cp.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final, NamedTuple

from commcheck.files import read_whole
from commcheck.lazy import dataclass
from commcheck.trace.source import Held, Source
from commcheck.trace.store import Transfer, of_members

NAME: Final = "profiler_metadata.json"
_BYTES_MOST: Final = 4 << 20
_MASK: Final = 0xFFFFFFFF
_OF_ALL: Final = frozenset({"default_group", "hccl_world_group"})
"""The group of all ranks, as torch_npu and MindSpore call it."""


class _Group(NamedTuple):
    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """``world``: how many ranks the job has, None where that is not told."""

    by_id: Mapping[str, _Group] = field(default_factory=dict)
    world: int | None = None

    def told(self, transfer: Transfer) -> Transfer:
        """The transfer with what is told of its group; as it is where nothing is."""
        group = self.by_id.get(transfer.group)
        if group is None:
            return transfer
        about = transfer._replace(about=group.name)
        if not group.ranks:
            return about
        # Two groups may have the same ranks, and count their operators each for itself.
        name = of_members(group.ranks, transfer.group)
        return about._replace(group=name, group_size=len(group.ranks))


def beside(path: Source) -> Groups:
    """The groups that the file beside a trace tells; none where there is no such file."""
    if isinstance(path, Held):
        return Groups()
    for folder in Path(os.path.realpath(path)).parents[:2]:
        try:
            told = json.loads(read_whole(folder / NAME, _BYTES_MOST))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(told, dict):
            return _groups(told)
    return Groups()


def _groups(told: Mapping[str, object]) -> Groups:
    listed, args = told.get("parallel_group_info"), told.get("distributed_args")
    groups = {
        key: _group(about)
        for key, about in (listed.items() if isinstance(listed, dict) else ())
        if isinstance(about, dict)
    }
    world = args.get("world_size") if isinstance(args, dict) else None
    sizes = [len(each.ranks) for each in groups.values() if each.name in _OF_ALL and each.ranks]
    if isinstance(world, bool) or not isinstance(world, int) or world < 1:
        world = max(sizes, default=None)
    return Groups(_by_id(groups), world)


def _group(about: Mapping[str, object]) -> _Group:
    told = about.get("global_ranks")
    ranks = tuple(told) if isinstance(told, list) else ()
    sound = all(type(rank) is int and rank >= 0 for rank in ranks)
    return _Group(str(about.get("group_name") or ""), ranks if sound else ())


def _by_id(groups: Mapping[str, _Group]) -> Mapping[str, _Group]:
    found: dict[str, set[_Group]] = {}
    for key, group in groups.items():
        whole = hash_of(key)
        for said in {str(whole), f"{whole % 1000}", f"{whole % 1000:03}"}:
            found.setdefault(said, set()).add(group)
    by_id = {}
    for said, mine in found.items():
        # Three digits may be those of two groups: then they tell no more than what both are.
        names = {group.name for group in mine}
        if len(names) == 1:
            by_id[said] = mine.pop() if len(mine) == 1 else _Group(names.pop(), ())
    return by_id


def hash_of(key: str) -> int:
    """The number that the profiler makes of a group's key."""
    high = low = 0
    for letter in key:
        high = (high * 29 + ord(letter)) & _MASK
        low = (low * 131 + ord(letter)) & _MASK
    return high << 32 | low
