"""JUnit XML for Jenkins and other readers: one file a layer, names stable for ever.

Jenkins keys its history on suite, class and case name, so none of them holds anything measured.
Every file is valid under the schema of the xUnit plugin, which drops files that are not.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from hashlib import sha256
from typing import Any, Final, Literal
from urllib.parse import urlencode

import junit_xml

from commcheck.diagnose import slug_of
from commcheck.model import Evidence, Finding, Kind, Layer, Result, Status, Verdict, row
from commcheck.report.cleaning import CAP, clean, cut, one_line
from commcheck.report.ranges import fold_hosts
from commcheck.report.record import INTERRUPTED, Record
from commcheck.report.switches import Ports, switch_ports
from commcheck.report.words import RUNBOOK, overrides

MAX_CASES: Final = 20_000
"""Cases a file: GitLab refuses files of more than 250,000 objects or 30 MB."""

By = Literal["host", "check", "layer"]
"""What a class is: one of the hosts, one of the checks, or the layer as a whole.

Choose once for a job: it is part of every case's identity, by which Jenkins keeps its history.
"""

REPORT: Final = "report.html"
"""The page that a failure's text leads to, beside the folder of these files."""

_QUIET: Final = ("pass", "skipped")
"""Elements of a case that nobody has to look at."""

_WARNING_LIMIT: Final = 900
"""Jenkins keeps 1,000 characters of a passing case's output."""

_SKIP_WORDS: Final = {
    Kind.NOT_APPLICABLE: "not applicable",
    Kind.BLOCKED: "blocked",
    Kind.GATED: "gated",
    Kind.WAIVED: "waived",
    Kind.NOT_PERMITTED: "not permitted",
    Kind.BUSY: "busy",
    Kind.UNDECIDABLE: "undecidable",
}


def render(
    record: Record,
    *,
    runbook_url: str = RUNBOOK,
    strict: bool | None = None,
    by: By = "host",
) -> dict[str, bytes]:
    """File names and contents; a layer without a case has no file. The same record, same bytes.

    ``strict`` makes warnings failures; by default as the run was started. Raises ``ValueError``
    if the XML would not hold what the verdicts say.
    """
    strict = record.info.strict if strict is None else strict
    labels = host_labels([*record.plan.hosts, *(result.host for result in record.sorted)])
    ports = switch_ports(record)
    sites = {check: words.en for check, words in overrides(record.plan.checks).items()}
    files: dict[str, bytes] = {}
    for layer, results in record.layers.items():
        for number, start in enumerate(range(0, len(results), MAX_CASES), start=1):
            chunk = results[start : start + MAX_CASES]
            suite = _Suite(
                f"commcheck.{layer}",
                [
                    _case(result, labels[result.host], runbook_url, strict, by, ports, sites)
                    for result in chunk
                ],
                # A split layer is merged by Jenkins, which adds the times up.
                seconds=record.seconds if number == 1 else 0.0,
                timestamp=record.info.started.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                properties=_properties(record, sites.values()),
            )
            element = suite.build_xml_doc()
            _verify(element, chunk, strict)
            suffix = "" if number == 1 else f"-{number}"
            files[f"TEST-commcheck-{layer}{suffix}.xml"] = _serialise(element)
    return files


def host_labels(hosts: Iterable[str]) -> dict[str, str]:
    """A class name for every host. Jenkins takes all before the last dot for the package.

    Hosts that would share a label (``a.b`` and ``a_b``) get a digest of their name, which does
    not depend on who else is in the run's order.
    """
    plain = {host: one_line(host, 200).replace(".", "_") or "_" for host in dict.fromkeys(hosts)}
    uses = Counter(plain.values())
    return {
        host: label if uses[label] == 1 or label == host else f"{label}~{_digest(host)}"
        for host, label in plain.items()
    }


def anchor(check: str) -> str:
    """The section of the runbook on a check."""
    return check.replace(".", "-")


def deep_link(result: Result) -> str:
    """Where the page shows this case: ``#h=node-07&c=physical.nic-mtu``."""
    asked = {} if result.host.startswith("@") else {"h": result.host}
    plain = {**asked, "c": result.check}
    return "#" + urlencode({name: text.encode("utf-8", "replace") for name, text in plain.items()})


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:6]


def _properties(record: Record, sites: Collection[str]) -> Mapping[str, str]:
    info = record.info
    return {
        "commcheck.version": one_line(info.version),
        "commcheck.playbook": one_line(info.playbook),
        "commcheck.run": one_line(info.run_id),
        "commcheck.inventory": one_line(f"{', '.join(info.inventory)} {info.inventory_digest}"),
        "commcheck.state": record.state,
        "commcheck.exit_code": str(record.exit_code),
        **({"commcheck.overrides": one_line("; ".join(sites), 2000)} if sites else {}),
    }


