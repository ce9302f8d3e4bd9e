"""Small traces written by hand, event by event."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def x(
    cat: str, name: str, ts: float, dur: float, *, pid: int = 0, tid: int | str = 7, **args: object
) -> Event:
    """A complete event; times in us."""
    event: Event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
    return {**event, "ts": ts, "dur": dur, "args": args}


def kernel(ts: float, dur: float, corr: int, name: str = "gemm", **more: Any) -> Event:
    """A kernel on stream 7 of device 0."""
    return x("kernel", name, ts, dur, **{"correlation": corr, **more})


def launch(ts: float, dur: float, corr: int, name: str = "cudaLaunchKernel") -> Event:
    """Its launch on the host."""
    return x("cuda_runtime", name, ts, dur, pid=99, tid=99, correlation=corr)


def step(number: int, ts: float, dur: float) -> Event:
    """A profiled step."""
    return x("user_annotation", f"ProfilerStep#{number}", ts, dur, pid=99, tid=99)


def text_of(events: list[Event], *, pretty: bool = True, **keys: object) -> str:
    """A trace as Kineto lays it out (times with three digits), or on one line."""
    body = json.dumps(events, indent=2 if pretty else None)
    head = json.dumps({"schemaVersion": 1, **keys})[:-1]
    return f'{head}, "traceEvents": {_three_digits(body)}, "traceName": "t.json"}}'


def _three_digits(body: str) -> str:
    import re

    return re.sub(
        r'"(ts|dur)": (-?[\d.]+)', lambda found: f'"{found[1]}": {float(found[2]):.3f}', body
    )


def write(path: Path, text: str) -> Path:
    """The text in a file, packed where its name says so."""
    data = text.encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path
