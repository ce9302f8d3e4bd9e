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
        " and 1 more cause: PFC off on the RoCE priority"
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


def test_of_causes_as_large_the_one_that_others_stand_on_is_first() -> None:
    hot = result("node-01", "physical.nic-heat", verdict(Status.FAIL))
    dead = result("node-02", "physical.nic-link-up", verdict(Status.FAIL))
    record = run(hot, dead, checks=(*CHECKS, "physical.nic-heat"))
    assert diagnose(record).groups[0].check == "physical.nic-heat"
    checks = tuple(
        replace(each, needs=("physical.nic-link-up",))
        if each.id == "physical.pfc-enabled"
        else each
        for each in record.plan.checks
    )
    stands = replace(record, plan=replace(record.plan, checks=checks))
    assert [each.check for each in diagnose(stands).groups] == [
        "physical.nic-link-up",
        "physical.nic-heat",
    ]
    lines = (events.encode(event).decode() for event in events.events_of(stands))
    assert diagnose(replay.record_from_events(lines)).groups == diagnose(stands).groups
    many = [result(host, "physical.nic-heat", verdict(Status.FAIL)) for host in HOSTS[:2]]
    more = replace(stands, results=(*stands.results, *many))
    assert diagnose(more).groups[0].check == "physical.nic-heat"  # large before small


def test_the_headline_names_two_more_causes_and_counts_the_others() -> None:
    bad = [
        result(f"node-0{number}", f"physical.check-{number}", Verdict(
            status=Status.FAIL, reason="x", cause=replace(PFC_OFF, slug=f"c{number}",
            title=Words(f"Cause {number}", f"原因{number}")), remedies=PFC_OFF.remedies))
        for number in range(1, 5)
    ]  # fmt: skip
    says = diagnose(run(*bad, checks=tuple(each.check for each in bad))).says
    assert says.en.endswith("Cause 1, 1 of 12 hosts, and 3 more causes: Cause 2, Cause 3, ...")
    assert says.zh.endswith("，另有 3 个原因：原因2、原因3……")


UNKNOWN = verdict(Status.ERROR, Kind.CHECK, "sudo refused")
GONE = verdict(Status.ERROR, Kind.HOST, "no answer")


def gone(host: str) -> list[Result]:
    """A host of which nothing is known."""
    gated = verdict(Status.SKIP, Kind.GATED)
    return [result(host, CHECKS[0], GONE), *[result(host, each, gated) for each in CHECKS[1:]]]


@pytest.mark.parametrize(
    ("results", "said", "said_zh"),
    [
        (gone("node-02"), "1 of 12 hosts could not be judged", "12 台主机中的 1 台未能判定"),
        (
            # A tool that is missing on each of them hides nothing else.
            [result(host, CHECKS[1], UNKNOWN) for host in HOSTS],
            "12 of 12 hosts could not be judged in full",
            "12 台主机中的 12 台未能完整判定",
        ),
        (
            [*gone("node-02"), *gone("node-03"), result("node-04", CHECKS[1], UNKNOWN)],
            "3 of 12 hosts could not be judged in full, 2 of them not at all",
            "12 台主机中的 3 台未能完整判定，其中 2 台完全未判定",
        ),
    ],
)
def test_how_much_is_unknown(results: list[Result], said: str, said_zh: str) -> None:
    says = diagnose(run(*results)).says
    assert says == Words(f"No failure found, but {said}", f"未发现故障，但 {said_zh}")
    beside = diagnose(run(*results, result("node-07", CHECKS[5], verdict(Status.FAIL))))
    assert beside.says_more[-1] == Words(f"{said}.", f"{said_zh}。")


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
            "No failure found, but 1 of 12 hosts could not be judged in full",
        ),
        (
            run(result("node-02", CHECKS[4], verdict(Status.SKIP, Kind.BUSY))),
            Status.SKIP,
            "No failure found, but 1 of 12 hosts could not be judged in full",
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
        (
            run(result("node-02", CHECKS[2], verdict(Status.SKIP, Kind.WAIVED)), checks=CHECKS[:4]),
            Status.PASS,
            "Physical layer passes on 12 hosts;"
            " library, runtime, application were not climbed; 1 case waived",
        ),
        (
            run(result("node-02", CHECKS[2], verdict(Status.SKIP, Kind.WAIVED)),
                result("node-02", CHECKS[3], verdict(Status.SKIP, Kind.BLOCKED)),
                checks=CHECKS[:4]),
            Status.SKIP,
            "No layer was judged in full on 12 hosts: physical was partly judged;"
            " library, runtime, application were not climbed; 1 case waived",
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
