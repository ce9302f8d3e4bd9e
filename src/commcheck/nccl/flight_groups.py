"""Process groups of a job, as the flight recorders of its ranks tell them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from commcheck.lazy import dataclass
from commcheck.model import Verdict
from commcheck.nccl.flight import Dump, Entry

WATCHED: Final = ("nccl", "hccl", "mccl")
"""Backends whose states a watchdog follows; with gloo every entry stays ``scheduled``."""

ALL_DUMPS: Final = (
    "copy the dumps of all ranks, and set TORCH_FR_BUFFER_SIZE=20000 before (older PyTorch: "
    "TORCH_NCCL_TRACE_BUFFER_SIZE)"
)


@dataclass(frozen=True, slots=True)
class Parted:
    """A verdict, whom it blames, and who waits for them."""

    verdict: Verdict
    culprits: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Group:
    """One process group: its members, and each one's collectives by number."""

    name: str
    about: str
    members: tuple[int, ...]
    entries: Mapping[int, Mapping[int, Entry]]  # rank -> number -> entry

    @property
    def label(self) -> str:
        """How reports name it."""
        return f"{self.name} ({self.about})" if self.about else self.name

    @property
    def silent(self) -> tuple[int, ...]:
        """Members of which nothing is recorded: no dump, or a ring that has lost their part."""
        return tuple(rank for rank in self.members if rank not in self.entries)


def by_rank(dumps: Sequence[Dump]) -> dict[int, Dump]:
    """The dumps by global rank, the first of each; whose name holds no rank is left out."""
    found: dict[int, Dump] = {}
    for each in dumps:
        if each.rank is not None:
            found.setdefault(each.rank, each)
    return found


def groups(dumps: Mapping[int, Dump]) -> tuple[Group, ...]:
    """Every process group that anybody recorded; the one of most members first."""
    members: dict[str, set[int]] = defaultdict(set)
    about: dict[str, str] = {}
    entries: dict[str, dict[int, dict[int, Entry]]] = defaultdict(dict)
    for rank, dump in dumps.items():
        for name, ranks in dump.members.items():
            members[name] |= set(ranks)
            about.setdefault(name, dump.groups.get(name, ""))
        for entry in dump.entries:
            collectives = entries[entry.group].setdefault(rank, {})
            if not entry.is_p2p:
                collectives[entry.seq] = entry
    found = []
    for name, of_ranks in entries.items():
        # With gloo the default group's name is empty in pg_config, and "0" in the entries.
        unnamed = members.get("", set()) if len(entries) == 1 else set()
        listed = members.get(name) or unnamed or set(of_ranks)
        for rank in listed & set(dumps):
            of_ranks.setdefault(rank, {})
            if dumps[rank].has_lost and not of_ranks[rank]:
                del of_ranks[rank]
        told = tuple(sorted(listed | set(of_ranks)))
        found.append(Group(name, about.get(name, ""), told, of_ranks))
    return tuple(sorted(found, key=lambda group: (-len(group.members), group.name)))


def some(ranks: Sequence[int]) -> str:
    """``ranks 0-3, 7``: long lists are cut."""
    parts: list[str] = []
    start = last = None
    for rank in [*sorted(ranks), None]:
        if start is None:
            start = last = rank
        elif rank is not None and last is not None and rank == last + 1:
            last = rank
        else:
            parts.append(f"{start}" if start == last else f"{start}-{last}")
            start = last = rank
    shown = ", ".join(parts[:6]) + (f" and more, {len(ranks)} in all" if len(parts) > 6 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"
