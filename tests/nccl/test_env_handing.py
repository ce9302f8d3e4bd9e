"""What of a job script's settings reaches the ranks: srun, directives, sourced files."""

from __future__ import annotations

from pathlib import Path

import pytest

from commcheck.model import Status
from commcheck.nccl.environment.causes_given import NOT_HANDED_ON
from commcheck.nccl.environment.model import Layer
from commcheck.nccl.environment.sources import script
from commcheck.nccl.offline_env import analyse_env


def told(layer: Layer) -> dict[str, str]:
    return {name: setting.value for name, setting in layer.settings.items()}


SET = "#!/bin/bash\nexport NCCL_NET=IB NCCL_DEBUG=INFO\n"
REACHES = [
    SET + "srun python train.py",
    SET + "srun --export=ALL python train.py",
    SET + "srun --export=ALL,NCCL_ALGO=Ring python train.py",
    SET + "srun --export=NCCL_NET,NCCL_DEBUG,PATH python train.py",
    SET + "srun --export NCCL_NET,NCCL_DEBUG python train.py",
    SET + "srun --export=$WHAT python train.py",
    SET + "srun --export=NONE hostname\nsrun python train.py",
    SET + "srun --export=NONE nvidia-smi\nmpirun -np 16 ./train",
    SET + "srun --export=NONE nvidia-smi\ntorchrun train.py",
    "#SBATCH --export=NONE\n" + SET + "unset SLURM_EXPORT_ENV\nsrun python train.py",
    "#SBATCH --export=NONE\nexport SLURM_EXPORT_ENV=ALL\n" + SET + "srun python train.py",
    "#SBATCH --export=NONE\n" + SET + "srun --export=ALL python train.py",
    "#SBATCH --export=NONE\n" + SET + "python train.py",
    "srun --export=NONE bash -c 'export NCCL_NET=IB NCCL_DEBUG=INFO; python train.py'",
]


@pytest.mark.parametrize("text", REACHES)
def test_what_srun_hands_on_counts(text: str) -> None:
    found = script(text, "f")
    assert (found.settings["NCCL_NET"].value, found.lost) == ("IB", ())
    assert "NCCL_DEBUG" in found.settings


LOST = [
    (SET + "srun --export=NONE python train.py", "srun --export=NONE (f:3)"),
    (SET + "srun --export NIL python train.py", "srun --export=NIL (f:3)"),
    (SET + "srun --export=PATH,HOME bash -c 'torchrun x'", "srun --export=PATH,HOME (f:3)"),
    ("#SBATCH --export=NONE\n" + SET + "srun python x.py", "#SBATCH --export=NONE (f:1)"),
    ("#SBATCH --export=A=1\n" + SET + "srun bash -c 'python x'", "#SBATCH --export=A=1 (f:1)"),
]


@pytest.mark.parametrize(("text", "by"), LOST)
def test_what_srun_does_not_hand_on_is_not_set(text: str, by: str) -> None:
    found = script(text, "f")
    assert "NCCL_NET" not in found.settings
    (why,) = found.lost
    assert why == f"{by} hands on only what it names: no rank gets NCCL_NET=IB, NCCL_DEBUG=INFO"


def test_what_is_lost_is_told_once_and_not_judged(tmp_path: Path) -> None:
    text = "#SBATCH -N 2\nexport NCCL_P2P_DISABLE=yes\nsrun --export=NCCL_DEBUG=INFO ./train\n"
    (tmp_path / "job.sh").write_text(text)
    found = [each.verdict for each in analyse_env([str(tmp_path / "job.sh")]).results[0].findings]
    wrong = [each for each in found if each.cause is not None]
    assert [(each.rule, each.status) for each in wrong] == [("ENV-065", Status.WARN)]
    assert wrong[0].cause == NOT_HANDED_ON


def test_a_list_in_export_is_cut_at_its_commas() -> None:
    found = script("srun --export=ALL,NCCL_IB_HCA=mlx5_0,mlx5_1:1,NCCL_DEBUG=INFO x", "f")
    assert told(found) == {"NCCL_IB_HCA": "mlx5_0", "NCCL_DEBUG": "INFO"}
    (why,) = found.lost
    assert "(f:1): NCCL_IB_HCA=mlx5_0 alone is set, mlx5_1:1 sets nothing" in why
    quoted = script("srun \"--export=ALL,NCCL_IB_HCA='mlx5_0,mlx5_1'\" x", "f")
    assert (told(quoted), quoted.lost) == ({"NCCL_IB_HCA": "mlx5_0,mlx5_1"}, ())
    names = script("srun --export=NCCL_NET=IB,http_proxy,PATH x", "f")
    assert names.lost == ()