# --- cases --------------------------------------------------------------------------------------


def _outcome(result: Result, strict: bool) -> str:
    outcome = row(result.worst.verdict).junit
    return "failure" if outcome == "warn" and strict else outcome


def _names(result: Result, label: str, by: By) -> tuple[str, str]:
    """Class and name. All before the class's last dot is Jenkins' package: always the layer."""
    layer = Layer.of(result.check)
    check = one_line(result.check)
    match by:
        case "host":
            return f"commcheck.{layer}.{label}", check
        case "check":
            return f"commcheck.{layer}.{check.partition('.')[2]}", label
        case "layer":
            return f"commcheck.{layer}", f"{check} {label}"


def _case(
    result: Result,
    label: str,
    runbook_url: str,
    strict: bool,
    by: By,
    ports: Ports,
    sites: Mapping[str, str],
) -> Any:
    verdict = result.worst.verdict
    classname, name = _names(result, label, by)
    case = junit_xml.TestCase(
        name,
        classname=classname,
        elapsed_sec=result.seconds,
    )
    outcome = _outcome(result, strict)
    # Jenkins shows what passed at the second try as flaky; it stays a pass.
    case.retried = result.retried if outcome in ("pass", "warn") else 0
    if outcome == "warn":
        runbook = f"\nrunbook: {runbook_url}#{anchor(result.check)}\n"
        told = "; ".join(each.verdict.reason for each in (result.worst, *_also(result)))
        case.stdout = one_line(f"WARN {told}", _WARNING_LIMIT - len(runbook)) + runbook
    elif outcome == "failure":
        message = _with_count(result)
        slug = verdict.cause.slug if verdict.cause else "failure"
        kind = "warn" if verdict.status is Status.WARN else one_line(slug)
        case.add_failure_info(message, _text(message, result, runbook_url, ports, sites), kind)
    elif outcome == "error":
        said = "not run" if verdict.error == INTERRUPTED else "could not judge"
        message = one_line(f"ERROR {said}: {_with_count(result)}")
        error = one_line(verdict.error) or "Unjudgeable"
        case.add_error_info(message, _text(message, result, runbook_url, ports, sites), error)
    elif outcome == "skipped":
        word = _SKIP_WORDS[verdict.kind]
        reason = one_line(verdict.reason)
        case.add_skipped_info(reason if reason.startswith(word) else one_line(f"{word}: {reason}"))
    return case


def _with_count(result: Result) -> str:
    """The worst reason, and how many subjects share its fate: ``... (2 of 8)``.

    Of a host or job as a whole every finding is another fault: ``... (and 2 more)``.
    """
    worst = result.worst
    same = [
        each
        for each in result.findings
        if each.verdict.status is worst.verdict.status and slug_of(each) == slug_of(worst)
    ]
    judged = len(result.findings)
    count = f" ({len(same)} of {judged})" if judged > 1 else ""
    if not worst.subject:
        more = sum(row(each.verdict).junit not in _QUIET for each in result.findings) - 1
        count = f" (and {more} more)" if more > 0 else ""
    reason = one_line(result.worst.verdict.reason, 300 - len(count)) or "no printable reason"
    return reason + count


def _text(
    message: str, result: Result, runbook_url: str, ports: Ports, sites: Mapping[str, str]
) -> str:
    worst = result.worst
    where = "group" if result.host.startswith("@") else "host"
    host = one_line(result.host)
    lines = [message, f"{where}: {host.removeprefix('@')}   check: {one_line(result.check)}"]
    bounds = [
        f"{bound.name}={bound.value}{' ' + bound.unit if bound.unit else ''} ({bound.origin})"
        for bound in worst.bounds
    ]
    if bounds:
        lines[-1] += f"   threshold: {', '.join(bounds)}"
    lines += [each for each in (sites.get(result.check),) if each]
    lines += _subjects(result, ports)
    lines += _remedies(worst)
    for other in _also(result):
        lines.append(f"also {_word(other.verdict)} {one_line(other.verdict.reason)}")
        lines += _remedies(other)
    if worst.unproven_below:
        lines.append(f"not proven below: {', '.join(worst.unproven_below)}")
    lines.append(f"runbook: {runbook_url}#{anchor(result.check)}")
    lines.append(f"report: {REPORT}{deep_link(result)}")
    lines += _evidence(result.findings)
    text = clean("\n".join(lines))
    return cut(text, CAP, f"frames of {host} in the run folder") + "\n"


