"""How NCCL reads a value: numbers, lists of HCAs and interfaces, subsystems of the log."""

from __future__ import annotations

import re
from typing import Final

from commcheck.lazy import dataclass, regex

_NUMBER: Final = regex(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")


@dataclass(frozen=True, slots=True)
class Number:
    """What a base-0 conversion makes of a text. ``whole``: nothing was left over."""

    value: int
    whole: bool
    octal: bool = False
    digits: bool = True  # False: there was no number at all, and NCCL takes 0

    @property
    def is_plain(self) -> bool:
        """True where a person who wrote it got what they meant."""
        return self.whole and self.digits and not self.octal


def number(text: str) -> Number:
    """As ``strtoll(text, &end, 0)``: ``0x6a`` is 106, ``010`` is 8, ``8M`` is 8, ``yes`` is 0."""
    match = _NUMBER.match(text[:64])
    if match is None:
        return Number(0, whole=False, digits=False)
    sign, hexadecimal, octal, decimal = match.groups()
    base, digits = (16, hexadecimal) if hexadecimal else (8, octal) if octal else (10, decimal)
    value = int(digits, base) * (-1 if sign == "-" else 1)
    return Number(value, match.end() == len(text), bool(octal) and len(octal) > 1)


@dataclass(frozen=True, slots=True)
class Names:
    """A list like ``^=mlx5_0:1,mlx5_1``: names with their ports, None where none is said."""

    names: tuple[tuple[str, int | None], ...]
    exact: bool
    excludes: bool

    def takes(self, name: str, port: int | None = None) -> bool:
        """True where NCCL selects the device or interface."""
        hit = any(
            (name == given if self.exact else name.startswith(given))
            and (wanted is None or port is None or wanted == port)
            for given, wanted in self.names
        )
        return hit is not self.excludes


def names(text: str) -> Names:
    """``[^][=]name[:port],...`` as NCCL splits it: blanks are part of a name."""
    excludes = text.startswith("^")
    rest = text[1:] if excludes else text
    exact = rest.startswith("=")
    found: list[tuple[str, int | None]] = []
    for word in (rest[1:] if exact else rest).split(","):
        name, _, port = word.partition(":")
        if name:
            head = port.partition(":")[0]
            found.append((name, int(head) if re.fullmatch(r"\d{1,3}", head) else None))
    return Names(tuple(found), exact, excludes)


LEVELS: Final = ("VERSION", "WARN", "INFO", "ABORT", "TRACE")

SUBSYSTEMS: Final = frozenset(
    [
        "INIT",
        "COLL",
        "P2P",
        "SHM",
        "NET",
        "GRAPH",
        "TUNING",
        "ENV",
        "ALLOC",
        "CALL",
        "PROXY",
        "NVLS",
        "BOOTSTRAP",
        "REG",
        "PROFILE",
        "RAS",
        "DESTROY",
        "ALL",
    ]
)
"""Words of NCCL_DEBUG_SUBSYS (NCCL src/debug.cc)."""

CHATTY: Final = frozenset({"ALL", "COLL", "CALL", "ALLOC", "PROXY", "P2P"})
"""Subsystems that print for every operation."""


def subsystems(text: str, *, trims: bool) -> frozenset[str] | None:
    """The subsystems that are on; None where the default applies.

    ``trims``: from 2.30.7 blanks are cut off, and one unknown word discards the list.
    """
    inverted = text.startswith("^")
    words = (text[1:] if inverted else text).split(",")
    said = [word.strip().upper() if trims else word.upper() for word in words]
    if trims and any(word not in SUBSYSTEMS for word in said):
        return None
    known = frozenset(word for word in said if word in SUBSYSTEMS)
    everything = SUBSYSTEMS - {"ALL"}
    chosen = everything if "ALL" in known else known
    return everything - chosen if inverted else chosen


PATHS: Final = frozenset(
    [
        "LOC",
        "NVL",
        "NVB",
        "C2C",
        "PIX",
        "PXB",
        "P2C",
        "PXN",
        "PHB",
        "SYS",
    ]
)
"""Words of NCCL_NET_GDR_LEVEL and NCCL_P2P_LEVEL: upper case only (NCCL src/graph/topo.cc)."""


def is_path_level(text: str) -> bool:
    """True for a word or an old number that NCCL takes."""
    return text in PATHS or re.fullmatch(r"\d", text) is not None


def stray(text: str) -> str:
    """What in a text value is no part of what was meant, in words; "" where nothing is."""
    if "\r" in text:
        return "a carriage return (the file has DOS line ends)"
    if re.search(r"\s#", text):
        return "a comment (only '#' in the first column begins one)"
    if re.search(r"^['\"]|['\"]$", text):
        return "quotes (they become part of the value)"
    if re.search(r"^\s|\s$", text):
        return "a blank at its beginning or end"
    if re.search(r",\s", text):
        return "a blank behind a comma (the name after it matches nothing)"
    return ""
