"""``npu-smi info -t health -i NPU -c CHIP``: why the driver does not call a chip healthy.

Only those that the table does not call OK are asked, each by a call of its own.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.lines import once, only, whole_lines
from commcheck.formats.npu_smi import HEALTH
from commcheck.lazy import dataclass

TOOL: Final = "npu-smi-health"

SCRIPT: Final = """\
command -v npu-smi >/dev/null || { echo npu-smi: not found >&2; exit 127; }
n=
npu-smi info 2>&1 | while IFS='|' read -r x a b rest; do
  set -f
  set -- $a
  if [ -n "$n" ]; then
    case $n$1 in
      *[!0-9]*) ;;
      *) echo "[npu $n chip $1]"; npu-smi info -t health -i "$n" -c "$1" 2>&1 ;;
    esac
    n=
    continue
  fi
  case $b in *' Warning '* | *' Alarm '* | *' Critical '* | *' UNKNOWN '*) n=$1 ;; esac
done
echo '[end]'
"""
"""A chip has two rows in the table: the first has its NPU and health, the second its number."""


@dataclass(frozen=True, slots=True)
class NpuFault:
    """What the driver holds against a chip. ``code``: hexadecimal, "" where it gives none."""

    health: str
    code: str
    information: str


def parse_one(output: Output) -> NpuFault:
    """The answer for one chip. Raises ``ParseError`` where one of its three lines is missing."""
    require_ok(output, "npu-smi info -t health")
    text = output.text
    values: dict[str, str] = {}
    for line in whole_lines(text, TOOL):
        if line:
            found = only(
                r"\t(Health Status|Error Code|Error Information) +: (\S.*)", line, text, TOOL
            )
            once(values, found[1], found[2].strip(), text, TOOL)
    if len(values) != 3:
        raise ParseError(TOOL, text, "Health Status, Error Code and Error Information")
    health, code, information = (
        values[name] for name in ("Health Status", "Error Code", "Error Information")
    )
    if health not in HEALTH:
        raise ParseError(TOOL, text, f"health {', '.join(HEALTH)}, not {health[:60]!r}")
    code = only(r"NA|(?:0x)?([0-9A-Fa-f]{8})", code, text, TOOL)[1] or ""
    return NpuFault(health, code.upper(), "" if information == "NA" else information)


def parse(output: Output) -> tuple[tuple[int, int, NpuFault], ...]:
    """NPU, chip and fault of each that is not OK; raises ``ParseError`` where the script broke."""
    require_ok(output, TOOL)
    body, end, after = output.text.partition("[end]\n")
    if not end or after:
        raise ParseError(TOOL, output.text, "an answer of each chip and [end]")
    before, *parts = re.split(r"^(?=\[npu )", body, flags=re.MULTILINE)
    if before:
        raise ParseError(TOOL, output.text, "[npu N chip N] before each answer")
    found = []
    for part in parts:
        head, _, rest = part.partition("\n")
        place = only(r"\[npu (\d{1,2}) chip (\d)\]", head, output.text, TOOL)
        found.append((int(place[1]), int(place[2]), parse_one(Output(rest))))
    return tuple(found)


NPU_CODES: Final = Reader(
    tool=TOOL,
    commands=(
        Command(
            ("sh", "-c", SCRIPT),
            timeout_s=60,
            said_as=("npu-smi", "info", "-t", "health"),
        ),
    ),
    parse=parse,
)
