"""Ranks of a job script of Slurm: what it asks for, and who starts them."""

from __future__ import annotations

import pytest

from commcheck.frameworks import documents
from commcheck.frameworks.causes import OVERLAP
from commcheck.frameworks.judge import judge
from commcheck.frameworks.limits import Limits
from commcheck.model import Kind, Status

TORCHRUN = "srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 pretrain_gpt.py --seed 1\n"
DIRECT = "srun python -u pretrain_gpt.py --micro-batch-size 1\n"


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        (f"#SBATCH --nodes=4\n{TORCHRUN}", 32),
        (f"#SBATCH -N 4\n{TORCHRUN}", 32),
        (f"#SBATCH -N4\n{TORCHRUN}", 32),
        (f"#SBATCH --nodes=2-4\n{TORCHRUN}", None),
        (TORCHRUN, None),
        (f"#SBATCH --nodes=4 --ntasks-per-node=8\n{DIRECT}", 32),
        (f"#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n{DIRECT}", 32),
        (f"#SBATCH --ntasks=16 # all\n{DIRECT}", 16),
        (f"#SBATCH --nodes=4\n{DIRECT}", None),
        (f"#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n{DIRECT[5:]}", None),
        (
            "#SBATCH --nodes 2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:h100:4\n"
            + TORCHRUN.replace(" 8 ", " $SLURM_GPUS_ON_NODE "),
            8,
        ),
    ],
)
def test_ranks(text: str, ranks: int | None) -> None:
    (job,) = documents.read(text, "job.sh")
    assert job.ranks == ranks


def test_what_is_wrong_besides_does_not_hide_what_is_not_known() -> None:
    flags = "--tensor-model-parallel-size 4 --seed"
    jobs = documents.read(TORCHRUN.replace("--seed", flags), "job.sh")
    told = [(each.status, each.kind) for each in judge(OVERLAP, jobs, Limits())]
    assert told == [(Status.WARN, Kind.NONE), (Status.SKIP, Kind.UNDECIDABLE)]
