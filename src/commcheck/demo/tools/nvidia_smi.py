"""``nvidia-smi``: the GPUs, their NVLinks, and columns about each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from commcheck.demo.job import local_ranks
from commcheck.demo.parts import Answer
from commcheck.demo.state import GpuState, HostState

TOOLS: Final = ("nvidia-smi",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of all GPUs. ``queries``: the columns that are asked for, with commas between."""
    gone = next((gpu for gpu in host.gpus if gpu.lost), None)
    if gone is not None:
        # The tool gives up at the first GPU that it cannot open.
        yield Answer(("nvidia-smi",), lost(gone), rc=255)
        return
    yield Answer(("nvidia-smi", "-L"), listed(host.gpus))
    yield Answer(("nvidia-smi", "nvlink", "-s"), nvlink(host.gpus, host.driver))
    plain = "--format=csv,noheader,nounits"
    apps = ("nvidia-smi", "--query-compute-apps=pid,used_memory,process_name", plain)
    yield Answer(apps, processes(host))
    load = ("nvidia-smi", "--query-gpu=index,memory.used,utilization.gpu", plain)
    yield Answer(load, in_use(host))
    for columns in queries:
        argv = ("nvidia-smi", f"--query-gpu={columns}", "--format=csv")
        names = columns.split(",")
        if (young := _too_young(names, host.driver)) is not None:
            yield Answer(argv, f'Field "{young}" is not a valid field to query.\n', rc=2)
            continue
        yield Answer(argv, query(host.gpus, names))


def processes(host: HostState) -> str:
    """``nvidia-smi --query-compute-apps``: nothing where nothing runs, as far as it can see."""
    ranks = [(pid, _RANK_MIB, "python3") for _, pid in local_ranks(host)]
    others = [(each.pid, each.mib, each.name) for each in host.running if not each.hidden]
    return "".join(f"{pid}, {mib}, {name}\n" for pid, mib, name in (*ranks, *others))


_DRIVER_MIB: Final = 4
_RANK_MIB: Final = 61_204


def in_use(host: HostState) -> str:
    """Memory in MiB and load in percent of each GPU; every job is on all of them."""
    used = _DRIVER_MIB + sum(each.mib for each in host.running)
    used += _RANK_MIB if host.job is not None else 0
    return "".join(f"{index}, {used}, {gpu.load_percent}\n" for index, gpu in enumerate(host.gpus))


def listed(gpus: tuple[GpuState, ...]) -> str:
    """``nvidia-smi -L``."""
    return "".join(_gpu_line(index, gpu) for index, gpu in enumerate(gpus))


def _gpu_line(index: int, gpu: GpuState) -> str:
    return f"GPU {index}: {gpu.name} (UUID: {gpu.uuid})\n"


_TABS_FROM: Final = 510
"""Own choice between the recordings: older drivers put blanks before a link, newer ones a tab."""


def nvlink(gpus: tuple[GpuState, ...], driver: str) -> str:
    """``nvidia-smi nvlink -s``."""
    indent = "\t " if int(driver.partition(".")[0]) >= _TABS_FROM else " " * 9
    lines = []
    for index, gpu in enumerate(gpus):
        lines.append(_gpu_line(index, gpu))
        if gpu.all_inactive:
            lines.append("NVML: Unable to retrieve NVLink information as all links are inActive\n")
        for link, gbytes in enumerate(gpu.links_gbytes):
            lines.append(
                f"{indent}Link {link}: {'<inactive>' if gbytes is None else f'{gbytes:g} GB/s'}\n"
            )
    return "".join(lines)


def lost(gpu: GpuState) -> str:
    """What every call says once a GPU fell off the bus."""
    domain, _, rest = gpu.pci.partition(":")
    address = f"{domain}:{rest.upper()}"
    return f"Unable to determine the device handle for GPU{address}: Unknown Error\n"


def _known(value: int | None) -> str:
    return "[N/A]" if value is None else str(value)


_COLUMNS: Final[dict[str, Callable[[int, GpuState], str]]] = {
    "index": lambda index, _: str(index),
    "name": lambda _, gpu: gpu.name,
    "uuid": lambda _, gpu: gpu.uuid,
    "pci.bus_id": lambda _, gpu: f"0000{gpu.pci.upper()}",
    "pcie.link.gen.current": lambda _, gpu: _known(gpu.pcie_gen),
    "pcie.link.gen.max": lambda _, gpu: str(gpu.pcie_max_gen),
    "pcie.link.width.current": lambda _, gpu: _known(gpu.pcie_width),
    "pcie.link.width.max": lambda _, __: "16",
    "utilization.gpu": lambda _, gpu: f"{gpu.load_percent} %",
    "clocks_throttle_reasons.active": lambda _, gpu: f"0x{gpu.idle_reasons:016x}",
    "clocks_event_reasons.active": lambda _, gpu: f"0x{gpu.idle_reasons:016x}",
    "ecc.errors.uncorrected.volatile.total": lambda _, gpu: _ecc_errors(gpu),
    "persistence_mode": lambda _, gpu: _mode(on=gpu.care.persistence),
    "compute_mode": lambda _, gpu: gpu.care.compute_mode,
    "mig.mode.current": lambda _, gpu: _mode(on=gpu.care.mig),
    "ecc.mode.current": lambda _, gpu: _mode(on=gpu.care.ecc),
    "temperature.gpu": lambda _, gpu: str(gpu.care.temperature_c),
    "power.limit": lambda _, gpu: f"{gpu.care.limit_watts:.2f} W",
    "power.default_limit": lambda _, gpu: f"{gpu.care.default_watts:.2f} W",
    "enforced.power.limit": lambda _, gpu: (
        f"{gpu.care.enforced_watts or gpu.care.limit_watts:.2f} W"
    ),
    "fabric.state": lambda _, gpu: gpu.care.fabric[0],
    "fabric.status": lambda _, gpu: gpu.care.fabric[1],
    "protected_memory.total": lambda _, gpu: f"{gpu.care.protected_mib} MiB",
}

_UNITS: Final = {
    "utilization.gpu": " [%]",
    "power.limit": " [W]",
    "power.default_limit": " [W]",
    "enforced.power.limit": " [W]",
    "protected_memory.total": " [MiB]",
}

_YOUNG: Final = ("fabric.", "protected_memory.")
_YOUNG_FROM: Final = 535
"""Drivers before do not know these columns, and refuse all of a query for one of them."""


def _too_young(names: list[str], driver: str) -> str | None:
    """The first column that a driver of this release does not know."""
    if int(driver.partition(".")[0]) >= _YOUNG_FROM:
        return None
    return next((name for name in names if name.startswith(_YOUNG)), None)


def _mode(*, on: bool) -> str:
    return "Enabled" if on else "Disabled"


def _ecc_errors(gpu: GpuState) -> str:
    return "[GPU requires reset]" if gpu.care.requires_reset else _known(gpu.ecc_errors)


def query(gpus: tuple[GpuState, ...], columns: list[str]) -> str:
    """``nvidia-smi --query-gpu=COLUMNS --format=csv``; a column that is not simulated is [N/A]."""
    lines = [", ".join(f"{name}{_UNITS.get(name, '')}" for name in columns)]
    for index, gpu in enumerate(gpus):
        row = [_COLUMNS[name](index, gpu) if name in _COLUMNS else "[N/A]" for name in columns]
        lines.append(", ".join(row))
    return "".join(f"{line}\n" for line in lines)
