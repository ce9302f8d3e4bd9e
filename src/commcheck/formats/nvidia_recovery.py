"""``nvidia-smi -q``: what each GPU needs before it can be used again, in the driver's own words.

Younger drivers tell a recovery action, those before whether a reset is required. A GPU that counts
no such thing says N/A, or nothing.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Output
from commcheck.errors import ParseError
from commcheck.formats import nvidia_q
from commcheck.formats.lines import only
from commcheck.formats.nvidia_q import COMMAND, TOOL, UNTOLD, GpuLines
from commcheck.lazy import dataclass, regex

_ACTION: Final = regex(r"[A-Z][A-Za-z0-9 +]{1,40}")
"""nvmlDeviceGpuRecoveryAction_t of nvml.h in nvidia-smi's words; every release adds one."""

_REPAIRS: Final = (("Channel Repair Pending", "memory channel"), ("TPC Repair Pending", "TPC"))


@dataclass(frozen=True, slots=True)
class RecoveryGpu:
    """One GPU; None: not told.

    ``action``: what the driver asks for ("Reset", "Reboot", "Drain P2P"), "" for nothing.
    ``sram_worn``: it counted more uncorrectable errors of its SRAM than NVIDIA lets pass.
    ``unrepairable``: nothing is left to repair its memory with. ``pending``: parts whose repair
    waits for a reset.
    """

    index: int
    pci: str  # with a domain of eight digits
    action: str | None = None
    sram_worn: bool | None = None
    unrepairable: bool | None = None
    pending: tuple[str, ...] = ()


def parse(output: Output) -> tuple[RecoveryGpu, ...]:
    """The GPUs, by index."""
    text = output.text
    return tuple(
        RecoveryGpu(
            index=at,
            pci=gpu.pci,
            action=_action(gpu, text),
            sram_worn=_yes(gpu, text, "ECC Errors", "Aggregate", "SRAM Threshold Exceeded"),
            unrepairable=_yes(gpu, text, "ECC Errors", "Unrepairable Memory"),
            pending=tuple(part for name, part in _REPAIRS if _yes(gpu, text, "ECC Errors", name)),
        )
        for at, gpu in enumerate(nvidia_q.parse(output))
    )


def _action(gpu: GpuLines, text: str) -> str | None:
    if (word := _word(gpu, text, "GPU Recovery Action")) is not None:
        found = only(_ACTION, word, text, TOOL)[0]
        return "" if found == "None" else found
    reset = _yes(gpu, text, "GPU Reset Status", "Reset Required")
    drain = _yes(gpu, text, "GPU Reset Status", "Drain and Reset Recommended")
    if reset or drain:
        return "Reset" if reset else "Drain and Reset"
    return None if None in (reset, drain) else ""


def _yes(gpu: GpuLines, text: str, *way: str) -> bool | None:
    word = _word(gpu, text, *way)
    return None if word is None else only("Yes|No", word, text, TOOL)[0] == "Yes"


def _word(gpu: GpuLines, text: str, *way: str) -> str | None:
    values = gpu.values(*way)
    if len(values) > 1:
        raise ParseError(TOOL, text, f"{way[-1]!r} of a GPU once")
    return values[0] if values and values[0] not in UNTOLD else None


NVIDIA_RECOVERY: Final = Reader(tool=TOOL, commands=(COMMAND,), parse=parse)
