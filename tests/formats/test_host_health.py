"""The host around the GPUs: clock, shared memory, governors, services, the kernel's log."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from commcheck.command import Output
from commcheck.errors import CommandFailed, ParseError, Unjudgeable
from commcheck.formats.clock import CHRONY, NTPQ, TIMEDATECTL, Clock
from commcheck.formats.cpu_governor import SYSFS_GOVERNOR
from commcheck.formats.fabric_manager import FABRIC_MANAGER_VERSION, NVSWITCHES
from commcheck.formats.kernel_xid import JOURNAL_XIDS, SYSLOG_XIDS, KernelXids, XidEvent
from commcheck.formats.numa_nodes import NUMA_NODES
from commcheck.formats.shm import DF_SHM, Shm
from commcheck.formats.systemctl import FABRIC_MANAGER_UNIT

RECORDED = Path(__file__).parents[1] / "recorded" / "host-health"
UPTIME = Output((RECORDED / "uptime.txt").read_text())


def out(name: str, rc: int = 0) -> Output:
    return Output((RECORDED / f"{name}.txt").read_text(), rc=rc)


@pytest.mark.parametrize(
    ("reader", "name", "clock"),
    [
        (CHRONY, "chronyc-good", Clock("chrony", True, -0.000012345)),
        (CHRONY, "chronyc-off", Clock("chrony", True, 0.248110332)),
        (CHRONY, "chronyc-free", Clock("chrony", False)),
        (CHRONY, "chronyc-alone", Clock("chrony", True, None, True)),
        (NTPQ, "ntpq-alone", Clock("ntpd", True, None, True)),
        (NTPQ, "ntpq-good", Clock("ntpd", True, 0.000118934)),
        (NTPQ, "ntpq-alarm", Clock("ntpd", False)),
        (TIMEDATECTL, "timedatectl-good", Clock("systemd", True)),
        (TIMEDATECTL, "timedatectl-free", Clock("systemd", False)),
    ],
)
def test_clock(reader: object, name: str, clock: Clock) -> None:
    assert reader.parse(out(name)) == clock  # type: ignore[attr-defined] # one of three readers


def test_no_time_daemon() -> None:
    with pytest.raises(CommandFailed, match="506 Cannot talk"):
        CHRONY.parse(out("chronyc-no-daemon", rc=1))


@pytest.mark.parametrize(
    ("name", "shm"),
    [
        ("df-shm-good", Shm(1056628736, 1056612000, "/dev/shm")),
        ("df-shm-container", Shm(65536, 65536, "/dev/shm")),
        ("df-shm-on-root", Shm(460000000, 458000000, "/")),
    ],
)
def test_shared_memory(name: str, shm: Shm) -> None:
    assert DF_SHM.parse(out(name)) == shm


def test_governors() -> None:
    assert SYSFS_GOVERNOR.parse(out("governor-mixed")) == {"performance", "powersave"}
    assert SYSFS_GOVERNOR.parse(Output("", rc=2)) == frozenset()
    with pytest.raises(ParseError):
        SYSFS_GOVERNOR.parse(Output("performance\nperf\n"))


def test_numa_nodes() -> None:
    assert NUMA_NODES.parse(Output("0-2,5\n")) == {0, 1, 2, 5}
    with pytest.raises(ParseError):
        NUMA_NODES.parse(Output("3-1\n"))


def test_fabric_manager() -> None:
    assert FABRIC_MANAGER_UNIT.parse(out("fabric-manager-active")) == "active"
    assert FABRIC_MANAGER_UNIT.parse(out("fabric-manager-failed", rc=3)) == "failed"
    assert FABRIC_MANAGER_VERSION.parse(out("fabric-manager-version")) == "550.54.15"
    assert FABRIC_MANAGER_VERSION.parse(out("fabric-manager-version-610")) == "610.57.04"
    with pytest.raises(ParseError, match="whole line"):
        FABRIC_MANAGER_VERSION.parse(Output("Fabric Manager version is : 610.57.0"))
    assert len(NVSWITCHES.parse(out("nvswitches"))) == 4
    assert NVSWITCHES.parse(Output("", "find: '/proc/x': No such file or directory\n", 1)) == ()
    no_systemd = "System has not been booted with systemd as init system\n"
    with pytest.raises(CommandFailed, match="not been booted"):
        FABRIC_MANAGER_UNIT.parse(Output("", no_systemd, 1))


def test_a_lost_gpu_in_the_journal() -> None:
    log = JOURNAL_XIDS.parse(out("journal-xid-79"), UPTIME)
    assert log.kernel == "5.15.0-105-generic"
    (event,) = log.events
    assert (event.code, event.pci, event.of_switch) == (79, "0000:c3:00", False)
    assert event.age_s == pytest.approx(3599.999)
    assert event.text.endswith("GPU has fallen off the bus.")


def test_reports_of_links_and_of_a_part_of_a_gpu() -> None:
    log = JOURNAL_XIDS.parse(out("journal-nvlink"), UPTIME)
    found = [(event.code, event.pci, event.of_switch) for event in log.events]
    assert found == [
        (12028, "0000:05:00.0", True),
        (22013, "0000:06:00.0", True),
        (149, "0018:01:00", False),
        (94, "0000:1b:00", False),
    ]


def test_the_files_of_syslog_begin_with_the_last_start() -> None:
    now = out("syslog-kern").stdout
    earlier = now.replace("): 48,", "): 79,").replace("): 63,", "): 74,")
    for text in (now, earlier + now):
        log = SYSLOG_XIDS.parse(Output(text))
        assert [event.code for event in log.events] == [63, 48]
        assert {event.age_s for event in log.events} == {None}
        assert log.kernel == "5.15.0-105-generic"


def test_a_log_that_was_cut_on_the_host_keeps_the_newest() -> None:
    whole = out("journal-nvlink").stdout
    log = JOURNAL_XIDS.parse(Output(whole[:400], truncated=True), UPTIME)
    assert [event.code for event in log.events] == [12028, 22013]
    assert log.kernel is None


@pytest.mark.parametrize(
    ("stderr", "rc"),
    [
        ("Compiled without pattern matching support\n", 1),
        ("No journal files were found.\n", 0),
        ("", 1),
    ],
)
def test_a_journal_that_says_nothing_is_no_clean_log(stderr: str, rc: int) -> None:
    with pytest.raises(CommandFailed, match="no kernel log of this boot"):
        JOURNAL_XIDS.parse(Output("", stderr, rc), UPTIME)
    with pytest.raises(CommandFailed, match="no file of syslog"):
        SYSLOG_XIDS.parse(Output("", stderr, rc))


@pytest.mark.parametrize("name", ["journal-nvlink", "journal-programs", "journal-recovered"])
def test_damage_never_makes_another_report(name: str) -> None:
    chance = random.Random(name)
    whole = out(name).stdout
    facts: KernelXids = JOURNAL_XIDS.parse(Output(whole), UPTIME)
    known = {(event.code, event.pci, event.of_switch) for event in facts.events}
    for _ in range(60):
        at = chance.randrange(len(whole))
        for broken in (whole[:at], whole[:at] + "\ufffd" + whole[at + 1 :], whole[at:]):
            try:
                log = JOURNAL_XIDS.parse(Output(broken), UPTIME)
            except Unjudgeable as error:
                assert error.reason
            else:
                assert {(e.code, e.pci, e.of_switch) for e in log.events} <= known
                assert log.kernel is None or "\ufffd" in log.kernel or log.kernel == facts.kernel


def test_events_are_told_apart_by_time() -> None:
    log = JOURNAL_XIDS.parse(out("journal-programs"), UPTIME)
    assert [event.code for event in log.events] == [45, 45, 31]
    assert all(isinstance(event, XidEvent) for event in log.events)
