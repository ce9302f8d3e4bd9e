"""``nvidia-smi --query-...=... --format=csv``: rows by column name, and the words in them.

The first line names the columns, with their unit in brackets. A column may come back under
another of its names (``clocks.sm`` as ``clocks.current.sm``), so each is looked up by all it has.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.command import Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.nvidia_warnings import without_warnings

COLUMNS: Final = (
    "index",
    "name",
    "pci.bus_id",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "utilization.gpu",
    "persistence_mode",
    "compute_mode",
    "mig.mode.current",
    "ecc.mode.current",
    "ecc.errors.uncorrected.volatile.total",
    "retired_pages.pending",
    "temperature.gpu",
    "power.limit",
    "power.default_limit",
    "enforced.power.limit",
    "clocks_throttle_reasons.active",
)
"""What one call asks of every GPU, for all checks: columns that drivers from 450 on know.

A single column that a driver does not know fails the whole call, so none is younger. The names are
the older ones, which newer drivers take as well (``nvidia-smi --help-query-gpu`` of 590).
"""

NEEDS_RESET: Final = "[GPU requires reset]"
UNKNOWN: Final = frozenset(
    {
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "[Unknown Error]",
        "[Insufficient Permissions]",
        "[Requested functionality has been deprecated]",
        NEEDS_RESET,
    }
)
"""What stands in the place of a value that the driver does not tell."""


class Row:
    """One row: its values by column, and how to read them. Raises ``ParseError``."""

    def __init__(self, values: dict[str, str], text: str, tool: str) -> None:
        self._values = values
        self._text = text
        self._tool = tool

    def word(self, *names: str) -> str | None:
        """The value of a column by any of its names; None: not told, or no such column."""
        value = next((self._values[name] for name in names if name in self._values), None)
        return None if value is None or value in UNKNOWN else value

    def match(self, pattern: str, *names: str) -> re.Match[str] | None:
        """The whole value by a pattern; None: not told."""
        value = self.word(*names)
        if value is None:
            return None
        match = re.fullmatch(pattern, value)
        if match is None:
            raise ParseError(self._tool, self._text, f"a {names[0]}, not {value[:60]!r}")
        return match

    def must(self, pattern: str, name: str) -> str:
        """A value that every row has."""
        match = self.match(pattern, name)
        if match is None:
            raise ParseError(self._tool, self._text, f"a {name} in each row")
        return match[0]

    def count(self, *names: str) -> int | None:
        """A count, of errors or of percent and degrees."""
        match = self.match(r"(\d{1,12})(?: %)?", *names)
        return None if match is None else int(match[1])

    def watts(self, *names: str) -> float | None:
        """A power in watts."""
        match = self.match(r"(\d{1,5}\.\d{1,2}) W", *names)
        return None if match is None else float(match[1])

    def yes(self, *names: str) -> bool | None:
        """A state of two: on or off, in any of the tool's words for it."""
        match = self.match(r"(Enabled|Active|Yes|1)|Disabled|Not Active|No|0", *names)
        return None if match is None else bool(match[1])

    @property
    def needs_reset(self) -> bool:
        """True where the driver says so instead of a value."""
        return NEEDS_RESET in self._values.values()


def rows(output: Output, tool: str, required: frozenset[str]) -> tuple[Row, ...]:
    """The rows; raises ``CommandFailed`` and ``ParseError``."""
    output = without_warnings(output)
    require_ok(output, "nvidia-smi")
    text = output.text
    header, *lines = text.split("\n")
    names = [re.sub(r" \[.*\]$", "", name) for name in header.split(", ")]
    if not required <= set(names) or len(set(names)) != len(names):
        raise ParseError(tool, text, f"a first line with {', '.join(sorted(required))}")
    if not lines or lines.pop() != "":
        raise ParseError(tool, text, "a whole last line")
    found = []
    for line in lines:
        values = line.split(", ")
        if len(values) != len(names):
            raise ParseError(tool, text, f"{len(names)} values in each row, not {line[:60]!r}")
        found.append(Row(dict(zip(names, values, strict=True)), text, tool))
    return tuple(found)


def in_order(indices: list[int], text: str, tool: str) -> None:
    """Raise ``ParseError`` unless these are the GPUs from 0 on, each once."""
    if not indices or indices != list(range(len(indices))):
        raise ParseError(tool, text, "GPUs from 0 without a gap")
