"""``nvidia-smi nvlink -s``: the NVLinks of each GPU.

Cards without NVLink print the GPU's line only. The list has no last line; that it is whole is
told by the exit code, and by GPUs of one name having as many links.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, require_ok
from commcheck.errors import ParseError
from commcheck.formats.nvidia_warnings import without_warnings
from commcheck.lazy import dataclass, regex

TOOL: Final = "nvidia-smi-nvlink"

BRIDGED: Final = regex(
    r"PCIe|NVL\b|\bRTX\b|\b(?:A10|A10G|A16|A2|A30X?|A40|A100X|L4|L40S?|T4|G[PV]100)\b"
    r"|\bA800 40GB Active\b",
    re.IGNORECASE,
)
"""Names of cards that have NVLink by a bridge between two or four of them at most, or none.

The driver has PCIe in two spellings: A100-PCIE-40GB and A100 80GB PCIe. Sources: NVIDIA's data
sheets; the names are those of the README of NVIDIA's open-gpu-kernel-modules.
"""

_GPU: Final = regex(r"GPU (\d{1,3}): (\S.*?) \(UUID: GPU-[0-9a-f-]{36}\)\s*")
_LINK: Final = regex(r"[\t ]+Link (\d{1,2}): (?:<inactive>|(\d{1,3}(?:\.\d+)?) GB/s)\s*")
_ALL_DEAD: Final = regex(r"NVML: Unable to retrieve NVLink information as all links are in")


@dataclass(frozen=True, slots=True)
class NvlinkGpu:
    """One GPU. ``links_gbytes``: GB/s of each link one way, None where it is inactive.

    ``all_inactive``: the driver said so, without a list.
    """

    index: int
    name: str
    links_gbytes: tuple[float | None, ...] = ()
    all_inactive: bool = False

    @property
    def active(self) -> int:
        """Links that work."""
        return sum(link is not None for link in self.links_gbytes)


def parse(output: Output) -> tuple[NvlinkGpu, ...]:
    """The GPUs, by index."""
    output = without_warnings(output)
    require_ok(output, "nvidia-smi nvlink")
    text = output.text
    gpus: list[tuple[int, str]] = []
    links: list[list[float | None]] = []
    dead: set[int] = set()
    for line in text.splitlines(keepends=True):
        if re.match(r"\s*(?:G|Link|NVML)", line) and not line.endswith("\n"):
            raise ParseError(TOOL, text, "a whole last line")
        if line.startswith("GPU") or "UUID:" in line:
            match = _match(_GPU, line, text)
            gpus.append((int(match[1]), match[2]))
            links.append([])
        elif re.match(r"\s+Link ", line):
            match = _match(_LINK, line, text)
            if not gpus or int(match[1]) != len(links[-1]):
                raise ParseError(TOOL, text, "a GPU's links from 0 without a gap")
            links[-1].append(None if match[2] is None else float(match[2]))
        elif _ALL_DEAD.match(line.lstrip()):
            dead.add(len(gpus) - 1)
        elif re.search(r"Link|NVML|inActive", line):
            raise ParseError(TOOL, text, f"a known line where it says {line.strip()[:60]!r}")
    counts = {(name, len(mine)) for (_, name), mine in zip(gpus, links, strict=True) if mine}
    if len(counts) != len({name for name, _ in counts}):
        raise ParseError(TOOL, text, "as many links of each GPU of one name")
    if not gpus or [index for index, _ in gpus] != list(range(len(gpus))):
        raise ParseError(TOOL, text, "GPUs from 0 without a gap")
    return tuple(
        NvlinkGpu(index, name, tuple(links[at]), at in dead)
        for at, (index, name) in enumerate(gpus)
    )


def _match(pattern: re.Pattern[str], line: str, text: str) -> re.Match[str]:
    match = pattern.fullmatch(line)
    if match is None:
        raise ParseError(TOOL, text, f"a whole line where it says {line.strip()[:60]!r}")
    return match


NVIDIA_NVLINK: Final = Reader(
    tool=TOOL, commands=(Command(("nvidia-smi", "nvlink", "-s"), timeout_s=30.0),), parse=parse
)
