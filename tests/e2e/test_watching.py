"""What needs more than one look or more than one host, on real sshd hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Commcheck
from tests.sshd import Server, SshdFleet

pytestmark = pytest.mark.sshd

Fleets = Callable[..., SshdFleet]


def run(fleet: SshdFleet, check: str, *words: object) -> list[object]:
    hosts = ["run", "-i", fleet.inventory, "--known-hosts", fleet.known_hosts]
    return [*hosts, "-t", f"physical.{check}", "--format", "json", *words]


def counted(server: Server, out_of_sequence: int) -> None:
    for hca in ("mlx5_0", "mlx5_1"):
        port = server.sys_class / "infiniband" / hca / "ports" / "1" / "hw_counters"
        port.mkdir(exist_ok=True)
        (port / "out_of_sequence").write_text(f"{out_of_sequence}\n")
        (port / "lifespan").write_text("10\n")


@pytest.mark.slow
def test_what_an_earlier_run_read_is_a_window_of_its_own(
    commcheck: Commcheck, fleet_of: Fleets
) -> None:
    fleet = fleet_of(1)
    counted(fleet.servers[0], 40)
    words = run(fleet, "roce-retransmit")
    first = commcheck(*words)
    # The old losses may be of yesterday or of a minute ago, and the visit takes a moment.
    assert {what for _, _, what in first.verdicts()} == {"skip/undecidable"}
    counted(fleet.servers[0], 47)
    again = commcheck(*words)
    (reason, *_) = (v["reason"] for v in again.document["verdicts"] if v["status"] == "fail")
    assert "out_of_sequence +7" in reason
    assert "since an earlier run" in reason
    frames = Path(again.folder / "frames" / f"{fleet.names[0]}.ndjson").read_text()
    assert '"key":"earlier: grep ' in frames


@pytest.mark.slow
def test_the_window_is_waited_on_the_host(commcheck: Commcheck, fleet_of: Fleets) -> None:
    fleet = fleet_of(1, variables={"commcheck_thresholds": {"window_s": 2, "enough_s": 2}})
    counted(fleet.servers[0], 40)
    ran = commcheck(*run(fleet, "roce-retransmit"))
    assert ran.verdicts() == []
    assert "before that: out_of_sequence 40" in ran.document["verdicts"][-1]["reason"]


@pytest.mark.slow
def test_the_rail_that_is_unlike_its_peers_is_named(commcheck: Commcheck, fleet_of: Fleets) -> None:
    fleet = fleet_of(4)
    odd = fleet.hosts_by_name["gpu0-03"]
    (odd.sys_class / "net" / "ens2np0" / "mtu").write_text("9000\n")
    words = run(fleet, "nic-consistency")
    assert commcheck(*words).verdicts() == [
        ("gpu0-03/mlx5_1", "physical.nic-consistency", "warn"),
    ]
    # What is left out is no peer.
    alone = commcheck(*words, "-l", "gpu0-03")
    assert {what for _, _, what in alone.verdicts()} == {"skip/not-applicable"}
    # Of two that differ nobody can say which one is odd.
    two = commcheck(*words, "-l", "gpu0-02:gpu0-03")
    assert [what for subject, _, what in two.verdicts() if subject.startswith("@")] == ["warn"]
    told = {what for subject, _, what in two.verdicts() if not subject.startswith("@")}
    assert told == {"skip/not-applicable", "skip/undecidable"}
