"""``fi_info``: the endpoints that libfabric's EFA provider offers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.efa import EfaState
from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState

TOOLS: Final = ("fi_info",)

_KINDS: Final = (("rdm", "FI_EP_RDM"), ("dgrm", "FI_EP_DGRAM"))


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of the devices that can be opened."""
    opened = [efa for efa in host.efas if efa.opened]
    said = "".join(map(render, opened))
    yield (
        Answer(("fi_info", "-p", "efa"), said)
        if opened
        else Answer(("fi_info", "-p", "efa"), "fi_getinfo: -61\n", rc=61)
    )


def render(efa: EfaState) -> str:
    """Both endpoints of a device."""
    return "".join(
        "provider: efa\n"
        "    fabric: efa\n"
        f"    domain: {efa.name}-{end}\n"
        "    version: 121.0\n"
        f"    type: {kind}\n"
        "    protocol: FI_PROTO_EFA\n"
        for end, kind in _KINDS
    )
