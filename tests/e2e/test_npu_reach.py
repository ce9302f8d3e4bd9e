"""``physical.npu-reach`` over SSH on hosts of the embedded fleet: the NPU at fault is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from commcheck.demo.fault import known_faults
from commcheck.demo.persona import cast
from tests.e2e.test_loads import climb, of


@pytest.mark.slow
def test_an_npu_whose_port_is_in_a_vlan_apart(tmp_path: Path) -> None:
    states = cast(4, ["ascend-910b"])
    states[1] = known_faults()["npu-vlan-apart"].change(states[1])
    book = tmp_path / "wire.yaml"
    book.write_text(
        "name: wire\nallow: [load]\nplays:\n"
        "  - {layer: physical, checks: [physical.npu-link-up, physical.npu-ip]}\n"
        "  - {name: wire, layer: physical, checks: [physical.npu-reach]}\n"
    )
    found = of(climb(states, book, tmp_path / "reports"), "npu-reach")
    assert {host: status for host, (status, _) in found.items()} == {
        "@all": "fail",
        "gpu-01": "pass",
        "gpu-02": "fail",
        "gpu-03": "pass",
        "gpu-04": "pass",
    }
    assert "host gpu-02 rail 2" in found["gpu-02"][1]
    assert "npu2: 100 % of the packets are lost, want none" in found["gpu-02"][1]
