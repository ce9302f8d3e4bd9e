"""perftest (``ib_write_bw`` and its kin): one NIC pair's bandwidth or latency.

Traps: without ``--report_gbits`` the value is MiB/s whether the header says MB/sec (before 24.07)
or MiB/sec; ``-b`` prints the sum of both directions; a server may print no table; with ``-D``,
``-N`` or more than 20,000 iterations no peak is measured, and 0.00 stands there. Source: perftest
src/perftest_parameters.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from commcheck.command import whole_number
from commcheck.errors import ParseError
from commcheck.jobs.failures import read_failures
from commcheck.jobs.lines import Line, lines_of
from commcheck.jobs.reading import Failure, State
from commcheck.lazy import dataclass, regex

_TITLE: Final = regex(r"\s+(\S+)( Bidirectional)?(?: Post List)? (BW|Latency) Test\s*")
_SETTING: Final = regex(r"\s*([A-Za-z][\w .*/]*?)\s*: (\S+)")
_BANDWIDTH: Final = regex(
    r"\s*#bytes\s+#iterations\s+BW peak\[(Gb|MB|MiB)/sec\]\s+BW average\[\1/sec\]\s+MsgRate\[Mpps\]"
)
_LATENCY: Final = regex(r"\s*#bytes\s+#iterations\s+t_min\[usec\]")
_GBITS: Final = {"Gb": 1.0, "MB": 8 * 1.048576 / 1000, "MiB": 8 * 1.048576 / 1000}
_FIGURE: Final = regex(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Rate:
    """One size. Both bandwidths in Gb/s of one direction; ``rate_mpps`` in 1e6 messages/s.

    ``peak_gbits`` is 0 where the run did not measure it.
    """

    size: int
    iterations: int
    peak_gbits: float
    average_gbits: float
    rate_mpps: float


@dataclass(frozen=True, slots=True)
class Delay:
    """One size's latency in microseconds."""

    size: int
    iterations: int
    least_us: float
    most_us: float
    typical_us: float
    average_us: float
    p99_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Perftest:
    """One run between two NICs. ``doubtful`` counts rows whose numbers contradict each other."""

    state: State
    test: str = ""  # "RDMA_Write BW"
    device: str = ""
    mtu: int | None = None
    link_type: str = ""
    gid_index: int | None = None
    both_directions: bool = False
    rates: tuple[Rate, ...] = ()
    delays: tuple[Delay, ...] = ()
    doubtful: int = 0
    failures: tuple[Failure, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)

    def at_least(self, size: int) -> tuple[Rate, ...]:
        """The rows from a size in bytes on, ascending by size."""
        large = (rate for rate in self.rates if rate.size >= size)
        return tuple(sorted(large, key=lambda rate: (rate.size, rate.average_gbits)))


def looks_like(text: str) -> bool:
    """True where a text is this tool's output."""
    return any(_TITLE.fullmatch(line.text) for line in lines_of(text[:4000]))


def parse(text: str) -> Perftest:
    """The run. Raises ``ParseError`` where there is neither a table nor a known failure."""
    lines = lines_of(text)
    title = next((found for line in lines if (found := _TITLE.fullmatch(line.text))), None)
    settings = _settings(lines)
    both = bool(title and title[2])
    rates, delays, doubtful = _tables(lines, both=both)
    failures = read_failures(lines)
    if title is None and not failures:
        raise ParseError("perftest", text, "its title, or a failure we know")
    mtu = re.match(r"\d+", settings.get("Mtu", ""))
    gid = settings.get("GID index", "")
    return Perftest(
        state=_state(
            lines, failures, has_rows=bool(rates or delays or doubtful), has_title=title is not None
        ),
        test=f"{title[1]} {title[3]}" if title else "",
        device=settings.get("Device", ""),
        mtu=int(mtu[0]) if mtu else None,
        link_type=settings.get("Link type", ""),
        gid_index=whole_number(gid),
        both_directions=both,
        rates=tuple(rates),
        delays=tuple(delays),
        doubtful=doubtful,
        failures=failures,
        settings=settings,
    )


def _settings(lines: Sequence[Line]) -> dict[str, str]:
    """The block above the table: two ``Key : value`` a line, parted by a tab."""
    found: dict[str, str] = {}
    for line in lines:
        if line.text.lstrip().startswith(("GID:", "local address", "remote address", "#")):
            continue
        for part in line.text.split("\t"):
            if match := _SETTING.fullmatch(part.rstrip()):
                found.setdefault(match[1], match[2])
    return found


def _tables(lines: Sequence[Line], *, both: bool) -> tuple[list[Rate], list[Delay], int]:
    rates: list[Rate] = []
    delays: list[Delay] = []
    doubtful, unit, latency = 0, "", False
    for line in lines:
        if header := _BANDWIDTH.match(line.text):
            unit, latency = header[1], False
        elif _LATENCY.match(line.text):
            unit, latency = "", True
        elif unit or latency:
            fields = line.text.split()
            if not fields or not all(_FIGURE.fullmatch(each) for each in fields):
                continue
            if unit and len(fields) == 5:
                rate = _rate(fields, unit, both=both)
                rates.extend([rate] if rate else [])
                doubtful += rate is None
            elif latency and len(fields) == 9:
                delay = _delay(fields)
                delays.extend([delay] if delay else [])
                doubtful += delay is None
            else:
                doubtful += 1
    return rates, delays, doubtful


def _rate(fields: Sequence[str], unit: str, *, both: bool) -> Rate | None:
    size, count = int(float(fields[0])), int(float(fields[1]))
    scale = _GBITS[unit] / (2 if both else 1)
    peak, average = float(fields[2]) * scale, float(fields[3]) * scale
    rate = float(fields[4])
    carried = size * rate * 8 / 1000 / (2 if both else 1)
    # Two decimals of a small bandwidth, six of a small rate: 2 % is their rounding together.
    if (
        abs(carried - average) > 0.01 * scale + 0.02 * max(average, carried)
        or 0 < peak < average * 0.98
    ):
        return None
    return Rate(size, count, peak, average, rate)


def _delay(fields: Sequence[str]) -> Delay | None:
    low, high, typical, average = (float(each) for each in fields[2:6])
    p99 = float(fields[7])
    if not (low <= typical <= high and low <= average <= high and low <= p99 <= high):
        return None
    return Delay(int(float(fields[0])), int(float(fields[1])), low, high, typical, average, p99)


def _state(
    lines: Sequence[Line], failures: tuple[Failure, ...], *, has_rows: bool, has_title: bool
) -> State:
    if any(not each.consequence for each in failures):
        return State.CRASHED if has_title or has_rows else State.LAUNCH_FAILED
    if not has_rows:
        return State.TRUNCATED if has_title else State.LAUNCH_FAILED
    rule = [at for at, line in enumerate(lines) if line.text.startswith("-" * 60)]
    head = max(at for at, line in enumerate(lines) if "#iterations" in line.text)
    return State.COMPLETE if rule and rule[-1] > head + 1 else State.TRUNCATED
