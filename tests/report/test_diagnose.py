from __future__ import annotations

from dataclasses import replace

import pytest

from commcheck.diagnose import diagnose
from commcheck.model import Kind, Layer, Result, Status, Verdict, Words
from commcheck.report import events, replay
from commcheck.report.record import Record
from tests.report.runs import (
    CHECKS,
    OLD_FIRMWARE,
    PASS,
    PFC_OFF,
    healthy,
    incident,
    info,
    pfc_fail,
    plan,
    result,
    verdict,
)

HOSTS = tuple(f"node-{number:02d}" for number in range(1, 13))


def run(
    *special: Result, checks: tuple[str, ...] = CHECKS, hosts: tuple[str, ...] = HOSTS
) -> Record:
    """A run in which all passes but what is given."""
    cases = {(each.host, each.check): each for each in special}
    results = [
        cases.get((host, check)) or result(host, check, PASS) for host in hosts for check in checks
    ]
    return Record(info(), plan(hosts, checks), tuple(results), state="complete")


def test_the_lowest_failing_layer_is_the_headline() -> None:
    record = run(
        pfc_fail("node-03"),
        *[result(host, "runtime.xid", verdict(Status.FAIL)) for host in HOSTS[:5]],
    )
    found = diagnose(record)
    assert (found.status, found.layer) == (Status.FAIL, Layer.PHYSICAL)
    assert found.headline == (
        "Physical layer is where it breaks: PFC off on the RoCE priority, 1 of 12 hosts"
    )
    assert found.more == ("4 other hosts break first at the runtime layer.",)
    assert found.hosts == ("node-03",)
    assert [rung.word for rung in found.ladder] == [
        "breaks here",
        "pass",
        "fails too",
        "not climbed",
    ]
    assert found.fix is not None
    assert found.fix.text == "mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0"


def test_several_causes_name_the_one_of_most_hosts() -> None:
    other = Verdict(
        status=Status.FAIL,
        reason="old",
        cause=OLD_FIRMWARE,
        remedies=OLD_FIRMWARE.remedies,
    )
    record = run(
        pfc_fail("node-03"),
        result("node-04", "physical.nic-firmware", other),
        result("node-05", "physical.nic-firmware", other),
    )
    found = diagnose(record)
    assert found.headline == (
        "Physical layer is where it breaks: NIC firmware differs from its peers, 2 of 12 hosts,"
        " and 1 more cause"
    )
    assert found.hosts == ("node-03", "node-04", "node-05")
    assert found.fix is not None
    assert found.fix.text == "update the firmware"


def test_of_one_check_what_it_blames_first_comes_first() -> None:
    """Whatever the causes are called: a late rank, then the host that launches slowly there."""
    other = replace(verdict(Status.FAIL), cause=OLD_FIRMWARE, remedies=OLD_FIRMWARE.remedies)
    both = result("node-03", "physical.pfc-enabled", verdict(Status.FAIL), other)
    found = diagnose(run(both))
    assert [group.title.en for group in found.groups] == [PFC_OFF.title.en, OLD_FIRMWARE.title.en]
    assert found.headline.startswith(f"Physical layer is where it breaks: {PFC_OFF.title.en}")


UNKNOWN = verdict(Status.ERROR, Kind.CHECK, "sudo refused")


