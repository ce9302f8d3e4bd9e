from __future__ import annotations

import gc
import os
import re
import resource
import time
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import junit_xml
import junitparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from commcheck.model import TABLE, Evidence, Finding, Kind, Result, Status, Verdict
from commcheck.report import junit
from commcheck.report.cleaning import CAP
from commcheck.report.record import Record
from tests.report.runs import (
    CHECKS,
    OLD_FIRMWARE,
    PASS,
    PFC_OFF,
    START,
    healthy,
    incident,
    info,
    overridden,
    pfc_fail,
    plan,
    result,
    verdict,
)

HOSTILE = (
    "nul\x00 esc\x1b[31mred\x1b[0m cr\r\n \ud800 \ufffe ]]> [[ATTACHMENT|/etc/passwd]] "
    "[[PROPERTY|a=b]] \u202eevil <failure/> &amp; X_TOKEN=hush ##vso[x] \x9b "
)


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    """The schema of Jenkins' xUnit plugin, where the environment says that it lies here."""
    folder = os.environ.get("COMMCHECK_SCHEMAS")
    if not folder:
        pytest.skip("COMMCHECK_SCHEMAS does not name a folder with junit-10.xsd")
    return etree.XMLSchema(etree.parse(Path(folder) / "junit-10.xsd"))


def whole(*results: Result, hosts: tuple[str, ...] = ("node-0001",)) -> Record:
    return Record(
        info(), plan(hosts, ()), tuple(results), ended=START + timedelta(9), state="complete"
    )


RUNS = [
    incident(),
    incident("interrupted"),
    incident("incomplete"),
    incident(strict=True),
    healthy(),
    whole(result("node-0001", CHECKS[0], verdict(Status.ERROR, Kind.CHECK, HOSTILE))),
    whole(replace(result("node-0001", CHECKS[0], PASS), retried=1)),
]


@pytest.mark.parametrize("record", RUNS)
def test_every_file_is_valid(record: Record, schema: etree.XMLSchema) -> None:
    for data in junit.render(record).values():
        schema.assertValid(etree.fromstring(data))


def test_the_schema_refuses_what_the_package_writes_by_itself(schema: etree.XMLSchema) -> None:
    suite = junit_xml.TestSuite("x", [junit_xml.TestCase("x", "x", 0.1 + 0.2)])
    raw = junit_xml.to_xml_report_string([suite], encoding="utf-8").encode()
    assert not schema.validate(etree.fromstring(raw))


ATTRIBUTES = {
    "testsuites": set(),
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"message"},
    "system-out": set(),
    "flakyFailure": {"type", "message"},
}


@pytest.mark.parametrize("record", RUNS)
def test_nothing_that_strict_readers_refuse(record: Record) -> None:
    """What the xUnit plugin's schema allows, in our own words: for machines without it."""
    for data in junit.render(record).values():
        for element in etree.fromstring(data).iter():
            found = set(element.attrib)
            assert found == ATTRIBUTES[element.tag]
            if "time" in found:
                assert re.fullmatch(r"[0-9]+\.[0-9]{3}", element.get("time"))


@pytest.mark.parametrize("record", RUNS)
def test_counts_are_those_of_the_verdicts(record: Record) -> None:
    cases = [
        case
        for data in junit.render(record).values()
        for suite in junitparser.JUnitXml.fromstring(data)
        for case in suite
    ]
    assert len(cases) == len(record.sorted)
    names = [(case.classname, case.name) for case in cases]
    assert len(set(names)) == len(names)
    by_layer = [each for layer in record.layers.values() for each in layer]
    for case, each in zip(cases, by_layer, strict=True):
        outcome = type(case.result[0]).__name__ if case.result else "Passed"
        warned = each.status is Status.WARN and record.info.strict
        wanted = "Failure" if warned else {
            Status.PASS: "Passed",
            Status.WARN: "Passed",
            Status.FAIL: "Failure",
            Status.ERROR: "Error",
            Status.SKIP: "Skipped",
        }[each.status]  # fmt: skip
        assert outcome == wanted
        if case.result:
            assert case.result[0].message
            assert len(case.result[0].message) <= 300
            assert "\n" not in case.result[0].message


