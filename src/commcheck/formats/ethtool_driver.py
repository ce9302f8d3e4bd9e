"""``ethtool -i DEV``: driver, its version, firmware and board of a netdev."""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed
from commcheck.formats.lines import need, once, only, whole_lines
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "ethtool-driver"

_FIRMWARE: Final = regex(r"([\w.-]+)?(?: \((\w+)\)|/pkg ([\w.-]+))? ?")


@dataclass(frozen=True, slots=True)
class EthtoolDriver:
    """Driver and firmware. ``psid`` names the board of an NVIDIA card, ``package`` is Broadcom's.

    ``version`` is the kernel's release where the driver is the kernel's own.
    """

    driver: str
    version: str
    firmware: str | None
    psid: str | None
    package: str | None
    bus_info: str


def parse(output: Output) -> EthtoolDriver:
    """The driver; raises ``CommandFailed`` where there is no such netdev."""
    text = output.text
    if output.rc != 0:
        raise CommandFailed(f"ethtool -i failed with exit code {output.rc}: {output.complaint}")
    values: dict[str, str] = {}
    for line in whole_lines(text, TOOL):
        if match := re.fullmatch(r"([a-z][a-z-]*): ?(.*)", line):
            once(values, match[1], match[2].strip(), text, TOOL)
    need(values, {"driver", "version", "firmware-version", "bus-info"}, text, TOOL)
    # The last line of the tool: without it the answer was cut.
    need(values, {"supports-priv-flags"}, text, TOOL)
    firmware = only(_FIRMWARE, values["firmware-version"], text, TOOL)
    return EthtoolDriver(
        driver=only(r"[\w.-]+", values["driver"], text, TOOL)[0],
        version=only(r"[\w.+~-]+", values["version"], text, TOOL)[0],
        firmware=firmware[1],
        psid=firmware[2],
        package=firmware[3],
        bus_info=only(r"[\w:.-]*", values["bus-info"], text, TOOL)[0],
    )


ETHTOOL_DRIVER: Final = Reader(
    tool=TOOL, commands=(Command(("ethtool", "-i", "{netdev}")),), parse=parse, per=Rail
)
