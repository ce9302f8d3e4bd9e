"""``ethtool -a DEV``: global pause (802.3x), as text of any age or as JSON.

TX is the last line that is read, and must be a whole one: cut output is refused. What was
negotiated stands below it and is not the setting.
"""

from __future__ import annotations

import json
import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "ethtool-pause"

_DEVICE: Final = regex(r"^Pause parameters for (\S+):$", re.MULTILINE)
_LINE: Final = regex(r"^(Autonegotiate|RX|TX):\t+(on|off)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EthtoolPause:
    """The port's global pause, as set; ``autoneg``: the two ends agree on it."""

    device: str
    autoneg: bool
    rx: bool
    tx: bool


def parse(output: Output) -> EthtoolPause | None:
    """The setting; None where the driver has none: virtio, IPoIB, some virtual functions."""
    if output.rc != 0 and "Operation not supported" in f"{output.stdout}{output.stderr}":
        return None
    require_ok(output, "ethtool -a")
    text = output.text
    if text.lstrip().startswith("["):
        return _from_json(text)
    devices = _DEVICE.findall(text)
    lines: list[tuple[str, str]] = _LINE.findall(text)
    values = dict(lines)
    if len(devices) != 1 or len(lines) != 3 or set(values) != {"Autonegotiate", "RX", "TX"}:
        raise ParseError(TOOL, text, "'Pause parameters for' one interface, with RX and TX")
    autoneg, rx, tx = (values[key] == "on" for key in ("Autonegotiate", "RX", "TX"))
    return EthtoolPause(devices[0], autoneg, rx, tx)


def _from_json(text: str) -> EthtoolPause:
    try:
        documents = json.loads(text)
    except (ValueError, RecursionError):
        documents = None
    if not isinstance(documents, list) or len(documents) != 1 or not isinstance(documents[0], dict):
        raise ParseError(TOOL, text, "a JSON list of one object")
    match documents[0]:
        case {
            "ifname": str(device),
            "autonegotiate": bool(autoneg),
            "rx": bool(rx),
            "tx": bool(tx),
        }:
            return EthtoolPause(device, autoneg, rx, tx)
        case _:
            raise ParseError(TOOL, text, "ifname, autonegotiate, rx and tx")


ETHTOOL_PAUSE: Final = Reader(
    tool=TOOL, commands=(Command(("ethtool", "-a", "{netdev}")),), parse=parse, per=Rail
)
