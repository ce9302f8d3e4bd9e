"""What commands answered, as lines of their host's file, and read back from it."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

from commcheck.collect.base import Frame, State
from commcheck.report.cleaning import mask_bytes
from commcheck.report.jsons import encoded_lines


def frame_lines(frames: Sequence[Frame]) -> bytes:
    """What commands answered as lines of their host's file, with secrets masked."""
    return encoded_lines(
        [
            {
                "key": frame.key,
                **_bytes_field("stdout", frame.stdout),
                **_bytes_field("stderr", frame.stderr),
                "rc": frame.rc,
                "started_s": frame.started_s,
                "ended_s": frame.ended_s,
                "truncated": frame.truncated,
                "state": frame.state,
            }
            for frame in frames
        ]
    )


def _bytes_field(name: str, data: bytes) -> dict[str, str]:
    data = mask_bytes(data)
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


def _read_bytes(line: Mapping[str, Any], name: str) -> bytes:
    if name in line:
        return str(line[name]).encode("utf-8")
    return base64.b64decode(line[f"{name}_base64"], validate=True)


def _seconds(told: Any) -> float:
    seconds = float(told)
    if not math.isfinite(seconds):
        raise ValueError(f"no time: {told!r}")
    return seconds


def read_frame(line: Mapping[str, Any]) -> Frame:
    """The frame of a line, parsed.

    Raises ``ValueError``, ``KeyError``, ``TypeError``, ``OverflowError`` for none.
    """
    return Frame(
        key=str(line["key"]),
        stdout=_read_bytes(line, "stdout"),
        stderr=_read_bytes(line, "stderr"),
        rc=None if line["rc"] is None else int(line["rc"]),
        started_s=_seconds(line["started_s"]),
        ended_s=_seconds(line["ended_s"]),
        truncated=bool(line["truncated"]),
        state=State(line["state"]),
    )