LISTS = [
    "#PBS -l select=2:ngpus=8\n#PBS -v NCCL_NET=IB,NCCL_DEBUG=INFO",
    "#$ -v NCCL_NET=IB,NCCL_DEBUG=INFO",
    '#BSUB -nnodes 2\n#BSUB -env "all, NCCL_NET=IB, NCCL_DEBUG=INFO"',
    "qsub -v NCCL_NET=IB,NCCL_DEBUG=INFO job.sh",
    "srun --export ALL,NCCL_NET=IB,NCCL_DEBUG=INFO x",
    "#SBATCH --export ALL,NCCL_NET=IB,NCCL_DEBUG=INFO",
    "singularity exec --nv --env NCCL_NET=IB,NCCL_DEBUG=INFO train.sif python x",
    "apptainer exec --env=NCCL_NET=IB,NCCL_DEBUG=INFO train.sif python x",
    "export APPTAINERENV_NCCL_NET=IB SINGULARITYENV_NCCL_DEBUG=INFO",
]


@pytest.mark.parametrize("text", LISTS)
def test_lists_of_schedulers_and_containers(text: str) -> None:
    assert told(script(text, "f")) == {"NCCL_NET": "IB", "NCCL_DEBUG": "INFO"}


def test_a_directive_in_a_comment_is_none() -> None:
    assert (
        told(script("##PBS -v NCCL_NET=IB\n# PBS -v NCCL_NET=IB\n#PBSX -v NCCL_NET=IB", "f")) == {}
    )


def test_a_script_for_pbs_is_read(tmp_path: Path) -> None:
    (tmp_path / "job.pbs").write_text("#PBS -v NCCL_IB_DISABLE=1\nmpiexec ./train\n")
    analysis = analyse_env([str(tmp_path / "job.pbs")])
    (one,) = analysis.facts["environments"]  # type: ignore[misc] # one of a list
    assert one["settings"]["NCCL_IB_DISABLE"]["value"] == "1"  # type: ignore[has-type]


def test_a_sourced_file_counts_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(
        "#!/bin/bash\nsource ~/venv/bin/activate\n. /etc/profile.d/conda.sh\n"
        "A=1 source /opt/nccl-env.sh\n. ./more.sh\nexport NCCL_DEBUG=WARN\nsrun train\n"
    )
    name = str(tmp_path / "job.sh")
    notes = [note for note in analyse_env([name]).notes if note.startswith("not read, and")]
    assert [note.rpartition(": ")[2] for note in notes] == [
        "source /opt/nccl-env.sh",
        ". ./more.sh",
    ]
    (tmp_path / "more.sh").write_text("export NCCL_NET=IB\n")
    notes = list(analyse_env([name, str(tmp_path / "more.sh")]).notes)
    assert not any("more.sh" in note for note in notes if note.startswith("not read, and"))


BRANCHES = """#!/bin/bash
export NCCL_DEBUG=INFO NCCL_NET=IB
if [ "$USE_TCP" = 1 ]; then
  export NCCL_IB_DISABLE=1
  NCCL_NET=Socket
fi
if [ -n "$A" ]; then export NCCL_ALGO=Ring; else export NCCL_ALGO=Tree; fi
case $(hostname) in
  a*) export NCCL_IB_TC=106 ;;
  *) export NCCL_IB_TC=106 ;;
esac
export NCCL_DEBUG=WARN
python -c "
if done:
  print(1)
"
if [ "$C" ]; then :; elif [ "$D" ]
then export NCCL_IB_TIMEOUT=22
fi
[ -z "$B" ] && export NCCL_IB_SL=3
export NCCL_PROTO=LL
"""


def test_of_branches_nobody_knows_which_is_taken() -> None:
    found = script(BRANCHES, "f")
    assert {name: each.where for name, each in found.settings.items()} == {
        "NCCL_IB_DISABLE": "f:4, in a branch",
        "NCCL_IB_TC": "f:10, in a branch",
        "NCCL_DEBUG": "f:12",
        "NCCL_IB_TIMEOUT": "f:18, in a branch",
        "NCCL_IB_SL": "f:20, in a branch",
        "NCCL_PROTO": "f:21",
    }
    assert set(found.untold) == {"NCCL_NET", "NCCL_ALGO"}


RAY = [
    """ray job submit --runtime-env-json='{"env_vars": {"NCCL_NET": "IB", "N": 1}}' -- python x""",
    """RUNTIME_ENV_JSON="{
  \\"working_dir\\": \\".\\",
  \\"env_vars\\": {
    \\"PYTHONPATH\\": \\"/x/\\",
    \\"NCCL_NVLS_ENABLE\\": \\"${HAS_NVLINK}\\",
    \\"NCCL_NET\\": \\"IB\\"
  }
}"
export NCCL_NET=Socket
ray job submit --runtime-env-json="${RUNTIME_ENV_JSON}" -- python3 train.py""",
    "import ray\nray.init(runtime_env={'env_vars': {'NCCL_NET': 'IB', 'X': 'y'}})",
]


@pytest.mark.parametrize("text", RAY)
def test_what_ray_sets_comes_last(text: str) -> None:
    found = script(text, "f")
    assert told(found) == {"NCCL_NET": "IB"}
    assert set(found.untold) == ({"NCCL_NVLS_ENABLE"} if "HAS_NVLINK" in text else set())
    assert found.settings["NCCL_NET"].where == ("f:6" if "HAS_NVLINK" in text else
                                                "f:2" if "import" in text else "f:1")  # fmt: skip
