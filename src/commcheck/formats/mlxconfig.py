"""``mlxconfig -d PCI q``: settings in the card's firmware, as they will be after the next boot."""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import once, only, whole_lines
from commcheck.lazy import dataclass, regex
from commcheck.model import Rail

TOOL: Final = "mlxconfig"

_HEAD: Final = regex(r"(Device type|Name|Description|Device):\s+(\S.*?)\s*")
_ROW: Final = regex(r"\s{4,}\*?\s*([A-Z][A-Z0-9_]+(?:\[\d+(?:\.\.\d+)?\])?)\s+(\S.*?)\s*")
_VALUE: Final = regex(r"[\w.-]+(?:\(\d+\))?|Array\[[\d.]+\]")


@dataclass(frozen=True, slots=True)
class Mlxconfig:
    """One card. ``settings``: name to the tool's own text, ``ETH(2)``, ``128``."""

    device: str
    device_type: str
    settings: tuple[tuple[str, str], ...]

    def value(self, name: str) -> str | None:
        """A setting's word, without its number: ``ETH``; None where the card has none."""
        text = dict(self.settings).get(name)
        return None if text is None else text.partition("(")[0]


def parse(output: Output) -> Mlxconfig:
    """The settings; raises ``CommandFailed`` with the tool's own words for its errors."""
    text = output.text
    both = f"{text}\n{output.stderr}"
    if (error := re.search(r"^-E- .*$", both, re.MULTILINE)) is not None:
        raise CommandFailed(f"mlxconfig says {error[0][4:160]}")
    if output.rc != 0:
        raise CommandFailed(f"mlxconfig failed with exit code {output.rc}: {output.complaint}")
    head: dict[str, str] = {}
    settings: dict[str, str] = {}
    begun = False
    for line in whole_lines(text, TOOL):
        if match := _HEAD.fullmatch(line):
            once(head, match[1], match[2], text, TOOL)
        elif line.startswith("Configurations:"):
            begun = True
        elif begun and line.strip():
            row = only(_ROW, line, text, TOOL)
            once(settings, row[1], only(_VALUE, row[2], text, TOOL)[0], text, TOOL)
    if not settings or not {"Device", "Device type"} <= head.keys():
        raise ParseError(TOOL, text, "one device and its settings")
    return Mlxconfig(head["Device"], head["Device type"], tuple(settings.items()))


MLXCONFIG: Final = Reader(
    tool=TOOL,
    commands=(Command((TOOL, "-d", "{pci}", "q"), timeout_s=20, root=True),),
    parse=parse,
    per=Rail,
)


OFFLOAD_ENGINE: Final = "INTERNAL_CPU_OFFLOAD_ENGINE"
"""Of a BlueField: whether the Arm cores own the NIC."""


def _asks_offload_engine(tool: str) -> Reader[Mlxconfig]:
    command = Command((tool, "-d", "{pci}", "q", OFFLOAD_ENGINE), timeout_s=20, root=True)
    return Reader(tool=f"{tool}-mode", commands=(command,), parse=parse, per=Rail)


MLXCONFIG_ARM: Final = _asks_offload_engine(TOOL)
MSTCONFIG_ARM: Final = _asks_offload_engine("mstconfig")


_IF_FIRMWARE: Final = """\
case $(dcb -j dcbx show dev "$2" 2>/dev/null) in
  '') case $(mlnx_qos -i "$2" 2>/dev/null) in *'Firmware controlled'*) ;; *) t=host ;; esac ;;
  *'"host":true'*) t=host ;;
esac
if [ "$t" = host ]; then echo 'not asked: the firmware does not run DCBX' >&2; exit 1; fi
for t in mlxconfig mstconfig; do
  if command -v $t >/dev/null; then exec $t -d "$1" q; fi
done
echo 'mlxconfig: not found' >&2
exit 127
"""
"""$1 the PCI address, $2 the netdev. The tools take a second a card, and matter there alone."""

MLXCONFIG_DCBX: Final = Reader(
    tool=f"{TOOL}-dcbx",
    commands=(
        Command(
            ("sh", "-c", _IF_FIRMWARE, "sh", "{pci}", "{netdev}"),
            timeout_s=20,
            root=True,
            said_as=(TOOL, "-d", "{pci}", "q", "if-firmware-runs-dcbx"),
        ),
    ),
    parse=parse,
    per=Rail,
)
