"""Several files read at once: one process a core, one counter of bytes for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commcheck.errors import UsageError
from commcheck.processes import hear, unhearing
from commcheck.trace.together import Read, read_one

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

_WORTH_PROCESSES: Final = 32 << 20
"""Bytes on disk from which starting processes costs less than it saves."""

Watch = Callable[[int, int], None]
"""Called with bytes read so far and bytes in all."""


def read_all(
    paths: Sequence[Path], kernels: tuple[str, ...], workers: int, watch: Watch | None
) -> list[Read]:
    """Every file, in the order given. ``workers``: processes, 0 for one a core if worth it."""
    total = sum(path.stat().st_size for path in paths)
    count = min(len(paths), workers or cpu_count() or 1)
    if count > 1 and (workers or total >= _WORTH_PROCESSES):
        return _read_apart(paths, kernels, count, total, watch)
    seen = 0

    def progress(more: int) -> None:
        nonlocal seen
        seen += more
        if watch is not None:
            watch(seen, total)

    return [read_one(path, kernels, progress) for path in paths]


_counter: Synchronized[int] | None = None


def _share(counter: Synchronized[int]) -> None:
    """In a worker process: where it counts the bytes it has read."""
    global _counter
    hear()
    _counter = counter


def _count(more: int) -> None:
    if _counter is not None:
        with _counter.get_lock():
            _counter.value += more


def _read_in_worker(path: Path, kernels: tuple[str, ...]) -> Read:
    return read_one(path, kernels, _count)


def _read_apart(
    paths: Sequence[Path], kernels: tuple[str, ...], workers: int, total: int, watch: Watch | None
) -> list[Read]:
    # Imported here: one file, the common case, needs no processes and should not wait for them.
    from concurrent.futures import ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    context = get_context("spawn")
    counter = context.Value("q", 0)
    with ProcessPoolExecutor(workers, context, _share, (counter,)) as pool:
        with unhearing():
            futures = [pool.submit(_read_in_worker, path, kernels) for path in paths]
        left = set(futures)
        while left:
            _, left = wait(left, timeout=0.2)
            if watch is not None:
                watch(counter.get_obj().value, total)  # no lock: who was killed may hold it
        try:
            return [future.result() for future in futures]
        except BrokenProcessPool:
            what = "a process that read traces was killed: out of memory? see dmesg"
            raise UsageError(f"error: {what}; --processes 1 needs less [trace]") from None
