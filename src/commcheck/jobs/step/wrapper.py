"""Profiles a few steps of whatever trains in a process that finds this as ``sitecustomize``.

``COMMCHECK_STEP_FOLDER``: where traces go, as ``rankR.json.gz``, beside ``rankR.began`` with the
number of ranks on this host, ``rankR.told`` with what ran as ``step`` and JSON, and
``rankR.problem`` with what went wrong. ``COMMCHECK_STEP_SKIP`` and ``COMMCHECK_STEP_STEPS``:
optimizer steps that are let pass, and those that are profiled. Whatever goes wrong in here, the
training goes on. Needs Python 3.8 and torch 2.0; knows no commcheck.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

_HOOKED = "torch.optim.optimizer"


class Steps:
    """Counts the steps of the first optimizer that steps, and profiles some of them."""

    def __init__(self, folder: Path, skip: int, steps: int) -> None:
        """Nothing is profiled yet."""
        self.folder, self.skip, self.steps = folder, skip, steps
        self.optimizer: int | None = None
        self.count = 0
        self.parameters = 0
        self.ended: list[float] = []
        self.made: Any = None
        self.name = ""

    def stepped(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """Called after every step of every optimizer."""
        if self.optimizer is None:
            self.optimizer = id(optimizer)
            groups = getattr(optimizer, "param_groups", ())
            self.parameters = sum(each.numel() for group in groups for each in group["params"])
        if self.optimizer != id(optimizer) or self.count > self.skip + self.steps:
            return
        self.count += 1
        try:
            self._count()
        except Exception as error:  # noqa: BLE001 - the training is the user's, and goes on
            _tell_problem(self.folder, self.name or "rank", repr(error))
            self.count = sys.maxsize

    def _count(self) -> None:
        torch = sys.modules["torch"]
        if self.count == self.skip:
            dist = torch.distributed
            met = dist.is_available() and dist.is_initialized()
            rank = dist.get_rank() if met else int(os.environ.get("RANK", "0"))
            self.name = f"rank{rank}"
            ranks = os.environ.get("LOCAL_WORLD_SIZE", "1")
            (self.folder / f"{self.name}.began").write_text(f"{ranks}\n")
            self._start(torch)
        elif self.count > self.skip:
            last = self.count == self.skip + 1 + self.steps
            if last and torch.cuda.is_available():
                torch.cuda.synchronize()  # or the last step would be cut
            self.ended.append(time.perf_counter())
            self.made.step()
            if last:
                self.made.stop()
                self.made = None

    def _start(self, torch: Any) -> None:
        npu = sys.modules.get("torch_npu")
        profiler = torch.profiler if npu is None else npu.profiler
        activity = profiler.ProfilerActivity
        activities = [activity.CPU]
        if npu is not None:
            activities.append(activity.NPU)
        elif torch.cuda.is_available():
            activities.append(activity.CUDA)
        self.made = profiler.profile(
            activities=activities,
            schedule=profiler.schedule(wait=0, warmup=1, active=self.steps, repeat=1),
            on_trace_ready=self._keep if npu is None else self._keep_npu,
        )
        self.made.start()

    def _keep(self, made: Any) -> None:
        path = self.folder / f"{self.name}.part.json.gz"
        made.export_chrome_trace(str(path))
        self._there(path)

    def _there(self, path: Path) -> None:
        """What ran is told before the trace is there: then nobody waits any more."""
        torch = sys.modules["torch"]
        dist = torch.distributed
        met = dist.is_available() and dist.is_initialized()
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        told = {
            "torch": str(getattr(torch, "__version__", "")),
            "device": device if "torch_npu" not in sys.modules else "npu",
            "backend": dist.get_backend() if met else "none",
            "ranks": dist.get_world_size() if met else 1,
            "sharding": "own",
            "parameters": self.parameters,
            "step_ms": [
                round(1e3 * (self.ended[at] - self.ended[at - 1]), 3)
                for at in range(1, len(self.ended))
            ],
        }
        (self.folder / f"{self.name}.told").write_text(f"step {json.dumps(told)}\n")
        path.replace(self.folder / f"{self.name}.json.gz")

    def _keep_npu(self, made: Any) -> None:
        folder = self.folder / f"{self.name}.profile"
        sys.modules["torch_npu"].profiler.tensorboard_trace_handler(str(folder))(made)
        for view in folder.rglob("trace_view.json"):
            path = self.folder / f"{self.name}.part.json.gz"
            with gzip.open(str(path), "wb") as out:
                out.write(view.read_bytes())
            self._there(path)


def _tell_problem(folder: Path, name: str, what: str) -> None:
    # The folder may be full, or gone with who waited: the training goes on all the same.
    with contextlib.suppress(OSError):
        (folder / f"{name}.problem").write_text(f"{what}\n")


class Finder:
    """Lets the module of optimizers be imported as ever, and then hooks into it."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        """The module's own spec, whose loader also hooks; None for every other module."""
        if name != _HOOKED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                _hook(module)

            loader.exec_module = exec_module
        return spec


def _hook(module: Any) -> None:
    folder = Path(os.environ["COMMCHECK_STEP_FOLDER"])
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is None:
        _tell_problem(folder, "rank", "torch is older than 2.0 and calls no hook")
        return
    numbers = (int(os.environ[f"COMMCHECK_STEP_{name}"]) for name in ("SKIP", "STEPS"))
    register(Steps(folder, *numbers).stepped)


def _the_other_one() -> None:
    """The sitecustomize that stands behind this one, if there is one, runs as ever."""
    here = Path(__file__).resolve().parent
    behind = [each for each in sys.path if Path(each or ".").resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "COMMCHECK_STEP_FOLDER" in os.environ:
    sys.meta_path.insert(0, Finder())
    _the_other_one()
