"""What all tests share: servers are started only where they can be, and say why not elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from tests.sshd import SshdFleet, why_no_sshd

HERE = Path(__file__).parent
# How long an example takes says how busy the machine is: what must be fast is measured elsewhere.
settings.register_profile("commcheck", parent=settings(), deadline=None)
settings.load_profile("commcheck")

SERVED = ("chaos", "collect", "demo", "e2e", "jobs", "kube", "metrics")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start servers and processes, and measure time, are given a second try.

    Two workers on two cores that also carry the servers can miss any limit once. The limits are
    the product's promises, so they are not loosened; a real fault fails every time.
    """
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in SERVED:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests marked ``sshd``, with the reason, where no server can be started."""
    if item.get_closest_marker("sshd") and (reason := why_no_sshd()):
        pytest.skip(reason)


@pytest.fixture
def sshd_fleet(tmp_path: Path) -> Iterator[Callable[..., SshdFleet]]:
    """Makes started fleets, as ``SshdFleet(tmp_path, ...)`` does; they end with the test."""
    with ExitStack() as stack:

        def make(n: int = 1, **options: object) -> SshdFleet:
            return stack.enter_context(SshdFleet(tmp_path, n, **options))  # type: ignore[arg-type] # passed on as they are

        yield make
