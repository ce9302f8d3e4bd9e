"""``hccn_tool -stat -g`` and ``-pfc_stat -g``: what each NPU's port counts.

Old releases lack some counters: one that is not there is not zero.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Span, Watched
from commcheck.counters import Counters
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.hccn import PerNpu, per_npu
from commcheck.formats.lines import once, only


def stat(text: str, tool: str) -> Counters:
    """``name:number`` below a heading."""
    head, *lines = text.rstrip("\n").split("\n")
    only(r"packet statistics:", head, text, tool)
    return _counters(lines, r"(\w+):(\d{1,20})", text, tool)


def pfc_stat(text: str, tool: str) -> Counters:
    """Counts by name, and durations in whole milliseconds."""
    return _counters(
        text.rstrip("\n").split("\n"), r"(\w+)(?:=|: )(\d{1,20})(?:\.\d+ms)?", text, tool
    )


def _counters(lines: list[str], pattern: str, text: str, tool: str) -> Counters:
    values: dict[str, str] = {}
    for line in lines:
        found = only(pattern, line, text, tool)
        once(values, found[1], found[2], text, tool)
    if not any(re.match(r"mac_|roce_|[rt]x_pfc", name) for name in values):
        raise ParseError(tool, text, "counters of the port")
    return Counters({name: int(value) for name, value in values.items()})


def watched(of: Watched[PerNpu[Counters]], npu: int) -> Watched[Counters]:
    """The counters of one NPU. Raises ``CommandFailed`` where a reading of the visit lacks it."""
    since = None
    if of.since is not None:
        try:
            since = _span(of.since, npu)
        except CommandFailed:
            since = None  # the earlier run could not read it: there is no earlier reading
    return Watched(_span(of.visit, npu), since)


def _span(span: Span[PerNpu[Counters]], npu: int) -> Span[Counters]:
    return Span(span.first.of(npu), span.last.of(npu), span.seconds)


STAT: Final = per_npu("-stat -g", stat)
PFC_STAT: Final = per_npu("-pfc_stat -g", pfc_stat)
