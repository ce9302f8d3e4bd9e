"""How much chance there is: a little that is always the same, and by ``soak`` much that is not.

``COMMCHECK_SOAK=N`` repeats what is random N times as often, with seeds that pytest prints in the
names of the tests; ``COMMCHECK_SEED=S`` begins with that one, to see a failure again.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, Final

from hypothesis import HealthCheck, settings

SOAK: Final = int(os.environ.get("COMMCHECK_SOAK", "0"))
FIRST: Final = int(os.environ.get("COMMCHECK_SEED", str(random.randrange(10**6) if SOAK else 1)))
SEEDS: Final = range(FIRST, FIRST + max(1, SOAK))


def EXAMPLES(count: int) -> Callable[[Any], Any]:  # noqa: N802 - stands for ``settings``
    """``count`` examples, the same in every run; by ``soak`` other ones, and many more."""
    return settings(
        max_examples=count * max(1, 10 * SOAK),
        derandomize=not SOAK,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
