"""Jump hosts that are asked for and do not come."""

from __future__ import annotations

import time
from typing import NoReturn

import pytest

from commcheck.collect.gateways import Gateways
from commcheck.collect.hostkeys import Mode, Wanted
from commcheck.collect.lifetime import Visit
from commcheck.collect.target import Target
from commcheck.errors import HostError, Interrupted, Unreachable

JUMP = Target("jump", 22, "ops", Wanted(Mode.STRICT, ("jump",)))


@pytest.mark.parametrize("error", [Unreachable("dns", "no such name"), Interrupted("stop", "now")])
def test_who_waits_is_told_why_it_does_not_come(error: HostError) -> None:
    """A run that is stopped meanwhile makes no host unreachable: --resume must ask it again."""

    def open_(_jump: Target) -> NoReturn:
        raise error

    visit = Visit("gpu-01", 5.0, time.monotonic)
    with pytest.raises(type(error), match=f"jump host jump port 22: {error.reason}") as caught:
        Gateways(open_, time.monotonic).lease(JUMP, visit)
    assert caught.value.code == error.code
