"""torch_npu's communication.json: of every HCCL operator the time it waited and moved data.

Written with profiler_level Level1 or Level2, beside trace_view.json. Of one rank alone it tells
waiting for a peer from a slow link, which a trace of one rank cannot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from commcheck.files import read_whole
from commcheck.lazy import regex
from commcheck.trace.facts import Hccl, Link
from commcheck.trace.source import Foreign

NAME: Final = "communication.json"
_NO_STEPS: Final = regex(r"(?:cluster_)?communication(?:_matrix|_group)?\.json")
_TIMES, _LINKS = "Communication Time Info", "Communication Bandwidth Info"
_TOTAL: Final = "Total Op Info"
_BYTES_MOST: Final = 256 << 20
_MB: Final = 1_000_000


def is_one(name: str) -> bool:
    """True for a file of HCCL's sums: this one, and what msprof-analyze makes of all ranks'."""
    return _NO_STEPS.fullmatch(name) is not None


def beside(path: Path) -> Hccl | None:
    """What the file beside a trace tells; None where there is none.

    Raises ``Foreign`` where it is there and is something else.
    """
    found = path.with_name(NAME)
    if not found.is_file():
        return None
    try:
        return parse(json.loads(read_whole(found, _BYTES_MOST)))
    except OSError as error:
        raise Foreign(str(found), f"cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        what = f"is no table of HCCL operators; expected {NAME} of torch_npu"
        raise Foreign(str(found), what) from None


def parse(told: Mapping[str, Any]) -> Hccl:
    """Sums over all operators of all steps; their totals in the file are not counted again.

    Raises ``ValueError``, ``KeyError``, ``TypeError`` or ``AttributeError`` for another layout.
    """
    count, moved_ms, waited_ms = 0, 0.0, 0.0
    links: dict[str, tuple[float, float]] = {}
    for about in _operators(told):
        times = about[_TIMES]
        count += 1
        moved_ms += _number(times["Transit Time(ms)"])
        waited_ms += _number(times["Wait Time(ms)"])
        for name, link in about[_LINKS].items():
            size, time = links.get(name, (0.0, 0.0))
            size += _number(link["Transit Size(MB)"])
            links[name] = (size, time + _number(link["Transit Time(ms)"]))
    return Hccl(
        count=count,
        moved_ns=round(moved_ms * 1e6),
        waited_ns=round(waited_ms * 1e6),
        links=tuple(
            Link(name, round(size * _MB), round(time * 1e6))
            for name, (size, time) in sorted(links.items())
            if size > 0 and time > 0
        ),
    )


def _operators(told: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for step in told.values():
        for group in step.values():
            for name, about in group.items():
                if name.partition("@")[0] != _TOTAL:
                    yield about


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise ValueError(f"no time or size: {value!r}")
    return float(value)
