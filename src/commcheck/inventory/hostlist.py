"""Slurm's lists of nodes: ``gpu-[01-16,20],rack[1-2]n[1-4]`` to names, in their order.

The rules are those of ``scontrol show hostnames`` (Slurm 22.05): both ends of a range count, the
width of its first end is the width of all, several brackets multiply.
"""

from __future__ import annotations

from typing import Final

from commcheck.inventory.ranges import MAX_HOSTS
from commcheck.lazy import regex

COMMA: Final = regex(r",(?![^\[\]]*\])")
"""Outside of brackets."""

_FOLDED: Final = regex(r"[^~*?:][^*?:]*\[[0-9]+[,-][0-9,-]*\][^*?:]*")
_PART: Final = regex(r"(?:[^,\[\]\s]|\[[^\[\]]*\])+")
_BRACKET: Final = regex(r"\[([^\[\]]*)\]")
_RANGE: Final = regex(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def is_folded(text: str) -> bool:
    """True for a list with numbers in brackets, ``n[7,9]`` or ``n[01-16]``, and no glob in it."""
    return _FOLDED.fullmatch(text) is not None


def expand(text: str) -> list[str]:
    """Every name the list stands for; one that is named twice is there twice.

    Raises ``ValueError`` with what is wrong.
    """
    names: list[str] = []
    for part in _parts(text):
        names += _names(part, MAX_HOSTS - len(names))
    return names


def _parts(text: str) -> list[str]:
    """The list cut at the commas that stand outside of brackets."""
    rest = _PART.sub("", text).replace(",", "")
    if rest:
        raise ValueError(f"has {rest[0]!r} where no list of nodes has it")
    return [match[0] for match in _PART.finditer(text)]


def _names(part: str, most: int) -> list[str]:
    names = [""]
    # Odd pieces are what stood in brackets.
    for number, piece in enumerate(_BRACKET.split(part)):
        choices = _numbers(piece, most) if number % 2 else [piece]
        if len(names) * len(choices) > most:
            raise _too_many()
        names = [name + choice for name in names for choice in choices]
    return names


def _numbers(inner: str, most: int) -> list[str]:
    found: list[str] = []
    for word in inner.split(","):
        match = _RANGE.fullmatch(word)
        if match is None:
            raise ValueError(f"has [{inner}]; in brackets stand numbers, as in [01-16,20]")
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high:
            raise ValueError(f"has the range {word}, which begins after its end")
        if len(found) + high - low >= most:
            raise _too_many()
        found += [str(value).zfill(len(match[1])) for value in range(low, high + 1)]
    return found


def _too_many() -> ValueError:
    return ValueError(f"stands for more than {MAX_HOSTS} hosts")
