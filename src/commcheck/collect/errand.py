"""Visits that take longer than looking does, under a name by which what they start can be found."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from commcheck.collect.base import Visitor


@runtime_checkable
class Traveller(Protocol):
    """A way to hosts that can be taken for a job."""

    def errand(self, session: str, deadline_s: float) -> Visitor:
        """Visits in the session ``<run>.<session>``, for ``deadline_s`` at most each.

        ``session`` "": a name of its own. ``stop`` of what is returned ends its visits alone.
        """


def errand(visitor: Visitor, session: str, deadline_s: float) -> Visitor:
    """The way for a job; one that only repeats what is stored needs no other."""
    return visitor.errand(session, deadline_s) if isinstance(visitor, Traveller) else visitor
