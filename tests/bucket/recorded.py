"""The measured tables as the simulator's input and what was measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commcheck.bucket import description
from commcheck.bucket.link import Link, given
from commcheck.bucket.work import Work

FOLDER = Path(__file__).parents[1] / "recorded" / "buckets"
SLEEP_1 = "sleep-1GBps-300us-12x1024.json"
SLEEP_2 = "sleep-2GBps-1000us-96x256.json"
GLOO = "gloo-12x1024.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One measured cap: MiB (None is DDP's default), sizes of its buckets, least p10 in ms."""

    cap: float | None
    sizes: tuple[int, ...]
    p10: float


def recorded(name: str) -> dict[str, Any]:
    """A recording."""
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


def model(data: dict[str, Any], factor: float = 1.0) -> dict[str, Any]:
    """The recording's step as a description; ``factor`` on all of its times."""
    spec = data["spec"]
    return {
        "forward_ms": spec["fwd_ms"] * factor,
        "backward_ms": spec["bwd_ms"] * factor,
        "optimizer_ms": spec["opt_ms"] * factor,
        "gradients": [{**each, "ready_ms": each["ready_ms"] * factor} for each in spec["params"]],
    }


def pure_step(name: str) -> Work:
    """The step without communication. The second table's was taken under load: by its least."""
    data = recorded(name)
    spec = data["spec"]
    whole = spec["fwd_ms"] + spec["bwd_ms"] + spec["opt_ms"]
    factor = data["nosync"]["min"] / whole if name == SLEEP_2 else 1.0
    work = description.read(json.dumps(model(data, factor)), name).work
    assert work is not None
    return work


def network(name: str) -> Link:
    """The hook's own time."""
    data = recorded(name)
    return given(data["alpha_us"], data["gbps"])


def rows(name: str) -> list[Row]:
    """What was measured. Caps with the same buckets are one: its least p10 over them all."""
    found = []
    for each in recorded(name)["table"]:
        cap = None if each["cap"] == "none" else float(each["cap"])
        sizes = tuple(int(size) for size in each["sizes"].split(","))
        p10 = min(each["p10"], each.get("p10_other_run", each["p10"]))
        found.append(Row(cap, sizes, p10))
    return found
