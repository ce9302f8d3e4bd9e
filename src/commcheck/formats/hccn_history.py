"""``hccn_tool -link_stat -g`` and ``-lldp -g``: when each NPU's link changed, and its neighbour.

The NPU writes down the last changes of its link, newest first, by its own clock.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from commcheck.errors import ParseError
from commcheck.formats.hccn import per_npu
from commcheck.formats.lines import once, only
from commcheck.lazy import dataclass

_TIME: Final = "%a %b %d %H:%M:%S %Y"


@dataclass(frozen=True, slots=True)
class LinkHistory:
    """``changes``: (seconds ago, "UP" or "DOWN"), newest first; older ones are gone."""

    ups: int
    changes: tuple[tuple[int, str], ...]


def link_stat(text: str, tool: str) -> LinkHistory:
    """Records with the clock that they are written by."""
    values: dict[str, str] = {}
    records: list[tuple[datetime, str]] = []
    for line in text.rstrip("\n").split("\n"):
        rest = only(r"\[dev(?:ice|id) \d{1,2}\](.*)", line, text, tool)[1]
        record = re.fullmatch(r"\s+(\w{3} \w{3} .{2} [\d:]{8} \d{4})\s+LINK (UP|DOWN)\s*", rest)
        if record is not None:
            records.append((_time(record[1], text, tool), record[2]))
            continue
        key, colon, value = rest.partition(" : ")
        if not colon and not rest.rstrip().endswith(":"):
            raise ParseError(tool, text, f"key and value, not {rest[:60]!r}")
        once(values, key.strip(" :"), value.strip(), text, tool)
    known = {"current time", "link up count", "link down count", "link change records"}
    if missing := {"current time", "link up count", "link change records"} - values.keys():
        raise ParseError(tool, text, f"a line {min(missing)!r}")
    if unknown := values.keys() - known:
        raise ParseError(tool, text, f"no line {min(unknown)!r}")
    now = _time(values["current time"], text, tool)
    times = [when for when, _ in records]
    if times != sorted(times, reverse=True) or len(set(records)) != len(records):
        raise ParseError(tool, text, "the newest record first, and each once")
    ups = int(only(r"(\d{1,9})", values["link up count"], text, tool)[1])
    return LinkHistory(ups, tuple(((now - when) // timedelta(seconds=1), s) for when, s in records))


def _time(said: str, text: str, tool: str) -> datetime:
    try:
        return datetime.strptime(said, _TIME)  # noqa: DTZ007 - only differences of one clock
    except ValueError:
        raise ParseError(tool, text, "a time like Sun Nov 29 10:08:28 2026") from None


@dataclass(frozen=True, slots=True)
class NpuNeighbour:
    """The switch at the other end, as it calls itself, and its port."""

    switch: str
    port: str


def lldp(text: str, tool: str) -> NpuNeighbour | None:
    """None where nobody is heard: the switch does not send LLDP, or its port is not split."""
    if not text.strip():
        return None
    name = re.findall(r"^System Name TLV\n\t([^\n]+)\n", text, re.MULTILINE)
    port = re.findall(r"^Port ID TLV\n\t(?:\w+: )?([^\n]+)\n", text, re.MULTILINE)
    if len(name) != 1 or len(port) != 1 or not text.rstrip().endswith("End of LLDPDU TLV"):
        raise ParseError(tool, text, "Port ID TLV and System Name TLV, once, to the end")
    return NpuNeighbour(name[0].strip(), port[0].strip())


LINK_STAT: Final = per_npu("-link_stat -g", link_stat)
LLDP: Final = per_npu("-lldp -g", lldp)
