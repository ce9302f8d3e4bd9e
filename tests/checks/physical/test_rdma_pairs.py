"""Of NIC pairs the slow host or rail is named, never its partner."""

from __future__ import annotations

import pytest

from checks.physical.rdma_pairs import CHECK
from commcheck.jobs.causes import LATENCY, RDMA_FALLS, RDMA_PCIE, RDMA_SLOW
from commcheck.model import Cause
from tests.jobs import located
from tests.jobs.located import PLACES


@pytest.mark.parametrize(("what", "cause"), PLACES.items(), ids=PLACES)
def test_the_object_at_fault_is_named_and_only_a_host_is_blamed(what: str, cause: Cause) -> None:
    located.names_it_and_blames_only_hosts(CHECK, what, cause)


def test_it_loads_and_says_so() -> None:
    assert CHECK.effects == {"load"}


def test_what_is_open_says_which_run_would_decide() -> None:
    located.says_which_run_would_decide(CHECK)


def test_a_host_whose_runs_proved_nothing_says_why() -> None:
    located.says_why_runs_proved_nothing(CHECK)


@pytest.mark.parametrize(
    "cause", [RDMA_SLOW, RDMA_FALLS, RDMA_PCIE, LATENCY], ids=lambda cause: cause.slug
)
def test_what_perftest_itself_shows_is_declared(cause: Cause) -> None:
    assert any(each is cause for each in CHECK.causes)
