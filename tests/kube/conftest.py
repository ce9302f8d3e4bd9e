"""A cluster that a real kubectl talks to; without one the tests that need it are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.kube.api import Cluster, Pod, why_no_kubectl


@pytest.fixture
def cluster_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Cluster]]:
    """Makes a running cluster of pods and nodes; it ends with the test."""
    if why_no_kubectl():
        pytest.skip(why_no_kubectl())
    monkeypatch.setenv("HOME", str(tmp_path))  # kubectl keeps a cache there
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with ExitStack() as stack:

        def make(*pods: Pod, **more: Any) -> Cluster:
            return stack.enter_context(Cluster(tmp_path, pods, **more))

        yield make
