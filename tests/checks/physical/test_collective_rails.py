"""Of rails the slow one is named, on a host or on all of them."""

from __future__ import annotations

import pytest

from checks.physical.collective_rails import CHECK
from commcheck.jobs.causes_places import (
    BAD_HOST,
    BAD_LEAF,
    BAD_PATH,
    BAD_PLANE,
    BAD_RAIL,
    FLEET,
    PARALLEL_ONLY,
)
from commcheck.model import Cause
from tests.jobs import located

PLACES = {
    "host": BAD_HOST,
    "rail": BAD_RAIL,
    "plane": BAD_PLANE,
    "path": BAD_PATH,
    "leaf": BAD_LEAF,
    "fabric": FLEET,
    "parallel": PARALLEL_ONLY,
}


@pytest.mark.parametrize(("what", "cause"), PLACES.items(), ids=PLACES)
def test_the_object_at_fault_is_named_and_only_a_host_is_blamed(what: str, cause: Cause) -> None:
    located.names_it_and_blames_only_hosts(CHECK, what, cause)


def test_it_loads_and_says_so() -> None:
    assert CHECK.effects == {"load"}


def test_what_is_open_says_which_run_would_decide() -> None:
    located.says_which_run_would_decide(CHECK)


def test_a_host_whose_runs_proved_nothing_says_why() -> None:
    located.says_why_runs_proved_nothing(CHECK)