def _also(result: Result) -> list[Finding]:
    """The first finding of every other cause, and all that is wrong with no subject in particular.

    A case holds one result, and a log or an environment may have many faults.
    """
    told = {slug_of(result.worst)}
    others = []
    for finding in result.findings:
        if finding is result.worst or row(finding.verdict).junit in _QUIET:
            continue
        if not finding.subject or slug_of(finding) not in told:
            others.append(finding)
        told.add(slug_of(finding))
    return others


def _remedies(finding: Finding) -> Iterator[str]:
    for remedy in finding.verdict.remedies:
        who = "" if remedy.who == "operator" else f" ({remedy.who})"
        parts = [remedy.command, remedy.effect.en, remedy.precondition.en]
        yield f"remedy{who}: " + "; ".join(part for part in parts if part)


def _word(verdict: Verdict) -> str:
    return verdict.status.value.upper()


def _subjects(result: Result, ports: Ports) -> list[str]:
    """One line for every subject that does not pass, in rail order; the others folded.

    A rail's switch port stands behind it, where it is known.
    """
    findings = [finding for finding in result.findings if finding.subject]
    quiet: dict[str, list[str]] = {}
    lines = []
    for finding in findings:
        verdict = finding.verdict
        if row(verdict).junit in _QUIET:
            word = verdict.kind.value or verdict.status.value
            quiet.setdefault(word, []).append(finding.subject)
        else:
            port = ports.get((result.host, finding.subject))
            where = f"{finding.subject} ({port})" if port else finding.subject
            lines.append(f"{where}: {_word(verdict)} {verdict.reason}")
    return lines + [f"{fold_hosts(subjects)}: {word}" for word, subjects in quiet.items()]


def _evidence(findings: Sequence[Finding]) -> list[str]:
    """The commands of what does not pass, with their output; each command once."""
    shown: dict[str, Evidence] = {}
    for finding in findings:
        if row(finding.verdict).junit not in _QUIET:
            for each in finding.evidence:
                shown.setdefault(each.key, each)
    lines = []
    for each in sorted(shown.values(), key=lambda evidence: not evidence.used):
        if each.rc is None and not each.seconds:
            lines.append(each.key)  # nobody ran anything: a place in a file
        else:
            phase, _, command = each.key.partition(": ")
            when = "" if phase == "once" else f"{phase}, "
            rc = "?" if each.rc is None else each.rc
            lines.append(f"$ {command or phase}   ({when}rc {rc}, {each.seconds:.3f} s)")
        if each.head.strip():
            lines.append(each.head.rstrip("\n"))
        if each.truncated:
            lines.append("[... cut]")
    return lines


# --- XML ----------------------------------------------------------------------------------------


class _Suite(junit_xml.TestSuite):  # type: ignore[misc]  # junit-xml has no type hints
    """A suite whose XML is valid under the schema that Jenkins' xUnit plugin enforces."""

    def __init__(self, name: str, cases: list[Any], *, seconds: float, **more: Any) -> None:
        super().__init__(name, cases, **more)
        self._seconds = seconds

    def build_xml_doc(self, encoding: str | None = None) -> ET.Element:
        """The package's element, without what the schema forbids and with plain times."""
        element: ET.Element = super().build_xml_doc(encoding)
        element.attrib.pop("disabled")
        element.set("time", f"{self._seconds:.3f}")
        for case, node in zip(self.test_cases, element.iter("testcase"), strict=True):
            node.set("time", f"{case.elapsed_sec or 0.0:.3f}")
            for skipped in node.iter("skipped"):
                skipped.attrib.pop("type")
            if case.retried:
                told = f"proved nothing {case.retried} times before it passed"
                ET.SubElement(node, "flakyFailure", type="retried", message=told)
        return element


def _verify(suite: ET.Element, results: Sequence[Result], strict: bool) -> None:
    """The XML says what the verdicts say: an empty message would have made a failure a pass."""
    wanted = Counter(_outcome(result, strict) for result in results)
    found = Counter(child.tag for case in suite.iter("testcase") for child in case)
    for outcome, attribute in (
        ("failure", "failures"),
        ("error", "errors"),
        ("skipped", "skipped"),
    ):
        if not wanted[outcome] == found[outcome] == int(suite.get(attribute, "0")):
            raise ValueError(f"JUnit: {found[outcome]} {outcome} elements, want {wanted[outcome]}")
    if int(suite.get("tests", "0")) != len(results):
        raise ValueError(f"JUnit: {suite.get('tests')} cases, want {len(results)}")


def _serialise(suite: ET.Element) -> bytes:
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=False)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + body + b"\n"
