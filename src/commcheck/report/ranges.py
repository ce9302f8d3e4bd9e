"""Host names folded to ClusterShell's range notation: ``node-[0001-0950,0953]``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from commcheck.lazy import regex

_DIGITS: Final = regex(r"[0-9]+")

_Slot = tuple[str, str]  # what stands before and after the number that varies


def natural(name: str) -> tuple[tuple[str, int, int], ...]:
    """Sort key that puts ``node-9`` before ``node-10``; digits of equal value sort by width."""
    words = _DIGITS.split(name)
    numbers = [(int(digits), len(digits)) for digits in _DIGITS.findall(name)]
    return tuple((word, *number) for word, number in zip(words, [*numbers, (-1, 0)], strict=True))


def fold_hosts(names: Iterable[str]) -> str:
    """Names in natural order, folded on the number that folds most; zero padding is kept."""
    members: defaultdict[_Slot | str, set[str]] = defaultdict(set)
    unique = set(names)
    slots = {name: _slots(name) for name in unique}
    sizes = Counter(slot for each in slots.values() for slot in each)
    for name in unique:
        # The last number wins a tie: in rack1-node2 it is the node that one counts.
        best = max(reversed(slots[name]), key=lambda slot: sizes[slot], default=None)
        if best is None or "[" in name:
            members[name].add("")
        else:
            members[best].add(_number(name, best))
    parts: list[tuple[str, str]] = []
    for slot, numbers in members.items():
        if isinstance(slot, str):
            parts.append((slot, slot))
        else:
            parts += _ranges(slot, numbers)
    return ",".join(text for _, text in sorted(parts, key=lambda part: natural(part[0])))


def _slots(name: str) -> list[_Slot]:
    return [(name[: match.start()], name[match.end() :]) for match in _DIGITS.finditer(name)]


def _number(name: str, slot: _Slot) -> str:
    return name[len(slot[0]) : len(name) - len(slot[1])]


def _ranges(slot: _Slot, numbers: set[str]) -> list[tuple[str, str]]:
    """One text per zero padding: ``n[8-9]`` and ``n[08-10]`` are different hosts."""
    padded = {len(digits) for digits in numbers if digits.startswith("0") and len(digits) > 1}
    by_width: defaultdict[int, list[int]] = defaultdict(list)
    for digits in numbers:
        by_width[len(digits) if len(digits) in padded else 0].append(int(digits))
    before, after = slot
    texts = []
    for width, values in by_width.items():
        runs = [
            f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}"
            for low, high in _runs(sorted(values))
        ]
        first = f"{before}{min(values):0{width}d}{after}"
        text = first if len(values) == 1 else f"{before}[{','.join(runs)}]{after}"
        texts.append((first, text))
    return texts


def _runs(values: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return runs
