"""``nvidia-smi -L``: the GPUs that the driver lists, and the ways in which it cannot.

What the tool says of a broken driver is a reading, not a failure to read: it is what the check
asks for. The list has no last line; that it is whole is told by the exit code, which a tool that
was cut short does not leave at 0.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.nvidia_warnings import corrupted, without_warnings
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-smi"

_GPU: Final = regex(r"GPU (\d{1,3}): (\S.*?) \(UUID: (GPU-[0-9a-f-]{36})\)\s*")
_LOST: Final = regex(
    r"Unable to determine the device handle for (?:GPU|gpu) ?(?:\d{1,3}: )?([0-9A-Fa-f:.]+): (.*)"
)
"""Drivers name the GPU by its address, by its number, or by both."""
_GRACE: Final = regex(r"\bG[BH]\d{3}\b")


class DriverTrouble(StrEnum):
    """Why the driver lists nothing at all."""

    MISMATCH = "driver/library version mismatch"
    NO_DRIVER = "no driver"
    NO_DEVICES = "no devices"
    NO_ACCESS = "no access to the driver"


_TROUBLES: Final = (
    (regex(r"Driver/library version mismatch"), DriverTrouble.MISMATCH),
    (regex(r"couldn't communicate with the NVIDIA driver"), DriverTrouble.NO_DRIVER),
    (regex(r"Driver Not Loaded"), DriverTrouble.NO_DRIVER),
    (regex(r"^No devices (?:were )?found", re.MULTILINE), DriverTrouble.NO_DEVICES),
    (regex(r"Failed to initialize NVML: Unknown Error"), DriverTrouble.NO_ACCESS),
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as listed."""

    index: int
    name: str
    uuid: str


@dataclass(frozen=True, slots=True)
class GpuList:
    """What the driver lists.

    ``lost``: PCI addresses that it knows and cannot talk to. ``corrupted``: those whose InfoROM is.
    """

    gpus: tuple[Gpu, ...] = ()
    lost: tuple[str, ...] = ()
    trouble: DriverTrouble | None = None
    has_mig: bool = False  # at least one GPU is split into MIG instances
    corrupted: tuple[str, ...] = ()

    @property
    def is_grace(self) -> bool:
        """A board whose GPUs hang on NVIDIA's own CPU by NVLink-C2C: GH200, GB200, GB300."""
        return any(_GRACE.search(gpu.name) for gpu in self.gpus)


def parse(output: Output) -> GpuList:
    """The list. MIG instances are no GPUs of their own."""
    worn = corrupted(output)
    output = without_warnings(output)
    text = output.text
    both = f"{text}\n{Output(output.stderr).text}"
    lost = tuple(dict.fromkeys(match[1] for match in _LOST.finditer(both)))
    if output.rc != 0 and not lost:
        for pattern, trouble in _TROUBLES:
            if pattern.search(both):
                return GpuList(trouble=trouble)
        require_ok(output, TOOL)
    gpus = tuple(_gpus(text))
    if not gpus and not lost:
        raise ParseError(TOOL, text, "lines like 'GPU 0: NAME (UUID: GPU-...)'")
    indices = [gpu.index for gpu in gpus]
    # A lost GPU leaves a gap; any other gap or repetition is a damaged answer.
    if indices != sorted(set(indices)) or (not lost and indices != list(range(len(indices)))):
        raise ParseError(TOOL, text, "GPU indices from 0 without a gap")
    has_mig = re.search(r"^\s+MIG .*\(UUID: MIG-", text, re.MULTILINE) is not None
    return GpuList(gpus=gpus, lost=lost, has_mig=has_mig, corrupted=worn)


def _gpus(text: str) -> list[Gpu]:
    gpus = []
    for line in text.splitlines(keepends=True):
        if re.match(r"GPU \d", line):
            match = _GPU.fullmatch(line)
            if match is None or not line.endswith("\n"):
                raise ParseError(TOOL, text, f"a whole line where it says {line.strip()[:60]!r}")
            gpus.append(Gpu(int(match[1]), match[2], match[3]))
        elif line.startswith("G") and not line.endswith("\n"):
            raise ParseError(TOOL, text, "a whole last line")
    return gpus


# Without persistence mode the driver first wakes every GPU, which takes many seconds.
NVIDIA_SMI_LIST: Final = Reader(
    tool=TOOL, commands=(Command((TOOL, "-L"), timeout_s=30.0),), parse=parse
)
