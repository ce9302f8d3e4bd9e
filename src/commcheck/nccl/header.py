"""The head of an NCCL line, of every version: ``[time ]host:pid:tid [dev] [file:line ]NCCL LEVEL``.

Read backwards from the token, word by word: a search for the whole grammar is quadratic on long
junk, and wrappers put anything in front. A host name that touches the text before it was glued to
another line: it is split there if the name is known from a clean line, else nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from commcheck.lazy import dataclass, regex

PREFIX_MOST: Final = 400
"""Characters before the token that are looked at: NCCL's own head has at most 330."""

_HOST: Final = regex(r"\w[\w-]{0,254}$")
_NUMBER: Final = regex(r"\d{1,10}")
_DEV: Final = regex(r"\[-?\d{1,4}\]")
_MS: Final = regex(r"\d+\.\d+")
_FILE: Final = regex(r"[\w./+-]{1,120}:\d{1,6}")
_FUNCTION: Final = regex(r" \([^()]{0,80}\)$")
_SIGNATURE: Final = regex(r"(\[-?\d{1,4}\]) [^\[\]]{1,300}\):\d{1,6}$")
"""``[0] int send(comm*, void*):46``: plugins in C++ print the function with its types."""

_GREP: Final = regex(r"(?:[^\s:./]{0,99}[./][^\s:]{0,199}:)?(?:\d{1,9}:)?")
"""What grep puts in front: the file's name, the line's number, or both.

A name without a dot or a slash may be a host's, and the line one that another broke into.
"""

_STAMP: Final = regex(r"\[([^\[\]]{4,64})\] $")


@dataclass(frozen=True, slots=True)
class Head:
    """A parsed head: ``start`` is where it begins in the text, ``stamp`` NCCL's own time."""

    host: str
    pid: int
    tid: int
    file: str
    start: int
    stamp: str


def parse_head(text: str, end: int, known: Collection[str], *, first: bool = True) -> Head | None:
    """The head that ends at ``end`` (where `` NCCL `` begins), or None: its host is lost.

    ``known`` are hosts from clean lines. ``first=False``: another head stands before it on the same
    line, so its host must be known.
    """
    base = max(0, end - PREFIX_MOST)
    tail = text[base:end]
    function = _FUNCTION.search(tail)
    if function:
        tail = tail[: function.start()]
    signature = _SIGNATURE.search(tail) if "):" in tail else None
    if signature:
        tail = tail[: signature.end(1)]
    words = tail.split(" ")
    file = ""
    if len(words) > 1 and _FILE.fullmatch(words[-1]) and words[-1].count(":") == 1:
        file = words.pop()
    if len(words) > 1 and _MS.fullmatch(words[-1]):
        words.pop()
    if len(words) > 1 and _DEV.fullmatch(words[-1]):
        words.pop()
    parts = words[-1].rsplit(":", 2)
    if len(parts) != 3 or not all(_NUMBER.fullmatch(part) for part in parts[1:]):
        return None
    place = base + len(" ".join(words)) - len(words[-1])
    # A token without a level, in front: another line broke off there.
    alone = first and " NCCL" not in text[base:place]
    begins = place == 0
    before, host = _split_host(parts[0], known, first=alone, begins=begins)
    if not host:
        return None
    start = place + len(before)
    stamp = _STAMP.search(text[max(0, start - 70) : start])
    return Head(host, int(parts[1]), int(parts[2]), file, start, stamp[1] if stamp else "")


def _split_host(word: str, known: Collection[str], *, first: bool, begins: bool) -> tuple[str, str]:
    """What stands before the host name, and the name; an empty name where it cannot be told."""
    match = _HOST.search(word[-256:])
    if match is None:
        return word, ""
    host = match[0]
    before = word[: len(word) - len(host)]
    greps = begins and _GREP.fullmatch(before) is not None
    if host in known or (first and (greps or _ends_a_wrapper(before))):
        return before, host
    # Glued: the longest known name that ends the word is where the other line broke in.
    for size in range(len(host) - 1, 0, -1):
        if host[-size:] in known:
            return word[:-size], host[-size:]
    return word, ""


def _ends_a_wrapper(before: str) -> bool:
    """True where a host name may follow: the line's start, or a wrapper's closing mark."""
    return not before or before[-1] in "])>\"',\t" or before[-2:] in ("]:", "):", ">:")
