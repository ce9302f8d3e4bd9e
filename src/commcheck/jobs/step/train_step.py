"""A few profiled steps of a small training, for the host it is carried to. Knows no commcheck.

``python -c STARTER TEXT OPTIONS`` makes a private folder, starts this text once for each rank
under torchrun, prints what it is told by the ranks and their traces, and removes the folder. What
it prints, a line each: ``step`` and JSON, ``problem`` and JSON, ``left-out RANK BYTES``, and
``trace RANK`` with a piece of the packed trace in base64. Needs Python 3.8 and torch 1.13.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

_PIECE = 3000  # bytes of a trace in one line
_NO_TORCH, _FAILED = 3, 4
_SETTLE = 4  # steps before the profiled ones: DDP forms its buckets anew after the first


# --- on the host: once --------------------------------------------------------------------------


def launch(text: str, options: dict[str, Any]) -> int:
    """Start the ranks, wait for them, print what they leave, and remove all of it."""
    os.environ.update(options["env"])
    if importlib.util.find_spec("torch") is None:
        say("problem", {"missing": "torch", "python": sys.executable})
        return _NO_TORCH
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    folder = Path(tempfile.mkdtemp(prefix="commcheck-step-"))
    try:
        return _ranks(folder, text, options)
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)


def _leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def _ranks(folder: Path, text: str, options: dict[str, Any]) -> int:
    script = folder / "train_step.py"
    script.write_text(text)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    # Torch before 2.0 knows these words with underscores only.
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1"]
    words += ["--master_addr", "127.0.0.1", "--master_port", str(port)]
    words += ["--nproc_per_node", str(options["ranks"]), str(script), json.dumps(options)]
    log = folder / "ranks.log"
    # torchrun and inductor would leave folders of their own in the temporary one.
    env = {**os.environ, "COMMCHECK_STEP_FOLDER": str(folder), "TMPDIR": str(folder)}
    with log.open("wb") as out:
        child = subprocess.Popen(  # noqa: S603
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env
        )
    try:
        rc = child.wait(options["limit_s"])
    except subprocess.TimeoutExpired:
        say("problem", {"what": f"the ranks did not end within {options['limit_s']:g} s"})
        rc = _FAILED
    finally:
        child.kill()
        child.wait()
        _end_all(f"COMMCHECK_STEP_FOLDER={folder}".encode())
    told = sorted(folder.glob("rank*.told"))
    for each in told:
        line = each.read_text()
        if each.name == "rank0.told" or line.startswith("problem"):
            sys.stdout.write(line)
    if rc:
        sys.stderr.write(log.read_text(errors="replace")[-6000:])
        return _FAILED
    for path in sorted(folder.glob("rank*.json.gz")):
        _print_trace(path, options["most_bytes"])
    return 0


def _end_all(variable: bytes) -> None:
    """End what has the variable: torchrun gives every rank a session of its own."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if variable in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def _print_trace(path: Path, most_bytes: int) -> None:
    rank = path.name[len("rank") :].partition(".")[0]
    data = path.read_bytes()
    if len(data) > most_bytes:
        sys.stdout.write(f"left-out {rank} {len(data)}\n")
        return
    for at in range(0, len(data), _PIECE):
        piece = base64.b64encode(data[at : at + _PIECE]).decode()
        sys.stdout.write(f"trace {rank} {piece}\n")
    sys.stdout.write(f"traced {rank} {len(data)}\n")


def say(word: str, told: dict[str, Any], path: Path | None = None) -> None:
    """A word and JSON on one line, into a file or to stdout."""
    line = f"{word} {json.dumps(told)}\n"
    if path is None:
        sys.stdout.write(line)
    else:
        path.write_text(line)


# --- on every rank ------------------------------------------------------------------------------


def work(options: dict[str, Any]) -> int:
    """Train a few steps, profile some of them, and leave the trace beside this script."""
    rank = int(os.environ["RANK"])
    told = Path(__file__).with_name(f"rank{rank}.told")
    import torch
    import torch.distributed as dist

    kind = _kind(torch, options["device"])
    if kind is None:
        what = f"torch {torch.__version__} there sees no {options['device']}"
        say("problem", {"what": what, "missing": options["device"]}, told)
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
            say("step", {
                "torch": torch.__version__, "device": name, "backend": backend,
                "ranks": dist.get_world_size(), "sharding": options["sharding"],
                "parameters": blocks * (8 * width * width + 7 * width),
                "step_ms": times,
            }, told)  # fmt: skip
        dist.barrier()
    finally:
        dist.destroy_process_group()
    return 0


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
    if len(sys.argv) == 3:
        import zlib

        TEXT = zlib.decompress(base64.b64decode(sys.argv[1])).decode()
        sys.exit(launch(TEXT, json.loads(sys.argv[2])))
    sys.exit(work(json.loads(sys.argv[1])))