# --- as Jenkins reads it ------------------------------------------------------------------------


def as_jenkins(files: dict[str, bytes]) -> dict[str, dict[str, dict[str, tuple[str, str, str]]]]:
    """Package, class and case as the junit plugin finds them: (outcome, message, text).

    ``skipped`` wins, then ``error`` before ``failure``; the package is all before the class
    name's last dot; suites of one name merge; a case of the same name replaces the former.
    """
    tree: dict[str, dict[str, dict[str, tuple[str, str, str]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for data in files.values():
        for suite in etree.fromstring(data).iter("testsuite"):
            for case in suite.iter("testcase"):
                package, _, name = (case.get("classname") or suite.get("name")).rpartition(".")
                found = ("passed", "", case.findtext("system-out") or "")
                for tag in ("failure", "error", "skipped"):
                    element = case.find(tag)
                    if element is not None:
                        message = element.get("message") or element.text
                        found = (tag, message, element.text or "")
                assert case.get("name") not in tree[package][name]
                tree[package][name][case.get("name")] = found
    return tree


def test_the_tree_that_jenkins_shows() -> None:
    tree = as_jenkins(junit.render(incident()))
    assert sorted(tree) == ["commcheck.library", "commcheck.physical", "commcheck.runtime"]
    assert list(tree["commcheck.physical"]) == [
        "node-0001",
        "node-0002",
        "node-0003",
        "node-0010",
        "gpu_example_com",
        "node-0011",
        "node-0012",
    ]
    node = tree["commcheck.physical"]["node-0002"]
    assert list(node) == [check for check in CHECKS if check.startswith("physical.")]
    outcome, message, text = node["physical.pfc-enabled"]
    assert (outcome, message) == ("failure", "eth2 has PFC on [], want [3] (1 of 8)")
    assert text == (
        "eth2 has PFC on [], want [3] (1 of 8)\n"
        "host: node-0002   check: physical.pfc-enabled"
        "   threshold: roce_priority=3 (inventory/group_vars/gpu.yml:4)\n"
        "mlx5_2: FAIL eth2 has PFC on [], want [3]\n"
        "mlx5_[0-1,3-7]: pass\n"
        "remedy: mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0; pauses the priority instead of dropping;"
        " the switch port is set alike\n"
        "runbook: runbook.md#physical-pfc-enabled\n"
        "report: report.html#h=node-0002&c=physical.pfc-enabled\n"
        "$ mlnx_qos -i eth2   (rc 0, 0.398 s)\n"
        "Priority trust state: dscp\nPFC configuration:\n\tenabled     0   0\n"
        "$ sudo dcb pfc show dev eth2   (rc 127, 0.010 s)\n"
    )
    outcome, _, output = node["physical.nic-firmware"]
    assert outcome == "passed"
    assert output == "WARN 28.43 on rail 6\nrunbook: runbook.md#physical-nic-firmware\n"


def test_a_class_may_be_a_check_or_the_layer() -> None:
    by_check = as_jenkins(junit.render(incident(), by="check"))
    assert sorted(by_check) == ["commcheck.library", "commcheck.physical", "commcheck.runtime"]
    cases = by_check["commcheck.physical"]["pfc-enabled"]
    assert cases["node-0002"][0] == "failure"
    assert cases["gpu_example_com"][0] == "skipped"
    by_layer = as_jenkins(junit.render(incident(), by="layer"))
    assert sorted(by_layer["commcheck"]) == ["library", "physical", "runtime"]
    assert by_layer["commcheck"]["physical"]["physical.pfc-enabled node-0002"][0] == "failure"


def test_what_passed_at_the_second_try_is_flaky_and_passes() -> None:
    record = whole(replace(result("node-0001", CHECKS[0], PASS), retried=2))
    (data,) = (data for name, data in junit.render(record).items() if "physical" in name)
    (flaky,) = etree.fromstring(data).iter("flakyFailure")
    assert flaky.getparent().get("name") == CHECKS[0]
    assert flaky.get("message") == "proved nothing 2 times before it passed"
    failed = whole(replace(pfc_fail("node-0001"), retried=2))
    assert all(b"flaky" not in data for data in junit.render(failed).values())


def test_overrides_are_said(schema: etree.XMLSchema) -> None:
    said = "site check physical.reachable from site/reach.py overrides bundled/reach.py"
    record = overridden(whole(result("node-0001", CHECKS[0], verdict(Status.FAIL))))
    (data,) = junit.render(record).values()
    tree = etree.fromstring(data)
    schema.assertValid(tree)
    found = {each.get("name"): each.get("value") for each in tree.iter("property")}
    assert found["commcheck.overrides"] == said
    assert f"\n{said}\n" in str(tree.findtext(".//failure"))
    assert b"commcheck.overrides" not in b"".join(junit.render(healthy()).values())


def test_a_failure_links_into_the_page() -> None:
    assert junit.deep_link(pfc_fail("a&b c")) == "#h=a%26b+c&c=physical.pfc-enabled"
    group = result("@rack", "physical.pfc-enabled", PASS)
    assert junit.deep_link(group) == "#c=physical.pfc-enabled"


LOG = "library.log"


def of_a_log(host: str, *told: Finding) -> Record:
    return whole(Result(check=LOG, host=host, findings=told), hosts=(host,))


@pytest.mark.parametrize("host", ["@job", "node-0001"])
def test_every_fault_of_a_log_is_told_in_its_one_case(host: str) -> None:
    bad = [
        verdict(Status.WARN, reason="an old NIC driver"),
        verdict(Status.FAIL, reason="TCP sockets"),
        verdict(Status.ERROR, Kind.CHECK, "no device"),
        verdict(Status.SKIP, Kind.UNDECIDABLE, "no ring was printed"),
        PASS,
    ]
    place = (Evidence("logs/nccl: rank0.log:17", None, 0.0, "NET/Socket : Using eth0"),)
    told = [Finding(check=LOG, host=host, subject="", verdict=v, evidence=place) for v in bad]
    data = junit.render(of_a_log(host, *told))["TEST-commcheck-library.xml"]
    (failure,) = etree.fromstring(data).iter("failure")
    assert failure.get("message") == "TCP sockets (and 2 more)"
    lines = str(failure.text).splitlines()
    assert [line for line in lines if line.startswith(("also", "remedy"))] == [
        "remedy: mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0; pauses the priority instead of dropping; "
        "the switch port is set alike",
        "also WARN an old NIC driver",
        "remedy (vendor): update the firmware",
        "also ERROR no device",
    ]
    assert lines[-2:] == ["logs/nccl: rank0.log:17", "NET/Socket : Using eth0"]


def test_a_case_that_only_warns_tells_each_warning() -> None:
    warnings = [verdict(Status.WARN, reason=words) for words in ("slow", "old")]
    told = [Finding(check=LOG, host="@job", subject="", verdict=each) for each in warnings]
    data = junit.render(of_a_log("@job", *told))["TEST-commcheck-library.xml"]
    assert etree.fromstring(data).findtext(".//system-out").startswith("WARN slow; old\n")


def test_rails_of_two_causes_have_the_remedies_of_both() -> None:
    other = replace(
        verdict(Status.FAIL, reason="old"), cause=OLD_FIRMWARE, remedies=OLD_FIRMWARE.remedies
    )
    bad = verdict(Status.FAIL, reason="PFC off")
    record = whole(result("node-0001", "physical.pfc-enabled", bad, other, other, PASS))
    text = etree.fromstring(junit.render(record)["TEST-commcheck-physical.xml"]).findtext(
        ".//failure"
    )
    assert text.startswith("PFC off (1 of 4)\n")
    assert text.count("also FAIL old\nremedy (vendor): update the firmware\n") == 1


def test_one_host_down_is_one_red_line() -> None:
    tree = as_jenkins(junit.render(incident()))
    cases = [case for layer in tree.values() for case in layer["node-0010"].values()]
    assert [outcome for outcome, *_ in cases] == ["error"] + ["skipped"] * 5
    assert cases[0][1] == "ERROR could not judge: no SSH banner within 15 s"
    assert all(message == "gated: the host could not be judged" for _, message, _ in cases[1:])


def test_skips_say_why() -> None:
    tree = as_jenkins(junit.render(incident()))
    found = {
        check: message
        for layer in tree.values()
        for check, (_, message, _) in layer["gpu_example_com"].items()
    }
    assert found == {
        "physical.reachable": "",
        "physical.nic-link-up": "blocked: physical.reachable",
        "physical.pfc-enabled": "not applicable: link layer is InfiniBand",
        "physical.nic-firmware": "waived until 2026-12-15: RMA (was: fail, 28.43)",
        "library.env": "busy: a job runs here",
        "runtime.xid": "undecidable: the log has no INIT lines; set NCCL_DEBUG=INFO",
    }


def test_a_half_run_does_not_look_green() -> None:
    tree = as_jenkins(junit.render(incident("interrupted")))
    outcome, message, _ = tree["commcheck.runtime"]["node-0011"]["runtime.xid"]
    assert (outcome, message) == (
        "error",
        "ERROR not run: the run was stopped before this was judged",
    )


def test_strict_makes_a_warning_a_failure_of_its_own_type() -> None:
    data = junit.render(incident(), strict=True)["TEST-commcheck-physical.xml"]
    types = {each.get("type") for each in etree.fromstring(data).iter("failure")}
    assert types == {"pfc-not-on-roce-priority", "warn"}


# --- names --------------------------------------------------------------------------------------


def names(record: Record) -> set[tuple[str | None, ...]]:
    return {
        (suite.get("name"), case.get("classname"), case.get("name"))
        for data in junit.render(record).values()
        for suite in etree.fromstring(data).iter("testsuite")
        for case in suite.iter("testcase")
    }


def test_names_hold_nothing_measured() -> None:
    """Other numbers, other outcomes, other run: Jenkins sees the same tests."""
    other = replace(
        incident(),
        info=replace(info(), run_id="other", limit="x", version="9"),
        results=tuple(
            result(each.host, each.check, verdict(Status.FAIL, reason="17.3 GB/s"), seconds=17.3)
            for each in incident().results
        ),
    )
    assert names(other) == names(incident()) == names(incident("interrupted"))


def test_hosts_that_would_share_a_class_are_kept_apart() -> None:
    labels = junit.host_labels(["a.b", "a_b", "c.d", "@rack-a"])
    assert labels["a_b"] == "a_b"
    assert re.fullmatch(r"a_b~[0-9a-f]{6}", labels["a.b"])
    assert labels["c.d"] == "c_d"
    assert labels["@rack-a"] == "@rack-a"
    assert junit.host_labels(["a_b", "a.b"]) == {name: labels[name] for name in ("a_b", "a.b")}


# --- hostile text -------------------------------------------------------------------------------


def hostile_result(text: str, status: Status, kind: Kind) -> Result:
    found = Finding(
        check=CHECKS[0],
        host="node-0001",
        subject=text,
        verdict=Verdict(
            status=status,
            kind=kind,
            reason=text if text.strip() else "-" + text,
            cause=PFC_OFF,
            error="ParseError",
            remedies=PFC_OFF.remedies,
        ),
        evidence=(Evidence("once: " + text, 0, 0.1, text),),
    )
    return Result(check=CHECKS[0], host="node-0001", findings=(found, found))


@given(
    st.text(st.one_of(st.sampled_from(HOSTILE), st.characters()), max_size=60)
    | st.sampled_from([HOSTILE, HOSTILE * 9]),
    st.sampled_from([*TABLE]),
)
@settings(max_examples=80)
def test_hostile_text_is_harmless(text: str, key: tuple[Status, Kind]) -> None:
    record = whole(hostile_result(text, *key))
    ((_, data),) = junit.render(record).items()
    root = etree.fromstring(data)
    (suite,) = junitparser.JUnitXml.fromstring(data)
    assert suite.tests == 1 == len(list(root.iter("testcase")))
    assert b"\x1b" not in data
    for marker in (b"[[ATTACHMENT|", b"[[PROPERTY|", b"hush"):
        assert marker not in data


def test_a_megabyte_on_one_line_is_cut() -> None:
    record = whole(hostile_result(HOSTILE * 10_000, Status.FAIL, Kind.NONE))
    (data,) = junit.render(record).values()
    text = etree.fromstring(data).findtext(".//failure")
    assert len(text) <= CAP + 1
    assert "more characters, all of it in frames of node-0001 in the run folder]" in text


def test_a_warning_fits_into_what_jenkins_keeps() -> None:
    record = whole(result("node-0001", CHECKS[0], verdict(Status.WARN, reason="w" * 5000)))
    (data,) = junit.render(record).values()
    assert len(etree.fromstring(data).findtext(".//system-out")) < 1000


# --- files --------------------------------------------------------------------------------------


def test_the_same_record_gives_the_same_bytes() -> None:
    assert junit.render(incident()) == junit.render(incident())


def test_a_layer_is_split_over_files_that_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(junit, "MAX_CASES", 10)
    files = junit.render(incident())
    assert list(files) == [
        "TEST-commcheck-physical.xml",
        "TEST-commcheck-physical-2.xml",
        "TEST-commcheck-physical-3.xml",
        "TEST-commcheck-library.xml",
        "TEST-commcheck-runtime.xml",
    ]
    suites = [suite for data in files.values() for suite in etree.fromstring(data)]
    assert [int(suite.get("tests")) for suite in suites] == [10, 10, 8, 7, 7]
    assert {suite.get("name") for suite in suites[:3]} == {"commcheck.physical"}
    assert [suite.get("time") for suite in suites[:3]] == ["252.300", "0.000", "0.000"]
    assert sum(len(layer) for layer in as_jenkins(files).values()) == 21


def test_suite_attributes() -> None:
    root = etree.fromstring(junit.render(incident())["TEST-commcheck-physical.xml"])
    (suite,) = root
    assert suite.get("timestamp") == "2026-11-29T15:04:05Z"
    found = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert found == {
        "commcheck.version": "0.1.0",
        "commcheck.playbook": "incident",
        "commcheck.run": "20261129T150405Z-7f3a",
        "commcheck.inventory": "inventory/prod.yaml sha256:0123abcd",
        "commcheck.state": "complete",
        "commcheck.exit_code": "1",
    }


@pytest.mark.slow
def test_a_thousand_hosts_and_sixty_checks() -> None:
    hosts = tuple(f"node-{number:04d}" for number in range(1000))
    checks = tuple(f"physical.check-{number}" for number in range(60))
    results = tuple(
        replace(pfc_fail(host), check=check) if check.endswith("-7") else result(host, check, PASS)
        for host in hosts
        for check in checks
    )
    record = Record(info(), plan(hosts, checks), results, state="complete")
    assert record.exit_code == 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gc.collect()
    gc.freeze()  # what thousands of tests left behind in this process is not walked again
    started = time.thread_time()
    files = junit.render(record)
    took_s = time.thread_time() - started
    gc.unfreeze()
    assert took_s < 10  # about 2 s where nothing else runs
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 150
    assert len(files) == 3
    assert max(map(len, files.values())) < 30e6
