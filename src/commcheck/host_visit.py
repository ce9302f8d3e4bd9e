"""One host while its session runs: what it is asked, and what it has answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from commcheck import subjects
from commcheck.check import FLEET
from commcheck.collect.base import SUBJECTS, Frame, Request, Sink
from commcheck.lazy import dataclass
from commcheck.metrics.fleet import Fleet
from commcheck.model import Machine
from commcheck.plan import HostPlan, Known, requests


@dataclass(slots=True)
class HostVisit:
    """What is known of one host while its session runs."""

    plan: HostPlan
    keep: Sink
    frames: dict[str, Frame] = field(default_factory=dict)
    machine: Machine | None = None
    known: Known = field(default_factory=dict)  # what it was asked, for whoever judges it
    answers: Callable[[str], dict[str, Frame]] | None = None  # given before, by boot id
    fleet: Fleet | None = None  # what is known of all hosts; None: as then, from what is stored

    def ask(self, frame: Frame) -> Sequence[Request]:
        self.machine = subjects.machine_of(self.plan.host, frame)
        self.known = {}
        wanted = requests(self.plan.host, self.machine, self.plan.asked, self.known)
        if self.answers is not None:
            given = self.answers(self.machine.boot_id)
            self.frames.update({each.key: given[each.key] for each in wanted if each.key in given})
            wanted = tuple(each for each in wanted if each.key not in given)
        if self.fleet is None:
            return wanted
        for request in wanted:
            if request.at == FLEET:
                self.sink(self.fleet.frame(self.plan.host, self.machine, request))
        return tuple(each for each in wanted if each.at != FLEET)

    def sink(self, *frames: Frame) -> None:
        self.frames.update({each.key: each for each in frames if each.key != SUBJECTS})
        self.keep(*frames)


def kept_already(*_frames: Frame) -> None:
    """The frames come from where they would go."""
