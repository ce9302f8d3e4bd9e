"""Which switch port each rail is cabled to, as a check heard it by LLDP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commcheck.model import Finding
from commcheck.report.cleaning import one_line
from commcheck.report.record import Record

_CHECK: Final = "physical.rail-switch"

Ports = Mapping[tuple[str, str], str]
"""The switch port of each rail, by host and rail."""


def _port_of(finding: Finding) -> str:
    """``leaf-01 Ethernet12`` where the finding tells it of its rail, else ""."""
    measured = finding.verdict.measured
    words = [measured.get("switch"), measured.get("switch_port")]
    if not words[0] or not finding.subject:
        return ""
    return one_line(" ".join(str(word) for word in words if word), 120)


def switch_ports(record: Record) -> Ports:
    """Without the rails of which nothing was heard."""
    return {
        (result.host, finding.subject): port
        for result in record.sorted
        if result.check == _CHECK
        for finding in result.findings
        if (port := _port_of(finding))
    }
