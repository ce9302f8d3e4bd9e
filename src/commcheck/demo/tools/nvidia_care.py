"""``nvidia-smi``: replaced rows, errors of NVLinks, health; ``nv-fabricmanager``: its release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import GpuState, HostState

TOOLS: Final = ("nvidia-smi", "nv-fabricmanager")

_ROWS: Final = (
    "gpu_bus_id,remapped_rows.correctable,remapped_rows.uncorrectable,"
    "remapped_rows.pending,remapped_rows.failure"
)
_HEALTH: Final = ("Bandwidth", "Route Recovery in progress", "Route Unhealthy")
NOISY_LINK: Final = 5
_COUNTERS: Final = ("Replay Errors", "Recovery Errors", "CRC Errors")
_COUNTERS_OF_BLACKWELL: Final = (
    "Malformed packet Errors",
    "Buffer overrun Errors",
    "Rx Errors",
    "Link recovery successful events",
    "Link recovery failed events",
    "Total link recovery events",
    "Effective Errors",
    "Symbol Errors",
)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Where a GPU is lost, the tool gives up before."""
    version = host.upkeep.fabric_manager_version or host.driver
    yield Answer(("nv-fabricmanager", "--version"), f"Fabric Manager version is : {version}\n")
    if host.gpus and not any(gpu.lost for gpu in host.gpus):
        argv = ("nvidia-smi", f"--query-remapped-rows={_ROWS}", "--format=csv")
        yield Answer(argv, remapped_rows(host.gpus))
        yield Answer(("nvidia-smi", "nvlink", "-e"), link_errors(host.gpus))
        yield Answer(("nvidia-smi", "-q"), about(host))


def about(host: HostState) -> str:
    """``nvidia-smi -q``, of each GPU only its part in a fabric: of HGX boards no health is told."""
    lines = ["", "==============NVSMI LOG==============", ""]
    lines += [f"{'Driver Version':<55}: {host.driver}", f"{'Attached GPUs':<55}: {len(host.gpus)}"]
    for gpu in host.gpus:
        lines += [
            f"GPU 0000{gpu.pci.upper()}",
            f"    {'Product Name':<51}: {gpu.name}",
            "    Fabric",
        ]
        state, status = gpu.care.fabric
        lines += [
            f"        {key:<47}: {word}" for key, word in (("State", state), ("Status", status))
        ]
        lines += ["        Health", *(f"            {key:<43}: N/A" for key in _HEALTH)]
        lines.append(f"    {'Processes':<51}: None")
    return "".join(f"{line}\n" for line in lines)


def remapped_rows(gpus: tuple[GpuState, ...]) -> str:
    """``nvidia-smi --query-remapped-rows=... --format=csv``."""
    lines = [_ROWS.replace(",", ", ")]
    for gpu in gpus:
        care = gpu.care
        states = ["Yes" if state else "No" for state in (care.remap_pending, care.remap_failed)]
        bus = f"0000{gpu.pci.upper()}"
        lines.append(", ".join([bus, "0", str(care.rows_replaced), *states]))
    return "".join(f"{line}\n" for line in lines)


def link_errors(gpus: tuple[GpuState, ...]) -> str:
    """``nvidia-smi nvlink -e``."""
    lines = []
    for index, gpu in enumerate(gpus):
        lines.append(f"GPU {index}: {gpu.name} (UUID: {gpu.uuid})\n")
        for link in range(len(gpu.links_gbytes)):
            lines.extend(_link(gpu, link))
    return "".join(lines)


def _link(gpu: GpuState, link: int) -> Iterator[str]:
    if "B200" in gpu.name:
        for name in _COUNTERS_OF_BLACKWELL:
            yield f"\t Link {link}: {name}: 0\n"
        yield f"\t Link {link}: Effective BER: 15e-255\n"
        return
    counts = gpu.care.link_errors if link == NOISY_LINK else (0, 0, 0)
    for name, count in zip(_COUNTERS, counts, strict=True):
        yield f"\t Link {link}: {name}: {count}\n"
    yield "\n"
