"""``dcb -j {pfc,app,dcbx} show dev DEV`` of iproute2: the kernel's own view of the same settings.

A port trusts DSCP exactly where its APP table has a DSCP entry: the kernel's rule, and what
mlnx_qos prints on a kernel without the vendor's driver.
"""

from __future__ import annotations

import json
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.qos import Qos
from commcheck.model import Rail

TOOL: Final = "dcb"


def parse(pfc: Output, app: Output, dcbx: Output) -> Qos:
    """The settings. A driver without APP table or DCBX leaves trust or DCBX unknown."""
    require_ok(pfc, "dcb pfc show")
    dscp_prio, default_prio = parse_app(app) if app.rc == 0 else (None, None)
    trust = None
    if dscp_prio is not None:
        trust = "dscp" if dscp_prio else "pcp"
    return Qos(
        pfc=parse_pfc(pfc),
        trust=trust,
        dcbx=parse_dcbx(dcbx) if dcbx.rc == 0 else None,
        dscp_prio=dscp_prio,
        default_prio=default_prio,
    )


def parse_pfc(output: Output) -> frozenset[int]:
    """Priorities with PFC on."""
    flags = _object(output).get("prio_pfc")
    if (
        not isinstance(flags, list)
        or len(flags) != 8
        or not all(isinstance(flag, bool) for flag in flags)
    ):
        raise ParseError(TOOL, output.text, "prio_pfc with eight booleans")
    return frozenset(prio for prio, flag in enumerate(flags) if flag)


def parse_app(output: Output) -> tuple[tuple[tuple[int, int], ...], int | None]:
    """(DSCP, priority) pairs and the default priority. An absent key is an empty table."""
    table = _object(output)
    pairs = table.get("dscp_prio", [])
    defaults = table.get("default_prio", [])
    if not isinstance(pairs, list) or not isinstance(defaults, list):
        raise ParseError(TOOL, output.text, "lists in the APP table")
    found = set()
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ParseError(TOOL, output.text, "pairs of DSCP and priority")
        found.add((_number(pair[0], 63, output), _number(pair[1], 7, output)))
    prios = [_number(each, 7, output) for each in defaults]
    return tuple(sorted(found)), prios[0] if len(prios) == 1 else None


def parse_dcbx(output: Output) -> str:
    """Who runs DCBX: "os" where the host flag is set, else "firmware". Only true flags are said."""
    flags = _object(output)
    if not all(value is True for value in flags.values()):
        raise ParseError(TOOL, output.text, "DCBX flags that are true")
    return "os" if "host" in flags else "firmware"


def _object(output: Output) -> dict[str, object]:
    """The one JSON object: the whole text, or the one line of it that is no warning."""
    text = output.text
    lines = [line for line in text.splitlines() if line.lstrip().startswith("{")]
    try:
        document = json.loads(lines[0]) if len(lines) == 1 else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ParseError(TOOL, text, "one line with a JSON object")
    return document


def _number(value: object, high: int, output: Output) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise ParseError(TOOL, output.text, f"numbers from 0 to {high}, not {value!r}")
    return value


def _show(what: str) -> Command:
    return Command((TOOL, "-j", what, "show", "dev", "{netdev}"))


DCB: Final = Reader(
    tool=TOOL, commands=(_show("pfc"), _show("app"), _show("dcbx")), parse=parse, per=Rail
)
