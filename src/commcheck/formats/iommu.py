"""IOMMU groups of a host: how each translates, and the PCI devices in it.

Two listings of ``/sys/kernel/iommu_groups``. A host whose IOMMU is off has no groups at all. Not
all that is in one is on PCI: virtual GPUs (mdev) and devices of ACPI have groups, too.
"""

from __future__ import annotations

from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output, clean
from commcheck.errors import CommandFailed, ParseError
from commcheck.formats.lines import files, only, whole_lines
from commcheck.lazy import dataclass, regex

TOOL: Final = "sysfs-iommu"

_GROUPS: Final = "/sys/kernel/iommu_groups"
_TYPE: Final = regex(r"/iommu_groups/(\d+)/type$")
_DEVICE: Final = regex(r"/\S*iommu_groups/(\d+)/devices/(?:([0-9a-f]{4,}:[0-9a-f:.]+)|[\w:.-]+)")


@dataclass(frozen=True, slots=True)
class Iommu:
    """Translation by device: "identity", "DMA", "DMA-FQ", "blocked"; empty where it is off."""

    translation: tuple[tuple[str, str], ...]  # (PCI address, type), sorted

    def of(self, pci: str | None) -> str | None:
        """How a device's addresses are translated; None: not at all."""
        return dict(self.translation).get(pci or "")


def parse(types: Output, devices: Output) -> Iommu:
    """The groups; raises ``CommandFailed`` where they are hidden."""
    said = clean(types.stderr) + clean(devices.stderr)
    if "Permission denied" in said:
        raise CommandFailed("the IOMMU groups may not be read")
    kinds: dict[str, str] = {}
    for match, value in files(types.text, _TYPE, TOOL):
        if match[1] in kinds:
            raise ParseError(TOOL, types.text, f"group {match[1]} once")
        kinds[match[1]] = only(
            r"identity|DMA(?:-FQ)?|blocked|unmanaged|auto", value, types.text, TOOL
        )[0]
    found = []
    for line in whole_lines(devices.text, TOOL) if devices.text else ():
        match = only(_DEVICE, line, devices.text, TOOL)
        if match[1] not in kinds:
            raise ParseError(TOOL, types.text, f"the type of group {match[1]}")
        if match[2] is not None:
            found.append((match[2], kinds[match[1]]))
    if kinds and not found:
        raise ParseError(TOOL, devices.text, "the devices of the groups")
    return Iommu(tuple(sorted(found)))


SYSFS_IOMMU: Final = Reader(
    tool=TOOL,
    commands=(
        Command(("grep", "-rHs", ".", _GROUPS, "--include=type")),
        Command(("find", _GROUPS, "-mindepth", "3", "-maxdepth", "3", "-path", "*/devices/*")),
    ),
    parse=parse,
)
