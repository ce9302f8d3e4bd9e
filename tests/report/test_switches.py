"""A rail's switch port stands beside it wherever a report names the rail."""

from __future__ import annotations

from dataclasses import replace

from commcheck.report import html, junit
from commcheck.report.record import Record
from commcheck.report.switches import switch_ports
from tests.report.runs import PASS, START, info, pfc_fail, plan, result

CHECKS = ("physical.pfc-enabled", "physical.rail-switch")


def record(port: str = "Ethernet12") -> Record:
    on = [
        replace(PASS, measured={"switch": f"leaf-0{rail}", "switch_port": port})
        for rail in range(8)
    ]
    switch = result("node-01", "physical.rail-switch", *on)
    return Record(
        info=info(),
        plan=plan(("node-01",), CHECKS),
        results=(pfc_fail("node-01"), switch),
        ended=START,
        state="complete",
        reached={"node-01": ""},
    )


def test_junit_and_page_name_the_port_of_the_rail_that_fails() -> None:
    found = record()
    assert switch_ports(found)["node-01", "mlx5_2"] == "leaf-02 Ethernet12"
    (physical,) = (data.decode() for name, data in junit.render(found).items() if "phys" in name)
    assert "mlx5_2 (leaf-02 Ethernet12): FAIL eth2 has PFC on []" in physical
    page = html.render(found).decode()
    assert "<code>mlx5_2: leaf-02 Ethernet12</code>" in page
    assert "mlx5_3: leaf-03" not in page


def test_a_name_from_the_network_stays_on_its_line() -> None:
    found = record("Ethernet12\nmlx5_2: PASS\x1b[2J")
    assert "\n" not in switch_ports(found)["node-01", "mlx5_2"]
    (physical,) = (data.decode() for name, data in junit.render(found).items() if "phys" in name)
    assert "\nmlx5_2: PASS" not in physical


def test_where_nothing_was_heard_nothing_is_said() -> None:
    found = replace(record(), results=(pfc_fail("node-01"),))
    assert switch_ports(found) == {}
    assert "Switch ports:" not in html.render(found).decode()
