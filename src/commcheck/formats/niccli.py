"""``niccli -dev N get_qos``: the quality-of-service settings of a Broadcom port (root).

The tool counts its devices itself (from 1), so the port's index is looked up in ``niccli --list``
on the host. It takes a second for each port, so it is left alone where ``dcb`` tells the same.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.formats.qos import Qos, TrafficClass
from commcheck.lazy import dataclass
from commcheck.model import Rail

TOOL: Final = "niccli"

SCRIPT: Final = """\
command -v niccli >/dev/null || { echo niccli: not found >&2; exit 127; }
if dcb -j pfc show dev "$2" >/dev/null 2>&1; then
  echo "not asked: dcb tells the same" >&2
  exit 1
fi
l=$(niccli --list) || { r=$?; printf '%s\\n' "$l"; exit $r; }
n=$(printf '%s\\n' "$l" | grep -iF " $1 " | while read -r i rest; do echo "${i%)}"; done)
case $n in '' | *[!0-9]*) echo "niccli lists no one device at $1" >&2; exit 1 ;; esac
o=$(niccli -dev "$n" get_qos)
r=$?
case $o in
  *'PFC enabled'*) ;;
  *) if p=$(niccli -i "$n" getqos); then o=$p r=0; fi ;;
esac
printf '%s\\n' "$o"
exit $r
"""
"""$1 the PCI address as the tool writes it, $2 the netdev. Older releases spell the call otherwise.
"""

_TSA: Final = {"ets": "ets", "strict": "strict"}


@dataclass(frozen=True, slots=True)
class NicCliDevice:
    """A device as the tool lists it."""

    index: int
    board: str
    firmware: str
    pci: str


def parse(output: Output) -> Qos:
    """PFC, DSCP map and traffic classes."""
    require_ok(output, TOOL)
    text = output.text
    fields: dict[str, str] = {}
    apps: list[dict[str, str]] = []
    for line in whole_lines(text, TOOL):
        key, colon, value = line.strip().partition(":")
        if not colon:
            continue
        if re.fullmatch(r"APP#\d+", key):
            apps.append({})
        elif key in ("Priority", "Sel", "DSCP", "UDP or DCCP", "Ethertype"):
            if not apps or key in apps[-1]:
                raise ParseError(TOOL, text, f"APP# before its {key}, once")
            apps[-1][key] = value.strip()
        elif key in ("PRIO_MAP", "TC Bandwidth", "TSA_MAP", "PFC enabled", "TC Rate Limit"):
            if key in fields:
                raise ParseError(TOOL, text, f"{key} once")
            fields[key] = value.strip()
    # The rate limits end the answer.
    if missing := {"PRIO_MAP", "TSA_MAP", "PFC enabled", "TC Rate Limit"} - fields.keys():
        raise ParseError(TOOL, text, f"a line {min(missing)}")
    return Qos(
        pfc=_priorities(fields["PFC enabled"], text),
        dscp_prio=(pairs := _dscp(apps, text)),
        trust="dscp" if pairs else "pcp",
        traffic_classes=_classes(fields, text),
    )


def _priorities(value: str, text: str) -> frozenset[int]:
    if value == "none":
        return frozenset()
    only(r"[0-7](?:[ ,]+[0-7])*", value, text, TOOL)
    return frozenset(map(int, re.findall(r"[0-7]", value)))


def _dscp(apps: list[dict[str, str]], text: str) -> tuple[tuple[int, int], ...]:
    pairs = set()
    for app in apps:
        if not {"Priority", "Sel"} <= app.keys() or len(app) != 3:
            raise ParseError(TOOL, text, "priority, selector and protocol of each APP entry")
        if app["Sel"] == "5":  # IEEE 802.1Qaz: selector 5 is DSCP, 3 a UDP port
            if "DSCP" not in app:
                raise ParseError(TOOL, text, "the DSCP of an APP entry")
            dscp = int(only(r"\d{1,2}", app["DSCP"], text, TOOL)[0])
            pairs.add((dscp, int(only("[0-7]", app["Priority"], text, TOOL)[0])))
    return tuple(sorted(pairs))


def _classes(fields: dict[str, str], text: str) -> tuple[TrafficClass, ...]:
    pair = r"[0-7]:\w+(?: [0-7]:\w+)*"
    prio_tc = dict(
        each.split(":") for each in only(pair, fields["PRIO_MAP"], text, TOOL)[0].split()
    )
    tsa = dict(each.split(":") for each in only(pair, fields["TSA_MAP"], text, TOOL)[0].split())
    if (
        len(prio_tc) != 8
        or not set(prio_tc.values()) <= tsa.keys()
        or not set(tsa.values()) <= {*_TSA}
    ):
        raise ParseError(TOOL, text, "the class of each priority, and the scheduling of each class")
    shares = re.findall(r"(\d{1,3})%", fields.get("TC Bandwidth", ""))
    return tuple(
        TrafficClass(
            tc=int(tc),
            priorities=tuple(int(prio) for prio, of in sorted(prio_tc.items()) if of == tc),
            tsa=tsa[tc],
            bandwidth_percent=int(shares[int(tc)])
            if tsa[tc] == "ets" and int(tc) < len(shares)
            else None,
        )
        for tc in sorted(set(prio_tc.values()))
    )


def parse_list(output: Output) -> tuple[NicCliDevice, ...]:
    """The devices with their indices."""
    require_ok(output, TOOL)
    text = output.text
    row = re.compile(
        r"\s*(\d+)\) +(\S+) +[0-9A-F:]{17} +(\S+) +((?:[0-9A-Fa-f]{2}:){3}[0-9A-Fa-f]{2}) .*"
    )
    found = []
    for line in whole_lines(text, TOOL):
        if re.match(r"\s*\d+\)", line):
            match = only(row, line, text, TOOL)
            domain, bus, device, function = match[4].lower().split(":")
            pci = f"{domain:0>4}:{bus}:{device}.{int(function, 16)}"
            found.append(NicCliDevice(int(match[1]), match[2], match[3], pci))
    if not found:
        raise ParseError(TOOL, text, "a list of devices")
    return tuple(found)


def parse_dscp2prio(output: Output) -> tuple[tuple[int, int], ...]:
    """(DSCP, priority) pairs."""
    require_ok(output, TOOL)
    text = output.text
    row = re.compile(r"\s+priority:([0-7]) +dscp: (\d{1,2}(?:[ ,]+\d{1,2})*)\s*")
    lines = [line for line in whole_lines(text, TOOL) if line.strip()]
    if not lines or lines[0] != "dscp2prio mapping:":
        raise ParseError(TOOL, text, "'dscp2prio mapping:'")
    pairs = set()
    for line in lines[1:]:
        match = only(row, line, text, TOOL)
        pairs |= {(int(code), int(match[1])) for code in re.findall(r"\d+", match[2])}
    return tuple(sorted(pairs))


NICCLI: Final = Reader(
    tool=TOOL,
    commands=(
        Command(
            ("sh", "-c", SCRIPT, "sh", "{bnxt_pci}", "{netdev}"),
            timeout_s=20,
            root=True,
            said_as=(TOOL, "get_qos", "{netdev}"),
        ),
    ),
    parse=parse,
    per=Rail,
)
NICCLI_LIST: Final = Reader(
    tool="niccli-list", commands=(Command((TOOL, "--list"), root=True),), parse=parse_list
)
NICCLI_DSCP: Final = Reader(
    tool="niccli-dscp2prio",
    commands=(Command((TOOL, "-dev", "1", "get_dscp2prio"), root=True),),
    parse=parse_dscp2prio,
)
