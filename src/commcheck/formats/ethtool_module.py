"""``ethtool -m DEV``: the optical module or cable, by its own sensors (reads an EEPROM; root).

CMIS (OSFP, QSFP-DD) and SFF-8636 (QSFP28) modules print other keys, so lines are read by key.
All lanes of the form factor are printed, eight or four, also those that the module does not have.
Copper has no power readings. ethtool 6.1 shows the flags of a CMIS lane one lane too late, so
they are kept by name and are a hint beside the powers. A module that leaves its thresholds empty
has zeros there, which are no thresholds. Of an SFF-8636 module some keys come more than once, each
time with something else: ``Extended identifier description``, ``Transceiver type``
(``sff8636_show_ext_identifier`` and ``sff8636_show_transceiver`` of ethtool's qsfp.c).
"""

from __future__ import annotations

import math
import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import only, whole_lines
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "ethtool-module"

_LINE: Final = regex(r"\t(\S.*?) *: (.*)")
_POWER: Final = regex(
    r"(Rcvr signal avg optical power|Receiver signal OMA|Receiver signal average optical power"
    r"|Transmit avg optical power|Laser output power)(?: ?\(Channel (\d{1,2})\))?"
)
_BIAS: Final = regex(r"Laser (?:tx )?bias current(?: \(Channel (\d{1,2})\))?")
_MILLIAMPS: Final = regex(r"(\d+\.\d+) mA")
_DBM: Final = regex(r"\d+\.\d+ mW / (-inf|-?\d+\.\d+) dBm")
_FLAG: Final = regex(r"(.*?(?:high|low) (?:alarm|warning))(?: +\(C(?:hannel|han) (\d{1,2})\))?")
_TEMPERATURE: Final = regex(r"(-?\d+\.\d+) degrees C / -?\d+\.\d+ degrees F")
_HEAT: Final = "Module temperature high"
_LIGHT: Final = "Laser rx power low"
_CODED: Final = regex(r"0x[0-9a-f]{2} \((.*)\)")
_DUMP: Final = regex(r"Offset\s+Values\n-+\s+-+\n0x0000:\s+([0-9a-f]{2}) ")
_OF_THE_MODULE: Final = frozenset(
    {
        "Identifier",
        "Vendor name",
        "Vendor PN",
        "Module State",
        "Module Fault Cause",
        "Module temperature",
        *(f"{of} {kind} threshold" for of in (_HEAT, _LIGHT) for kind in ("alarm", "warning")),
    }
)


@dataclass(frozen=True, slots=True)
class EthtoolModule:
    """A module. Powers by lane (from 1) in dBm, ``-inf`` is no light at all; lasers' bias in mA.

    Thresholds are the module's own, None where it has none. ``flags``: alarms and warnings that are
    on, with the lane where one is told, else 0.
    """

    identifier: str  # "OSFP 8X Pluggable Transceiver"
    vendor: str | None
    part_number: str | None
    state: str | None  # "ModuleReady", of CMIS only
    fault: str | None
    temperature_c: float | None
    temperature_alarm_c: float | None
    temperature_warning_c: float | None
    rx_low_alarm_dbm: float | None
    rx_low_warning_dbm: float | None
    rx_dbm: tuple[tuple[int, float], ...]
    tx_dbm: tuple[tuple[int, float], ...]
    bias_ma: tuple[tuple[int, float], ...]
    flags: tuple[tuple[str, int], ...]


def parse(output: Output) -> EthtoolModule | None:
    """The module; None where the cage is empty or silent, or the driver has no way to ask it."""
    text = output.text
    if output.rc != 0:
        both = f"{text}{output.stderr}"
        if re.search("Invalid argument|Input/output error|Operation not supported", both):
            return None
        raise CommandFailed(f"ethtool -m failed with exit code {output.rc}: {output.complaint}")
    if dump := _DUMP.match(text):
        # eeprom_parse of ethtool's netlink/module-eeprom.c: what it does not know it does not read.
        raise CommandFailed(
            f"ethtool does not know modules of identifier 0x{dump[1]} and prints their memory",
            "install a newer ethtool: 0x19 (OSFP) and 0x1e (QSFP112 with CMIS) came one by one",
        )
    values: list[tuple[str, str]] = []
    for line in whole_lines(text, TOOL):
        if line.strip():
            match = only(_LINE, line, text, TOOL)
            values.append((match[1], match[2]))
    return _module(values, text)


def _module(values: list[tuple[str, str]], text: str) -> EthtoolModule:
    read = {(key, value) for key, value in values if _is_read(key)}
    singles = dict(read)
    if "Identifier" not in singles or len(singles) != len(read):
        raise ParseError(TOOL, text, "'Identifier', and every line that is read once")
    powers: dict[str, dict[int, float]] = {"rx": {}, "tx": {}}
    bias, flags = {}, []
    for key, value in values:
        if power := _POWER.fullmatch(key):
            side = "rx" if power[1].startswith(("Rcvr", "Receiver")) else "tx"
            powers[side][int(power[2] or 1)] = float(only(_DBM, value, text, TOOL)[1])
        elif laser := _BIAS.fullmatch(key):
            bias[int(laser[1] or 1)] = float(only(_MILLIAMPS, value, text, TOOL)[1])
        elif (flag := _FLAG.fullmatch(key)) and only("On|Off", value, text, TOOL)[0] == "On":
            flags.append((" ".join(flag[1].lower().split()), int(flag[2] or 0)))
    lanes = sorted(powers["rx"])
    if powers["tx"] and lanes != sorted(powers["tx"]):
        raise ParseError(TOOL, text, "received and sent power of every lane")
    return EthtoolModule(
        identifier=only(_CODED, singles["Identifier"], text, TOOL)[1],
        vendor=singles.get("Vendor name"),
        part_number=singles.get("Vendor PN"),
        state=_coded(singles, "Module State", text),
        fault=_coded(singles, "Module Fault Cause", text),
        temperature_c=_degrees(singles, "Module temperature", text),
        temperature_alarm_c=_degrees(singles, f"{_HEAT} alarm threshold", text) or None,
        temperature_warning_c=_degrees(singles, f"{_HEAT} warning threshold", text) or None,
        rx_low_alarm_dbm=_dbm(singles, f"{_LIGHT} alarm threshold", text),
        rx_low_warning_dbm=_dbm(singles, f"{_LIGHT} warning threshold", text),
        rx_dbm=tuple(sorted(powers["rx"].items())),
        tx_dbm=tuple(sorted(powers["tx"].items())),
        bias_ma=tuple(sorted(bias.items())),
        flags=tuple(flags),
    )


def _is_read(key: str) -> bool:
    return key in _OF_THE_MODULE or any(form.fullmatch(key) for form in (_POWER, _BIAS, _FLAG))


def _coded(singles: dict[str, str], key: str, text: str) -> str | None:
    return only(_CODED, singles[key], text, TOOL)[1] if key in singles else None


def _degrees(singles: dict[str, str], key: str, text: str) -> float | None:
    return float(only(_TEMPERATURE, singles[key], text, TOOL)[1]) if key in singles else None


def _dbm(singles: dict[str, str], key: str, text: str) -> float | None:
    found = float(only(_DBM, singles[key], text, TOOL)[1]) if key in singles else -math.inf
    return None if math.isinf(found) else found


ETHTOOL_MODULE: Final = Reader(
    tool=TOOL,
    commands=(Command(("ethtool", "-m", "{netdev}"), root=True),),
    parse=parse,
    per=Rail,
)
