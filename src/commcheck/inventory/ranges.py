"""Host patterns of an inventory line: ``gpu[01:16].pod1:2222`` to names and a port.

The rules are those of Ansible 2.19: both ends count, a leading zero asks for padding and then
wants both ends of one width, letters run over ``a-zA-Z`` in that order.
"""

from __future__ import annotations

import ipaddress
import re
import string
from typing import Final

from commcheck.lazy import regex

MAX_HOSTS: Final = 65_536
"""Names one pattern may stand for: more is a slip of the keyboard, not a fleet."""

_RANGE: Final = r"\[(?:[A-Za-z]:[A-Za-z]|[0-9]+:[0-9]+)(?::[0-9]+)?\]"
_LABEL: Final = rf"(?:\w|{_RANGE})(?:[\w-]|{_RANGE})*(?<![_-])"
_NAME: Final = regex(rf"{_LABEL}(?:\.{_LABEL})*")
_HEX_RANGE: Final = regex(r"\[[0-9A-Fa-f]+:[0-9A-Fa-f]+(?::[0-9]+)?\]")
_WITH_PORT: Final = regex(r"((?:[^:\[\]]|\[[^\]]*\])*):([0-9]+)")
_BRACKETED: Final = regex(r"\[(.+)\]:([0-9]+)")
_FIRST_RANGE: Final = regex(r"([^\[]*)\[([^\]]*)\](.*)", re.DOTALL)


def split_port(text: str) -> tuple[str, int | None]:
    """A host pattern and the port behind it, if it is an address that may have one.

    What is no address at all is given back as it is, without a port, as Ansible does.
    """
    match = _BRACKETED.fullmatch(text) or _WITH_PORT.fullmatch(text)
    name, port = (match[1], int(match[2])) if match and len(match[2]) < 10 else (text, None)
    return (name, port) if is_address(name) else (text, None)


def is_address(text: str) -> bool:
    """Whether this is a host name or an IP address, ranges included."""
    if _NAME.fullmatch(text):
        return True
    try:
        ipaddress.IPv6Address(_HEX_RANGE.sub("1", text))
    except ValueError:
        return False
    return "%" not in text


def expand(pattern: str) -> list[str]:
    """Every name a pattern stands for, in order. Raises ``ValueError`` with what is wrong."""
    names = [""]
    rest = pattern
    while match := _FIRST_RANGE.fullmatch(rest):
        head, inner, rest = match.groups()
        parts = _parts(inner)
        if len(names) * len(parts) > MAX_HOSTS:
            raise ValueError(f"stands for more than {MAX_HOSTS} hosts")
        names = [f"{name}{head}{part}" for name in names for part in parts]
    if "[" in rest:
        raise ValueError("has a '[' without its ']'")
    return [name + rest for name in names]


def _parts(inner: str) -> list[str]:
    bounds = inner.split(":")
    if len(bounds) not in (2, 3):
        raise ValueError(f"has the range [{inner}]; a range is [begin:end] or [begin:end:step]")
    begin, end = bounds[0] or "0", bounds[1]
    if not end:
        raise ValueError(f"has the range [{inner}], which has no end")
    step = _number(bounds[2], inner) if len(bounds) == 3 else 1
    if step == 0:
        raise ValueError(f"has the range [{inner}] with a step of 0")
    letters = string.ascii_letters
    if len(begin) == len(end) == 1 and begin in letters and end in letters:
        if letters.index(begin) > letters.index(end):
            raise ValueError(f"has the range [{inner}], which begins after its end")
        return list(letters[letters.index(begin) : letters.index(end) + 1 : step])
    width = len(begin) if len(begin) > 1 and begin.startswith("0") else 0
    if width and len(end) != width:
        raise ValueError(f"has the range [{inner}]; with a leading zero both ends need one width")
    first, last = _number(begin, inner), _number(end, inner)
    if first > last:
        raise ValueError(f"has the range [{inner}], which begins after its end")
    if (last - first) // step >= MAX_HOSTS:
        raise ValueError(f"stands for more than {MAX_HOSTS} hosts")
    return [str(number).zfill(width) for number in range(first, last + 1, step)]


def _number(text: str, inner: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ValueError(f"has the range [{inner}], and {text[:20]!r} in it is no number")
    return int(text)
