"""A rule over the settings of one job, and what it finds. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from commcheck.check import failed, warned
from commcheck.frameworks.limits import Limits
from commcheck.frameworks.settings import Settings
from commcheck.model import Cause, Remedy, Verdict

Rule = Callable[[Settings, Limits], Iterator[Verdict]]


def finding(
    cause: Cause,
    rule: str,
    reason: str,
    *remedies: Remedy,
    fails: bool = False,
    value: object = "",
) -> Verdict:
    """A finding with those of its cause's remedies that belong to the framework."""
    verdict = (failed if fails else warned)(cause, reason, rule=rule, value=value)
    effects = [each.effect for each in remedies]
    mine = tuple(each for each in verdict.remedies if each.effect in effects)
    return replace(verdict, remedies=mine)
