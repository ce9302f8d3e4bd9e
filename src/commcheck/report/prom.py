"""``metrics.prom``: gauges for the node exporter's textfile collector, or for a Pushgateway.

Few series whatever the fleet: counts by layer and check, and one a host. No time stamps on samples
(the collector refuses them), HELP and TYPE once, a final newline.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from commcheck.diagnose import diagnose, presentation
from commcheck.model import Status
from commcheck.report.cleaning import one_line
from commcheck.report.fleet import first_failing
from commcheck.report.record import Record

_HELP: Final[Mapping[str, str]] = {
    "commcheck_run_info": "The run that these numbers are of.",
    "commcheck_run_timestamp_seconds": "When the run began, in seconds since 1970.",
    "commcheck_run_duration_seconds": "How long the run took.",
    "commcheck_run_exit_code": "0 all right, 1 something fails, 3 unknown, 130, 143 stopped.",
    "commcheck_run_complete": "1 where the run ended by itself.",
    "commcheck_hosts": "Hosts of the run.",
    "commcheck_hosts_unjudged": "Hosts on which something could not be judged.",
    "commcheck_verdicts": "Cases by layer and outcome.",
    "commcheck_check_hosts": "Hosts by check and outcome, of checks that did not pass everywhere.",
    "commcheck_host_first_failing_layer": "0 none, 1 to 4 from the wire up, -1 not judged in full.",
    "commcheck_busbw_gbytes_per_second": "Bus bandwidth measured, at the largest size.",
}

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


def render(record: Record) -> bytes:
    """The metrics of a run. The same record gives the same bytes."""
    by_name: defaultdict[str, list[tuple[Labels, float]]] = defaultdict(list)
    for name, labels, value in _samples(record):
        by_name[name].append((labels, value))
    lines = []
    for name, meaning in _HELP.items():
        if name in by_name:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
            lines += [_line(name, labels, value) for labels, value in by_name[name]]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _samples(record: Record) -> Iterator[Sample]:
    info, diagnosis = record.info, diagnose(record)
    of = {"playbook": info.playbook}
    yield "commcheck_run_info", {**of, "run": info.run_id, "version": info.version}, 1
    yield "commcheck_run_timestamp_seconds", of, info.started.timestamp()
    if record.ended is not None:
        yield "commcheck_run_duration_seconds", of, record.seconds
    yield "commcheck_run_exit_code", of, record.exit_code
    yield "commcheck_run_complete", of, float(record.state == "complete")
    yield "commcheck_hosts", of, len(record.plan.hosts)
    yield "commcheck_hosts_unjudged", of, len(diagnosis.unjudged)
    for rung in diagnosis.ladder:
        for word, count in sorted(rung.cases.items()):
            labels = {"layer": rung.layer.value, "status": word}
            yield "commcheck_verdicts", {**of, **labels}, count
    for (check, word), count in _by_check(record).items():
        yield "commcheck_check_hosts", {**of, "check": check, "status": word}, count
    layers = {host: layer.height for layer, hosts in first_failing(record, diagnosis)
              for host in hosts}  # fmt: skip
    unjudged = frozenset(diagnosis.unjudged)
    for host in record.plan.hosts:
        height = layers.get(host, -1 if host in unjudged else 0)
        yield "commcheck_host_first_failing_layer", {**of, "host": host}, height
    yield from _busbw(record, of)


def _by_check(record: Record) -> Mapping[tuple[str, str], int]:
    """Checks that passed everywhere are left out: they say nothing that the layer does not."""
    counts: Counter[tuple[str, str]] = Counter(
        (result.check, presentation(result.worst))
        for result in record.sorted
        if not result.host.startswith("@")
    )
    loud = {check for check, word in counts if word not in ("pass", "not-applicable")}
    return {key: count for key, count in sorted(counts.items()) if key[0] in loud}


_BUSBW: Final = "busbw_gbytes"


def _busbw(record: Record, of: Labels) -> Iterator[Sample]:
    """What was measured on the wire, one number a host and check: the smallest of its subjects."""
    for result in record.sorted:
        measured = [each.verdict for each in result.findings if _BUSBW in each.verdict.measured]
        found = [
            value
            for verdict in measured
            if verdict.status in (Status.PASS, Status.WARN, Status.FAIL)
            for value in (verdict.measured[_BUSBW],)
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        if found:
            labels = {**of, "host": result.host, "check": result.check}
            yield "commcheck_busbw_gbytes_per_second", labels, min(found)


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {float(value):.15g}"


def _escaped(text: str) -> str:
    plain = one_line(text, 200)
    return plain.replace("\\", "\\\\").replace('"', '\\"')
