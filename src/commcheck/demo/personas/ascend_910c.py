"""Hosts of an A3 superpod: eight modules of two 910C chips, joined by HCCS beyond the host."""

from __future__ import annotations

from dataclasses import replace

from commcheck.demo.npu import a3_npus
from commcheck.demo.persona import Persona
from commcheck.demo.state import HostState


def change(host: HostState) -> HostState:
    """The facts that differ."""
    return replace(
        host,
        product="Atlas 800T A3",
        nics=(),
        gpus=(),
        npus=tuple(a3_npus(host.number)),
        modules=(),
    )


PERSONA = Persona(
    "Ascend 910C (A3), 16 chips with a 200G RoCE port each, HCCS over a superpod",
    change,
    {"commcheck_npu_count": 16, "commcheck_line_rate_gbits": 200},
)
