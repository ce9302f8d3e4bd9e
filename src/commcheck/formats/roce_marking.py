"""How a RoCE port marks its packets and answers congestion, from sysfs and configfs.

Three places, read by one grep: ``tc/N/traffic_class`` of the HCA and ``ecn`` of the netdev, which
only the vendor's driver has, and the RDMA-CM defaults, which are there only where somebody set
them. What is missing is told by grep's complaint, so that "unset" and "no such file" stay two
things.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, clean
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import files, only
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "sysfs-roce"

_TC: Final = "/sys/class/infiniband/{hca}/tc/{port}/traffic_class"
_ECN: Final = "/sys/class/net/{netdev}/ecn"
_CMA: Final = "/sys/kernel/config/rdma_cm/{hca}/ports/{port}"

_TAIL: Final = regex(
    r"/tc/\d+/(traffic_class)$"
    r"|/ecn/(roce_np|roce_rp)/enable/([0-7])$"
    r"|/ecn/roce_np/(cnp_dscp|cnp_802p_prio|min_time_between_cnps)$"
    r"|/ecn/(\S*)$"
    r"|/rdma_cm/\S*/(default_roce_mode|default_roce_tos)$"
)
_MODES: Final = {"IB/RoCE v1": 1, "RoCE v1": 1, "RoCE v2": 2}


@dataclass(frozen=True, slots=True)
class RoceMarking:
    """``None`` is not known or not there.

    ``traffic_class_state``: "set", "unset", or "missing" where the driver has no such file.
    ``notify`` and ``react``: priorities with ECN on, as receiver (NP) and as sender (RP).
    """

    traffic_class_state: str
    traffic_class: int | None = None
    notify: frozenset[int] | None = None
    react: frozenset[int] | None = None
    cnp_dscp: int | None = None
    cnp_priority: int | None = None
    cma_roce_version: int | None = None
    cma_tos: int | None = None


def parse(output: Output) -> RoceMarking:
    """What is there; raises ``CommandFailed`` where the files may not be read."""
    text, said = output.text, clean(output.stderr)
    if denied := re.search(r"^.*Permission denied$", said, re.MULTILINE):
        raise CommandFailed(f"RoCE settings may not be read: {denied[0][:160]}")
    forced: list[int] = []
    flags: dict[tuple[str, int], bool] = {}
    numbers: dict[str, int] = {}
    version: int | None = None
    for match, value in files(text, _TAIL, TOOL):
        tc, side, prio, cnp, _other, cma = match.groups()
        if tc:
            forced += _tclass(value, text)
        elif side:
            if (side, int(prio)) in flags:
                raise ParseError(TOOL, text, f"{side} of priority {prio} once")
            flags[side, int(prio)] = only("[01]", value, text, TOOL)[0] == "1"
        elif cma == "default_roce_mode":
            version = _MODES[only("|".join(_MODES), value, text, TOOL)[0]]
        elif name := cnp or cma:
            if name in numbers:
                raise ParseError(TOOL, text, f"{name} once")
            numbers[name] = int(only(r"\d{1,6}", value, text, TOOL)[0])
    if len(forced) > 1 or len(flags) not in (0, 16):
        raise ParseError(TOOL, text, "one traffic class, and ECN of all eight priorities")
    missing = frozenset(re.findall(r"/(traffic_class|ecn|rdma_cm)\b.*: No such file or dir", said))
    seen = {"ecn": bool(flags), "rdma_cm": version is not None}
    for place, is_there in seen.items():
        # Each place answers or is missing; only a traffic class that is not set says nothing.
        if not is_there and place not in missing:
            raise ParseError(TOOL, text, f"{place}, or that there is no such file")
    state = "set" if forced else "missing" if "traffic_class" in missing else "unset"
    return RoceMarking(
        traffic_class_state=state,
        traffic_class=forced[0] if forced else None,
        notify=_on(flags, "roce_np"),
        react=_on(flags, "roce_rp"),
        cnp_dscp=numbers.get("cnp_dscp"),
        cnp_priority=numbers.get("cnp_802p_prio"),
        cma_roce_version=version,
        cma_tos=numbers.get("default_roce_tos"),
    )


def _tclass(value: str, text: str) -> list[int]:
    """The global traffic class; other lines of the file are rules for single flows."""
    if not value.startswith("Global"):
        return []
    tclass = int(only(r"Global tclass=(\d{1,3})", value, text, TOOL)[1])
    if tclass > 255:
        raise ParseError(TOOL, text, f"a traffic class up to 255, not {tclass}")
    return [tclass]


def _on(flags: dict[tuple[str, int], bool], side: str) -> frozenset[int] | None:
    mine = {prio: on for (each, prio), on in flags.items() if each == side}
    return frozenset(prio for prio, on in mine.items() if on) if mine else None


ROCE_MARKING: Final = Reader(
    tool=TOOL, commands=(Command(("grep", "-rH", ".", _TC, _ECN, _CMA)),), parse=parse, per=Rail
)
