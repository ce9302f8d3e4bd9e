"""``dcb -j`` of iproute2: the kernel's view of a port's priorities, whatever its driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from commcheck.demo.parts import Answer
from commcheck.demo.state import HostState
from commcheck.formats.qos import Qos

TOOLS: Final = ("dcb",)


def answers(host: HostState, queries: Iterable[str]) -> Iterator[Answer]:
    """Of every Ethernet port."""
    for nic in host.ports:
        if nic.present and nic.link_layer == "Ethernet":
            for what, render in (("pfc", pfc), ("app", app), ("dcbx", dcbx)):
                argv = ("dcb", "-j", what, "show", "dev", nic.netdev)
                if nic.is_vf:
                    yield Answer(argv, "", "Attribute read: Operation not supported\n", 1)
                else:
                    yield Answer(argv, render(nic.qos))


def pfc(qos: Qos) -> str:
    """``dcb -j pfc show``."""
    return _line(
        {
            "pfc_cap": 8,
            "macsec_bypass": False,
            "delay": 7,
            "prio_pfc": [prio in qos.pfc for prio in range(8)],
        }
    )


def app(qos: Qos) -> str:
    """``dcb -j app show``: a port that trusts tags has no DSCP in its table."""
    return _line({"dscp_prio": qos.dscp_prio} if qos.trust == "dscp" else {})


def dcbx(qos: Qos) -> str:
    """``dcb -j dcbx show``: the flags that are set."""
    flag = "host" if qos.dcbx == "os" else "cee"
    return _line({flag: True, "ieee": True})


def _line(document: dict[str, object]) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"
