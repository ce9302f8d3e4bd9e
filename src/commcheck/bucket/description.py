"""A model described in JSON: sizes of its gradients, and how long its step takes without a network.

    {"forward_ms": 21.3, "backward_ms": 45.5, "optimizer_ms": 3.7, "element_bytes": 4,
     "gradients": [{"name": "0.weight", "bytes": 4194304, "ready_ms": 45.4}, ...]}

``gradients`` stand in the order of the model's definition. ``elements`` may stand in place of
``bytes``, ``count`` for how many alike follow each other, ``flops`` to weigh what a layer takes.
Without ``ready_ms`` the backward pass goes through them from the last to the first, each taking its
share of ``backward_ms`` by ``flops``, else by size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from commcheck.bucket.work import Work, in_ready_order
from commcheck.errors import UsageError
from commcheck.frameworks.placed import Placed, read_json
from commcheck.lazy import dataclass

WHAT: Final = "model"
_TIMES: Final = ("forward_ms", "backward_ms", "optimizer_ms")
_KEYS: Final = frozenset({*_TIMES, "element_bytes", "gradients", "name"})
_GRADIENT_KEYS: Final = frozenset({"name", "bytes", "elements", "count", "ready_ms", "flops"})
GRADIENTS_MOST: Final = 1_000_000
ELEMENT_BYTES: Final = 4
"""float32, where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a description says. ``work`` is None where it gives sizes alone, without times.

    ``sizes``: bytes in the order in which gradients get ready.
    """

    sizes: tuple[float, ...]
    element_bytes: int
    work: Work | None


@dataclass(frozen=True, slots=True)
class _Gradient:
    size: float
    ready_ms: float | None
    flops: float


def read(
    text: str, file: str, element_bytes: int | None = None, *, else_bytes: int = ELEMENT_BYTES
) -> Description:
    """Read a description. Raises ``UsageError``, a line for each mistake.

    ``element_bytes``: of a gradient on the wire, stronger than what the file says, and
    ``else_bytes`` weaker; sizes that are given in bytes stay.
    """
    placed = read_json(text, file, WHAT)
    problems: list[str] = []
    for key in placed.value.keys() - _KEYS:
        problems.append(_problem(placed, key, f"unknown key, known are {', '.join(sorted(_KEYS))}"))
    said = _number(placed, placed.value, "element_bytes", "", problems, least=1)
    element = float(element_bytes or said or else_bytes)
    times = {key: _number(placed, placed.value, key, "", problems) for key in _TIMES}
    gradients = _gradients(placed, element, problems)
    told = [each.ready_ms is not None for each in gradients]
    if any(told) and not all(told):
        problems.append(
            _problem(placed, "gradients", "ready_ms stands at some gradients and not at all")
        )
    if problems:
        raise UsageError(*problems)
    return _described(file, gradients, times, int(element), has_ready=all(told))


def _described(
    file: str,
    gradients: list[_Gradient],
    times: Mapping[str, float | None],
    element_bytes: int,
    *,
    has_ready: bool,
) -> Description:
    backward = times["backward_ms"]
    notes: tuple[str, ...] = ()
    if has_ready:
        pairs = [(each.size, 1e3 * (each.ready_ms or 0.0)) for each in gradients]
    else:
        weights = [each.flops or each.size for each in reversed(gradients)]
        total, done, pairs = sum(weights), 0.0, []
        for each, weight in zip(reversed(gradients), weights, strict=True):
            done += weight
            pairs.append((each.size, 1e3 * (backward or 1.0) * done / total))
        by = "flops" if all(each.flops for each in gradients) else "their sizes"
        notes = (f"{file}: ready times are estimated: the backward pass is shared out by {by}",)
    sizes, ready = in_ready_order(pairs)
    if backward is None and not has_ready:
        return Description(sizes, element_bytes, None)
    if times["forward_ms"] is None or times["optimizer_ms"] is None:
        notes += (f"{file}: without forward_ms and optimizer_ms the step is the backward alone",)
    work = Work(
        name=file,
        source="model",
        sizes=sizes,
        ready_us=ready,
        before_us=1e3 * (times["forward_ms"] or 0.0),
        backward_us=max(1e3 * (backward or 0.0), ready[-1]),
        after_us=1e3 * (times["optimizer_ms"] or 0.0),
        element_bytes=element_bytes,
        notes=notes,
    )
    return Description(sizes, element_bytes, work)


def _gradients(placed: Placed, element: float, problems: list[str]) -> list[_Gradient]:
    rows = placed.value.get("gradients")
    if not isinstance(rows, list) or not rows:
        problems.append(_problem(placed, "gradients", "wanted a list of gradients"))
        return []
    found: list[_Gradient] = []
    for number, row in enumerate(rows):
        path = f"gradients.{number}"
        if not isinstance(row, dict):
            problems.append(_problem(placed, "gradients", f"number {number + 1} is no object"))
            continue
        for key in row.keys() - _GRADIENT_KEYS:
            known = ", ".join(sorted(_GRADIENT_KEYS))
            problems.append(_problem(placed, f"{path}.{key}", f"unknown key, known are {known}"))
        size = _number(placed, row, "bytes", path, problems, least=1)
        elements = _number(placed, row, "elements", path, problems, least=1)
        if (size is None) == (elements is None):
            place = f"{path}.{next(iter(row), '')}"
            problems.append(_problem(placed, place, "wanted bytes, or elements, at a gradient"))
            continue
        count = int(_number(placed, row, "count", path, problems, least=1) or 1)
        ready = _number(placed, row, "ready_ms", path, problems)
        flops = _number(placed, row, "flops", path, problems) or 0.0
        if len(found) + count > GRADIENTS_MOST:
            problems.append(_problem(placed, path, f"more than {GRADIENTS_MOST} gradients"))
            return found
        each = _Gradient(size if size is not None else element * (elements or 0), ready, flops)
        found.extend([each] * count)
    return found


def _number(
    placed: Placed,
    row: Mapping[str, object],
    key: str,
    path: str,
    problems: list[str],
    *,
    least: float = 0.0,
) -> float | None:
    value = row.get(key)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value < least
    ):
        place = f"{path}.{key}" if path else key
        problems.append(_problem(placed, place, f"{value!r} is no number from {least:g} on"))
        return None
    return float(value)


def _problem(placed: Placed, path: str, what: str) -> str:
    return f"{placed.at(path)}: error: {path}: {what} [{WHAT}]"