@pytest.mark.parametrize(
    ("record", "status", "headline"),
    [
        (healthy(), Status.PASS, "All four layers pass on 12 hosts"),
        (
            run(),
            Status.PASS,
            "Physical, library, runtime layers pass on 12 hosts; application was not climbed",
        ),
        (
            run(checks=CHECKS[:2]),
            Status.PASS,
            "Physical layer passes on 12 hosts;"
            " library, runtime, application were not climbed",
        ),
        (
            run(result("node-02", CHECKS[3], verdict(Status.WARN)), checks=CHECKS[:4]),
            Status.WARN,
            "Physical layer passes on 12 hosts;"
            " library, runtime, application were not climbed;"
            " 1 warning: NIC firmware differs from its peers",
        ),
        (
            run(result("node-02", CHECKS[1], UNKNOWN)),
            Status.ERROR,
            "No failure found, but 1 of 12 hosts could not be judged",
        ),
        (
            run(result("node-02", CHECKS[4], verdict(Status.SKIP, Kind.BUSY))),
            Status.SKIP,
            "No failure found, but 1 of 12 hosts could not be judged",
        ),
        (
            run(*[result(h, CHECKS[2], verdict(Status.SKIP, Kind.NOT_PERMITTED)) for h in HOSTS]),
            Status.PASS,
            "Physical, library, runtime layers pass on 12 hosts; application was not climbed;"
            " 12 cases not measured (not permitted)",
        ),
        (
            run(
                *[result(h, c, verdict(Status.SKIP, Kind.NOT_APPLICABLE))
                  for h in HOSTS for c in CHECKS[4:]]
            ),
            Status.PASS,
            "Physical layer passes on 12 hosts; library, runtime do not apply;"
            " application was not climbed",
        ),
        (
            run(result("node-02", CHECKS[1], verdict(Status.SKIP, Kind.NOT_APPLICABLE)),
                checks=CHECKS[1:2], hosts=("node-02",)),
            Status.SKIP,
            "Nothing was judged on 1 host: physical does not apply;"
            " library, runtime, application were not climbed",
        ),
    ],
)  # fmt: skip
def test_headlines(record: Record, status: Status, headline: str) -> None:
    found = diagnose(record)
    assert (found.status, found.headline) == (status, headline)
    assert found.layer is None


def test_what_is_unknown_beside_a_failure_is_said() -> None:
    record = run(pfc_fail("node-03"), result("node-09", CHECKS[0], UNKNOWN))
    assert diagnose(record).more == ("1 of 12 hosts could not be judged in full.",)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("interrupted", "Incomplete: the run was interrupted, 3 of 42 planned cases were not"),
        ("incomplete", "Incomplete: the run did not end by itself, 3 of 42 planned cases were not"),
    ],
)
def test_a_half_run_says_so(state: str, sentence: str) -> None:
    record = incident("interrupted" if state == "interrupted" else "incomplete")
    assert any(each.startswith(sentence) for each in diagnose(record).more)


def test_strict_lets_a_warning_be_where_it_breaks() -> None:
    record = run(result("node-02", CHECKS[3], verdict(Status.WARN)))
    assert diagnose(record).layer is None
    strict = diagnose(replace(record, info=info(strict=True)))
    assert (strict.status, strict.layer) == (Status.FAIL, Layer.PHYSICAL)


def test_what_every_host_has_may_be_meant_so() -> None:
    design = Words("off on every host: lossy by design?", "按有损设计？")
    cause = replace(PFC_OFF, everywhere=design)
    off = replace(verdict(Status.FAIL), cause=cause)
    all_of_them = run(*(result(host, CHECKS[2], off) for host in HOSTS))
    told = replay.record_from_events(
        events.encode(each).decode() for each in events.events_of(all_of_them)
    )
    for record in (all_of_them, told):
        assert diagnose(record).groups[0].speaks_against == (design,)
    one = run(result(HOSTS[0], CHECKS[2], off))
    assert diagnose(one).groups[0].speaks_against == ()


def test_a_group_check_counts_the_hosts_it_names() -> None:
    slow = replace(verdict(Status.FAIL), hosts=("node-07", "node-02"))
    record = run()
    record = replace(record, results=(*record.results, result("@rack-a", CHECKS[2], slow)))
    assert diagnose(record).hosts == ("node-02", "node-07")


def test_the_ladder_counts_hosts_and_cases() -> None:
    physical, library, *_ = diagnose(incident()).ladder
    assert physical.hosts == {"pass": 3, "fail": 2, "error": 2}
    assert physical.cases["fail"] == 2
    assert (physical.judged, library.judged) == (5, 3)
    assert library.hosts == {"pass": 3, "gated": 3, "error": 1}
