"""nccl-tests' JSON output (``-J``), versions 1 to 3, also of a run that was killed.

Its traps: two misspelt keys in 2.17.3 to 2.17.8, booleans and NaN as text, one device entry per
process and not per GPU, the whole environment of the process (only what NCCL and its transports
read is kept, secrets never), and no closing brackets after a crash. Source: nccl-tests
src/common.cu.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from commcheck.errors import ParseError
from commcheck.jobs import nccl_rows
from commcheck.jobs.reading import Failure, Half, Iterations, Rank, Row, State, Sweep
from commcheck.lazy import regex
from commcheck.report.counts import many

_TOOL: Final = "nccl-tests JSON"
_KEPT: Final = regex(r"(?:NCCL|RCCL|UCX|HCCL|OMPI_MCA|CUDA_VISIBLE|NVIDIA_VISIBLE)\w*")
_SECRET: Final = regex(r"TOKEN|KEY|SECRET|PASS", re.IGNORECASE)
_RESULTS: Final = regex(r'"results"\s*:\s*\[')
_BINARY: Final = regex(r"(\w+?)_perf(?:_mpi)?$")


def looks_like(text: str) -> bool:
    """True where a text is this output, whole or cut."""
    return text.lstrip()[:1] == "{" and '"config"' in text and '"nthreads"' in text


def parse(text: str) -> tuple[Sweep, ...]:
    """The run in a file; complete results of a cut file with state "truncated"."""
    try:
        document = json.loads(text)
        whole = True
    except (ValueError, RecursionError):
        document, whole = _salvage(text), False
    try:
        return (_sweep(document, whole=whole),)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ParseError(_TOOL, text, f"its keys in their form ({error!r})") from error


def _salvage(text: str) -> dict[str, Any]:
    """What a cut file holds whole: its head, and the result objects before the cut."""
    found = _RESULTS.search(text)
    if found is None:
        raise ParseError(_TOOL, text, "a head, and a list of results")
    try:
        document = json.loads(text[: found.start()].rstrip().rstrip(",") + "}")
    except (ValueError, RecursionError) as error:
        raise ParseError(_TOOL, text, "a head before its results") from error
    decoder = json.JSONDecoder()
    results, at = [], found.end()
    while True:
        while text[at : at + 1] in (",", " ", "\n", "\t", "\r"):
            at += 1
        if text[at : at + 1] != "{":
            break
        try:
            result, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        results.append(result)
    return {**document, "results": results}


def _sweep(document: Mapping[str, Any], *, whole: bool) -> Sweep:
    config = document["config"]
    entries = config["devices"]
    ranks = tuple(_rank(entry) for entry in entries)
    nranks = len(entries) * int(config["nthreads"]) * int(config["ngpus"])
    in_group = sum(rank.group == 0 for rank in ranks) * nranks // max(len(entries), 1)
    collective = _collective(document)
    raw = [_raw(result) for result in document["results"]]
    collective = collective or nccl_rows.guess(raw, in_group or None)
    judged = [nccl_rows.judged(each, collective, in_group or None) for each in raw]
    average = _average(document)
    bounds = document.get("out_of_bounds") or {}
    errors = [str(each) for each in document.get("errors") or () if str(each).strip()]
    ended = whole and average is not None and "count" in bounds
    return Sweep(
        tool="nccl-tests",
        state=_state(ended=ended, errors=errors),
        layout=f"JSON version {document.get('version', '?')}",
        library=_library(document.get("nccl_version")),
        collective=collective,
        nranks=nranks or None,
        ranks=ranks,
        rows=tuple(row for row in judged if not row.doubt),
        doubtful=tuple(row for row in judged if row.doubt),
        expected_rows=_expected(config, judged),
        validation=bool(int(config["validation"])),
        out_of_bounds=int(bounds["count"]) if ended else None,
        avg_busbw=average,
        iterations=int(config["iterations"]),
        warmup=int(config["warmup_iters"]),
        split=any(rank.group for rank in ranks),
        env=_environment(document.get("env") or ()),
        problems=_problems(config, judged, average) if ended else (),
        failures=tuple(Failure("nccl-failure", each[:300], 1) for each in errors),
    )


def _state(*, ended: bool, errors: list[str]) -> State:
    if ended:
        return State.COMPLETE_THEN_CRASHED if errors else State.COMPLETE
    return State.CRASHED if errors else State.TRUNCATED


def _problems(config: Mapping[str, Any], rows: list[Row], average: float | None) -> tuple[str, ...]:
    found = []
    expected = _expected(config, rows)
    if expected is not None and len(rows) != expected:
        found.append(f"it has {many(len(rows), 'row')}, and its options ask for {expected}")
    cells = [half.busbw for row in rows for half in row.halves]
    if cells and average is not None:
        mean = sum(cells) / len(cells)
        if abs(mean - average) > 0.005 + 0.01 * average:
            found.append(f"the mean of its rows is {mean:.2f} GB/s, and it says {average:.2f}")
    return tuple(found)


def _expected(config: Mapping[str, Any], rows: list[Row]) -> int | None:
    size, most = int(config["minimum_bytes"]), int(config["maximum_bytes"])
    falls = sum(after.size < before.size for before, after in pairwise(rows))
    factor = int(config.get("step_factor") or 1)
    if "step_bytes" in config and factor <= 1:
        step = int(config["step_bytes"])
        return ((most - size) // step + 1 if step else 1) * (falls + 1)
    sizes = 1
    while factor > 1 and size * factor <= most:
        size *= factor
        sizes += 1
    return sizes * (falls + 1)


def _rank(entry: Mapping[str, Any]) -> Rank:
    return Rank(
        rank=int(entry["rank"]),
        host=str(entry["hostname"]),
        device=int(entry["device"]),
        name=str(entry["device_info"]),
        group=int(entry.get("group", 0)),
        pid=int(entry["pid"]),
        pci=str(entry.get("device_hex", "")),
    )


def _raw(result: Mapping[str, Any]) -> nccl_rows.Raw:
    root = str(result.get("root", "-1")).strip()
    return nccl_rows.Raw(
        size=int(result["size"]),
        count=int(result["count"]),
        dtype=str(result["type"]),
        redop=str(result["redop"]).strip() or "none",
        root=int(root) if root else -1,
        halves=(_half(result, "out_of_place"), _half(result, "in_place")),
    )


def _half(result: Mapping[str, Any], name: str) -> Half | None:
    half = result.get(name)
    if half is None:
        return None
    wrong = half.get("nwrong")
    time_us = float(half["time"] if "time" in half else half["cpu_time"])
    algbw, busbw = float(half["alg_bw"]), float(half["bus_bw"])
    if math.inf in (time_us, algbw, busbw):
        raise ValueError("a time or bandwidth without an end")
    return Half(
        time_us=time_us,
        algbw=algbw,
        busbw=busbw,
        wrong=None if wrong in (None, "nan") else float(wrong),
        iterations=_iterations(result.get(f"{name}_per_iter")),
    )


def _iterations(found: Mapping[str, Any] | None) -> Iterations | None:
    if not found:
        return None
    return Iterations(
        min_us=float(found["min_us"]),
        max_us=float(found["max_us"]),
        p99_us=float(found["p99_us"]),
        cv_percent=float(found["cv_pct"]),
        times_us=tuple(float(each) for each in found.get("times_us", ())),
        by_process_us=tuple(
            tuple(float(each) for each in times)
            for times in found.get("per_process_max_times_us", ())
        ),
    )


def _average(document: Mapping[str, Any]) -> float | None:
    for key in ("average_bus_bandwidth", "average_bus_bandwidith"):
        if key in document:
            inner = document[key]
            value = inner.get("bandwidth", inner.get("bandwidith"))
            return None if value in (None, "nan") else float(value)
    return None


def _collective(document: Mapping[str, Any]) -> str | None:
    arguments = document.get("args") or [""]
    found = _BINARY.search(str(arguments[0]))
    return found[1] if found else None


def _library(version: object) -> str:
    """22707 is 2.27.7; below 2.9 the number is major * 1000 + minor * 100 + patch."""
    if not isinstance(version, int) or version <= 0:
        return ""
    if version < 10000:
        return f"{version // 1000}.{version // 100 % 10}.{version % 100}"
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def _environment(entries: Any) -> dict[str, str]:
    kept = {}
    for entry in entries:
        name, _, value = str(entry).partition("=")
        if _KEPT.fullmatch(name) and not _SECRET.search(name):
            kept[name] = value
    return kept
