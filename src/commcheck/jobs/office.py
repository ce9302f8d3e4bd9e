"""What carrying out a job needs of the run that it belongs to."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from commcheck.collect.base import Frame, Visitor
from commcheck.jobs.site import Site
from commcheck.lazy import dataclass
from commcheck.model import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """What a stage needs of the run it belongs to.

    ``visitor_for``: the way to a host. ``keep``: every frame, at once, from any thread.
    ``stored``: frames of a host that this very run took before it was cut off, or None.
    ``site_of``: what the inventory says of a host. ``platforms``: of the hosts, as they were found.
    ``host_named``: one of the inventory.
    """

    visitor_for: Callable[[Host], Visitor]
    keep: Callable[[str, Frame], None]
    stored: Callable[[str], Iterable[Frame]] | None
    site_of: Callable[[Host, str], Site]
    address_of: Callable[[Host], str]
    note: Callable[[str], None]
    stop: threading.Event
    platforms: Mapping[str, str]
    host_named: Callable[[str], Host | None]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
