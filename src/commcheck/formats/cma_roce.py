"""``cma_roce_mode`` and ``cma_roce_tos``: what RDMA-CM applications begin with.

The scripts mount configfs and need root, so commcheck itself reads configfs where it is there.
"""

from __future__ import annotations

import re
from typing import Final

from commcheck.check import Reader
from commcheck.command import Command, Output
from commcheck.errors import CommandFailed, ParseError
from commcheck.model import Rail

TOOL: Final = "cma_roce_mode"


def parse(output: Output) -> int:
    """The default RoCE version, 1 or 2."""
    return {"IB/RoCE v1": 1, "RoCE v1": 1, "RoCE v2": 2}[
        _line(output, r"(?:IB/)?RoCE v1|RoCE v2", TOOL)
    ]


def parse_tos(output: Output) -> int:
    """The default ToS byte: DSCP times 4, and the ECN bits."""
    tos = int(_line(output, r"\d{1,3}", "cma_roce_tos"))
    if tos > 255:
        raise ParseError("cma_roce_tos", output.text, f"a ToS byte, not {tos}")
    return tos


def _line(output: Output, pattern: str, tool: str) -> str:
    both = f"{output.text}{output.stderr}"
    if "must be root" in both:
        raise CommandFailed(f"{tool} needs root")
    if "not loaded" in both:
        raise CommandFailed("rdma_cm is not loaded, or has no configfs", "modprobe rdma_cm")
    if output.rc != 0:
        raise CommandFailed(f"{tool} failed with exit code {output.rc}: {output.complaint}")
    lines = re.findall(rf"^({pattern})\n", output.text, re.MULTILINE)
    if len(lines) != 1 or output.text.strip() != lines[0]:
        raise ParseError(tool, output.text, "one line")
    return str(lines[0])


CMA_ROCE_MODE: Final = Reader(
    tool=TOOL, commands=(Command((TOOL, "-d", "{hca}", "-p", "{port}")),), parse=parse, per=Rail
)
CMA_ROCE_TOS: Final = Reader(
    tool="cma_roce_tos",
    commands=(Command(("cma_roce_tos", "-d", "{hca}")),),
    parse=parse_tos,
    per=Rail,
)
