"""One rank of a small training, some steps of it profiled. Knows no commcheck.

``torchrun train_step.py OPTIONS``: leaves its trace beside this script as ``rankR.json.gz``, and
in ``rankR.told`` one line: ``step`` or ``problem`` and JSON. Needs Python 3.8 and torch 1.13.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

_FAILED = 4
_SETTLE = 4  # steps before the profiled ones: DDP forms its buckets anew after the first


def work(options: dict[str, Any]) -> int:
    """Train a few steps, profile some of them, and leave the trace beside this script."""
    rank = int(os.environ["RANK"])
    told = Path(__file__).with_name(f"rank{rank}.told")
    import torch
    import torch.distributed as dist

    kind = _kind(torch, options["device"])
    if kind is None:
        what = f"torch {torch.__version__} there sees no {options['device']}"
        _tell(told, "problem", {"what": what, "missing": options["device"]})
        return _FAILED
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cpu") if kind == "cpu" else torch.device(kind, local)
    if kind == "cpu":
        torch.set_num_threads(1)
    else:
        getattr(torch, kind).set_device(device)
    backend = {"cuda": "nccl", "npu": "hccl"}.get(kind, "gloo")
    dist.init_process_group(backend, timeout=timedelta(seconds=options["limit_s"]))
    try:
        name, width, blocks, batch = _size(torch, kind, device)
        step = _training(torch, kind, device, options["sharding"], (width, blocks, batch))
        for _ in range(_SETTLE):
            step()
        dist.barrier()
        times = _profiled(torch, kind, step, options["steps"], told.with_suffix(".json.gz"))
        if rank == 0:
            parameters = blocks * (8 * width * width + 7 * width)
            _tell(told, "step", {
                "torch": torch.__version__, "device": name, "backend": backend,
                "ranks": dist.get_world_size(), "sharding": options["sharding"],
                "parameters": parameters, "step_ms": times,
                # Of one rank and step: forward, and twice as much backward, a multiply-add each.
                "flops": 3 * 2 * batch * parameters,
            })  # fmt: skip
        dist.barrier()
    finally:
        dist.destroy_process_group()
    return 0


def _tell(path: Path, word: str, told: dict[str, Any]) -> None:
    path.write_text(f"{word} {json.dumps(told)}\n")


def _kind(torch: Any, wanted: str) -> str | None:
    """The device to train on; None where what is wanted is not there."""
    if wanted == "npu" and importlib.util.find_spec("torch_npu") is not None:
        importlib.import_module("torch_npu")
    if wanted == "cpu":
        return wanted
    there = getattr(torch, wanted, None)
    return wanted if there is not None and there.is_available() else None


def _size(torch: Any, kind: str, device: Any) -> tuple[str, int, int, int]:
    """The device's name, and width, blocks and batch that keep it busy in an eighth of it."""
    if kind == "cpu":
        return "cpu", 256, 8, 64
    there = getattr(torch, kind)
    memory = there.get_device_properties(device).total_memory
    name = str(there.get_device_name(device))
    for least_gib, width, blocks in ((56, 4096, 12), (28, 3072, 10), (14, 2048, 8)):
        if memory >= least_gib << 30:
            return name, width, blocks, 8192
    return name, 1024, 8, 4096


def _training(
    torch: Any,
    kind: str,
    device: Any,
    sharding: str,
    size: tuple[int, int, int],
) -> Any:
    """A function that does one step: forward, backward, optimizer."""
    nn = torch.nn
    width, blocks, batch = size
    dtype = torch.float32
    if kind != "cpu":
        asks = getattr(getattr(torch, kind), "is_bf16_supported", None)
        dtype = torch.bfloat16 if asks is None or asks() else torch.float16
    torch.manual_seed(7)
    layers = [
        nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        for _ in range(blocks)
    ]
    model = nn.Sequential(*layers).to(device=device, dtype=dtype)
    if sharding == "fsdp":
        model = _sharded(model, device, kind)
    else:
        ids = None if kind == "cpu" else [device.index]
        model = nn.parallel.DistributedDataParallel(model, device_ids=ids)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    data = torch.randn(batch, width, device=device, dtype=dtype)

    def step() -> None:
        model(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def _sharded(model: Any, device: Any, kind: str) -> Any:
    """FSDP2 where torch has it, else FSDP1; each block is a unit."""
    fsdp = importlib.import_module("torch.distributed.fsdp")
    shard = getattr(fsdp, "fully_shard", None)
    if shard is not None:
        for block in model:
            shard(block)
        return shard(model)
    wrap = fsdp.FullyShardedDataParallel
    where = {} if kind == "cpu" else {"device_id": device}
    for at, block in enumerate(model):
        model[at] = wrap(block, **where)
    return wrap(model, **where)


def _profiled(torch: Any, kind: str, step: Any, steps: int, path: Path) -> list[float]:
    """Times of the profiled steps in ms; their trace is packed into ``path``."""
    profiler = torch.profiler
    if kind == "npu":
        profiler = importlib.import_module("torch_npu").profiler
    activity = profiler.ProfilerActivity
    activities = (
        [activity.CPU] if kind == "cpu" else [activity.CPU, getattr(activity, kind.upper())]
    )
    folder = path.with_suffix(".profile")
    ready = (
        profiler.tensorboard_trace_handler(str(folder))
        if kind == "npu"
        else lambda made: made.export_chrome_trace(str(path))
    )
    times = []
    schedule = profiler.schedule(wait=0, warmup=1, active=steps, repeat=1)
    with profiler.profile(activities=activities, schedule=schedule, on_trace_ready=ready) as made:
        for number in range(1 + steps):
            begun = time.perf_counter()
            step()
            if number == steps and kind != "cpu":
                getattr(torch, kind).synchronize()  # or the last step would be cut
            times.append(round(1e3 * (time.perf_counter() - begun), 3))
            made.step()
    for view in folder.rglob("trace_view.json"):
        with gzip.open(str(path), "wb") as out:
            out.write(view.read_bytes())
    return times[1:]


if __name__ == "__main__":
    sys.exit(work(json.loads(sys.argv[1])))
