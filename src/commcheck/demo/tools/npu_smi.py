"""``npu-smi``: the table of the NPUs, and how they are linked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.npu import NpuState
from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("npu-smi",)

_HEAD: Final = """\
+------------------------------------------------------------------------------------------------+
| npu-smi {release}                 Version: {release}                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
"""
_RULE: Final = f"+{'=' * 27}+{'=' * 15}+{'=' * 52}+\n"
_PROCESSES: Final = """\
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
"""
_LEGEND: Final = """
Legend:

  X    = Self
  SYS  = Path traversing PCIe and NUMA nodes. Nodes are connected through SMP, such as QPI, UPI.
  PHB  = Path traversing PCIe and the PCIe host bridge of a CPU.
  PIX  = Path traversing a single PCIe switch
  PXB  = Path traversing multiple PCIe switches
  HCCS = Connection traversing HCCS.
  NA   = Unknown relationship.
"""
_CPUS: Final = ("144-167", "96-119", "0-23", "48-71")


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of the NPUs that are there; a host without any has no such tool's driver."""
    npus = [each for each in host.npus if each.present]
    if not npus:
        yield Answer(("npu-smi",), "dcmi module initialize failed. ret is -8005\n", rc=1)
        return
    yield Answer(("npu-smi", "info"), info(npus))
    yield Answer(("npu-smi", "info", "-t", "topo"), topo(npus))
    for npu in npus:
        words = ("-i", str(npu.number // npu.chips), "-c", str(npu.number % npu.chips))
        yield Answer(("npu-smi", "info", "-t", "health", *words), health(npu))


def info(npus: list[NpuState]) -> str:
    """``npu-smi info``."""
    rows = "".join(
        f"| {npu.number // npu.chips:<5} {npu.name:<20}| {npu.health:<14}"
        "| 93.4        41                0    "
        f"/ 0             |\n| {_chip(npu):<26}| {npu.pci.upper():<14}| 0           0    "
        f"/ 0          3392 / 65536         |\n{_RULE}"
        for npu in npus
    )
    idle = "".join(
        f"{f'| No running processes found in NPU {npu.number}':<98}|\n{_RULE}" for npu in npus
    )
    head = _HEAD.format(release=npus[0].driver)
    if npus[0].chips > 1:
        head = head.replace("| Chip         ", "| Chip  Phy-ID ")
    return f"{head}{_RULE}{rows}{_PROCESSES}{_RULE}{idle}"


def health(npu: NpuState) -> str:
    """``npu-smi info -t health`` of one chip."""
    said = ("NA", "NA")
    if npu.health != "OK":
        said = ("80E01801", "node type=HBM, sensor type=Memory, event state=Multi bit error")
    return (
        f"\tHealth Status                  : {npu.health}\n"
        f"\tError Code                     : {said[0]}\n"
        f"\tError Information              : {said[1]}\n"
    )


def _chip(npu: NpuState) -> str:
    return "0" if npu.chips == 1 else f"{npu.number % npu.chips}     {npu.number}"


def topo(npus: list[NpuState]) -> str:
    """``npu-smi info -t topo``."""
    noun = "NPU" if npus[0].chips == 1 else "Phy-ID"
    cells = [["", *(f"{noun}{npu.number}" for npu in npus), "CPU Affinity"]]
    for npu in npus:
        words = [_word(npu, other) for other in npus]
        cells.append([f"{noun}{npu.number}", *words, _CPUS[npu.number // 2 % 4]])
    lines = ("".join(f"{cell:<11}" for cell in row).rstrip() for row in cells)
    return "".join(f"{line}\n" for line in lines) + _LEGEND


def _word(npu: NpuState, other: NpuState) -> str:
    if npu is other:
        return "X"
    far = other.number in npu.far_hccs or npu.number in other.far_hccs
    if far:
        return "SYS"
    if npu.chips == 1:
        return "HCCS"
    return "SIO" if npu.number // npu.chips == other.number // other.chips else "HCCS_SW"
