"""``mlnx_qos -i DEV``: the layouts from the first public one of 2017 to today's.

Lines are known by their form, not their number: the tool puts warnings on top, and its sections
came over the years. A known line with a broken body is refused, an unknown line is noise. The
traffic classes end the output and carry each of the eight priorities once, so output that was cut
anywhere is missed there and refused.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final, Literal

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.qos import Qos, TrafficClass
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "mlnx_qos"

_DCBX: Final = {"OS controlled": "os", "Firmware controlled": "firmware"}
_FLAGS: Final = regex(r"\tenabled((?:\s+[01]){8})\s*")
_BUFFER_ROW: Final = regex(r"\tbuffer((?:\s+[0-7]){8})\s*")
_DSCP_ROW: Final = regex(r"\tprio:([0-7]) dscp:((?:\d\d,)*)\s*")
_DEFAULT_ROW: Final = regex(r"\tprio:([0-7])\s*")
_BUFFERS: Final = regex(r"((?:\d+,){8})(?:(?:total_size|max_buffer_size)=(\d+))?\s*")
_TC: Final = regex(
    r"tc: ([0-7]) ratelimit: (unlimited|(\d+(?:\.\d+)?) Gbps), "
    r"tsa: (?:(vendor|strict|unknown)|ets, bw: (\d{1,3})%)\s*"
)
_PRIORITY: Final = regex(r"\t priority:  ([0-7])\s*")


@dataclass(slots=True)
class _Draft:
    """What has been read so far."""

    section: str = ""
    found: dict[str, str] = field(default_factory=dict)  # one body for each single line
    dscp_prio: set[tuple[int, int]] | None = None
    default_prio: int | None = None
    classes: list[tuple[re.Match[str], list[int]]] = field(default_factory=list)


def parse(output: Output) -> Qos:
    """The settings; raises ``CommandFailed`` where the tool could not read them."""
    if output.rc != 0:
        raise CommandFailed(*_why(output))
    text = output.text
    draft = _Draft()
    for line in text.split("\n"):
        _take(draft, line, text)
    if "enabled" not in draft.found:
        raise ParseError(TOOL, text, "the eight flags under 'PFC configuration:'")
    rate_known = "Rate limit is not supported on your system" not in text
    classes = tuple(_traffic_class(*each, rate_known=rate_known) for each in draft.classes)
    if sorted(prio for each in classes for prio in each.priorities) != list(range(8)):
        raise ParseError(TOOL, text, "traffic classes with each priority once")
    return _qos(draft, tuple(sorted(classes, key=lambda each: each.tc)), text)


def _take(draft: _Draft, line: str, text: str) -> None:
    """Take one line into the draft; unknown lines are warnings and stderr noise."""
    key, _, rest = line.partition(":")
    if line in ("dscp2prio mapping:", "default priority:", "PFC configuration:"):
        _once(draft, line, "", text)
        draft.section = line
        if line == "dscp2prio mapping:":
            draft.dscp_prio = set()
    elif key in (
        "DCBX mode",
        "Priority trust state",
        "Receive buffer size (bytes)",
        "Cable len",
    ):
        _once(draft, key, rest.removeprefix(" "), text)
    elif line.startswith("\tprio:"):
        _take_prio(draft, line, text)
    elif line.startswith("\tpriority ") and line.split()[1:] != list("01234567"):
        raise ParseError(TOOL, text, f"a table of eight priorities, not {line.strip()!r}")
    elif line.startswith("\tenabled"):
        _once(draft, "enabled", _match(_FLAGS, line, text)[1], text)
    elif line.startswith("\tbuffer"):
        _once(draft, "buffer", _match(_BUFFER_ROW, line, text)[1], text)
    elif line.startswith("tc:"):
        draft.classes.append((_match(_TC, line, text), []))
    elif line.startswith("\t priority:"):
        prio = int(_match(_PRIORITY, line, text)[1])
        if not draft.classes:
            raise ParseError(TOOL, text, "a traffic class before its priorities")
        draft.classes[-1][1].append(prio)


def _take_prio(draft: _Draft, line: str, text: str) -> None:
    # A bare "prio:0" below "default priority:" is no row of the DSCP map.
    if draft.section == "default priority:":
        draft.default_prio = int(_match(_DEFAULT_ROW, line, text)[1])
        return
    row = _match(_DSCP_ROW, line, text)
    if draft.dscp_prio is None:
        raise ParseError(TOOL, text, "'dscp2prio mapping:' before its rows")
    codes = [int(code) for code in row[2].split(",") if code]
    if any(code > 63 for code in codes):
        raise ParseError(TOOL, text, f"DSCP codes up to 63, not {line.strip()!r}")
    # After eight codes the tool begins a second row for the same priority.
    draft.dscp_prio.update((code, int(row[1])) for code in codes)


def _once(draft: _Draft, key: str, body: str, text: str) -> None:
    if key in draft.found:
        raise ParseError(TOOL, text, f"the answer for one interface, but {key!r} is there twice")
    draft.found[key] = body


def _match(pattern: re.Pattern[str], line: str, text: str) -> re.Match[str]:
    match = pattern.fullmatch(line)
    if match is None:
        raise ParseError(TOOL, text, f"a whole line where it says {line.strip()[:60]!r}")
    return match


def _traffic_class(match: re.Match[str], prios: list[int], *, rate_known: bool) -> TrafficClass:
    limit: float | Literal["unlimited"] | None = None
    if rate_known:
        limit = "unlimited" if match[3] is None else float(match[3])
    return TrafficClass(
        tc=int(match[1]),
        priorities=tuple(prios),
        tsa=match[4] or "ets",
        bandwidth_percent=None if match[5] is None else int(match[5]),
        ratelimit_gbits=limit,
    )


def _qos(draft: _Draft, classes: tuple[TrafficClass, ...], text: str) -> Qos:
    found = draft.found
    trust = found.get("Priority trust state")
    if trust is not None and trust.strip() not in ("dscp", "pcp", "none"):
        raise ParseError(TOOL, text, f"trust state dscp, pcp or none, not {trust!r}")
    buffers = total = cable = None
    if "Receive buffer size (bytes)" in found:
        sizes = _match(_BUFFERS, found["Receive buffer size (bytes)"], text)
        buffers = tuple(int(size) for size in sizes[1].rstrip(",").split(","))
        total = None if sizes[2] is None else int(sizes[2])
    if "Cable len" in found:
        cable = int(_match(re.compile(r"(\d+)\s*"), found["Cable len"], text)[1])
    flags = found["enabled"].split()
    return Qos(
        pfc=frozenset(prio for prio, flag in enumerate(flags) if flag == "1"),
        trust=None if trust is None else trust.strip(),
        dcbx=_DCBX.get(found.get("DCBX mode", "").strip()),
        dscp_prio=None if draft.dscp_prio is None else tuple(sorted(draft.dscp_prio)),
        default_prio=draft.default_prio,
        buffers_bytes=buffers,
        buffers_total_bytes=total,
        prio_buffer=tuple(int(each) for each in found["buffer"].split())
        if "buffer" in found
        else None,
        cable_m=cable,
        traffic_classes=classes,
        lldpad_running="WARNING: lldpad service is running" in text,
    )


def _why(output: Output) -> tuple[str, str]:
    """Reason and remedy: the tool fails alike without DCB and without the interface."""
    both = f"{output.text}\n{Output(output.stderr).text}"
    lines = [line.strip() for line in both.splitlines() if line.strip()]
    if any(line.startswith("Traceback ") for line in lines):
        # The last line may be only a bug in the tool's own error path: the first error is why.
        error = re.compile(r"(?:[\w.]*Error|[\w.]*Exception)\b.*")
        said = next((line for line in lines if error.fullmatch(line)), lines[-1])
        return (
            f"mlnx_qos itself broke: {said[:160]}",
            "reinstall mlnx-tools for this Python, or install iproute2 5.11 or newer for dcb",
        )
    if any("not supported on your system" in line for line in lines):
        return (
            "mlnx_qos says that nothing of this is supported here: no DCB on this interface, "
            "or no such interface",
            "",
        )
    return f"mlnx_qos failed with exit code {output.rc}: {output.complaint}", ""


MLNX_QOS: Final = Reader(
    tool=TOOL, commands=(Command((TOOL, "-i", "{netdev}")),), parse=parse, per=Rail
)
