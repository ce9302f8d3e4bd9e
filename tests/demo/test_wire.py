"""What the fleet's tools tell of wire, switch and PCIe: as recorded, and with the facts put in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.demo.state import NicState, healthy
from commcheck.demo.tools import ethtool_wire, lldpctl, lspci, mlxlink, nvidia_topo
from commcheck.formats import ethtool_module
from commcheck.formats import lldpctl as lldp_reader
from commcheck.formats import lspci as lspci_reader
from commcheck.formats import nvidia_topo as topo_reader

RECORDED = Path(__file__).parents[1] / "recorded"
HOST = healthy(1)
NIC = HOST.nics[0]


def wired(**facts: object) -> NicState:
    return replace(NIC, wire=replace(NIC.wire, **facts))  # type: ignore[arg-type] # passed on


@pytest.mark.parametrize(
    ("rendered", "name"),
    [
        (ethtool_wire.fec(NIC), "ethtool/fec-rs.txt"),
        (mlxlink.mlxlink(NIC), "mlxlink/good-400g.json"),
    ],
)
def test_as_recorded(rendered: str, name: str) -> None:
    assert rendered == (RECORDED / name).read_text()


def test_module() -> None:
    good = ethtool_module.parse(Output(ethtool_wire.module(NIC)))
    assert good is not None
    assert (good.state, good.rx_dbm[1], good.flags) == ("ModuleReady", (2, 0.42), ())
    dark = ethtool_module.parse(Output(ethtool_wire.module(wired(rx_dbm=(0.3, -40.0)))))
    assert dark is not None
    assert dark.flags == (("laser rx power low alarm", 2),)


def test_switch() -> None:
    text = lldpctl.lldpctl(wired(switch_pfc=frozenset({3, 5}), described_as="gpu-02:ens1np0"))
    (neighbour,) = lldp_reader.parse(Output(text))
    assert (neighbour.switch, neighbour.port) == ("leaf-01", "Ethernet12")
    assert neighbour.peer_pfc == frozenset({3, 5})
    assert neighbour.port_description == "gpu-02:ens1np0"
    assert lldp_reader.parse(Output(lldpctl.lldpctl(wired(switch="")))) == ()


def test_bridges_are_above_what_they_lead_to() -> None:
    bridges = lspci_reader.parse(Output("".join(lspci.bridges(HOST))))
    above = [bridge.kind for bridge in bridges if bridge.is_above(NIC.pci)]
    assert above == ["Root Port", "Upstream Port", "Downstream Port"]
    (card,) = lspci_reader.parse(Output(lspci.endpoint(NIC)))
    assert (card.width, card.max_read_request_bytes) == (16, 4096)


def test_topology() -> None:
    topo = topo_reader.parse(Output(nvidia_topo.topology(HOST)))
    assert topo.of("GPU0") == {
        "mlx5_0": "PXB",
        "mlx5_1": "NODE",
        "mlx5_2": "NODE",
        "mlx5_3": "NODE",
    }
