"""What a host answers on which jobs run with these command lines."""

from __future__ import annotations

from tests.checks.library.test_env import FIND
from tests.checks.library.test_env import answers as environments

GOOD = "--overlap-grad-reduce --overlap-param-gather --use-distributed-optimizer"
MEGATRON = f"pretrain_gpt.py --micro-batch-size 1 {GOOD}"


def answers(*lines: str, environ: str = "WORLD_SIZE=16") -> dict[str, tuple[str, int]]:
    """One process for each command line, as grep lets its words pass."""
    words = "".join(
        f"/proc/{41000 + number}/cmdline:{word}\0"
        for number, line in enumerate(lines)
        for word in line.split()
    )
    return {
        **environments(*[environ] * len(lines)),
        f"{FIND} 2 -name cmdline": (words + "\n", 0),
    }
