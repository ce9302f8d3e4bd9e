"""The command lines of launchers, and what a host must have to take part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from commcheck.collect.base import Frame, Request
from commcheck.command import Output
from commcheck.errors import CommandMissing, Unjudgeable
from commcheck.jobs import ready, scripts
from commcheck.jobs.collective import Limits, NodeLimits, collective_job
from commcheck.jobs.job import Answered, Job, Member
from commcheck.jobs.launchers import Program, alone, command
from commcheck.jobs.outcomes import ALL_RAILS, Run
from commcheck.jobs.writes import Limits as WriteLimits
from commcheck.jobs.writes import write_job
from commcheck.loads import site_of
from commcheck.model import Accelerator, Host, Machine, Rail, Status
from tests.jobs.recordings import text_of

NONE = Machine("gpu-01", "gpu-roce")
PERF = "/opt/nccl-tests/build/all_gather_perf"


def member(
    name: str,
    *launchers: str,
    uid: int = 1000,
    gpus: int = 8,
    platform: str = "gpu-roce",
    programs: Mapping[str, str] | None = None,
    **variables: object,
) -> Member:
    host = Host(name, variables)
    rails = tuple(
        Rail(index=at, hca=f"mlx5_{at}", link_layer="Ethernet", netdev=f"eth{at}")
        for at in range(4)
    )
    accelerators = tuple(Accelerator(at, "nvidia") for at in range(gpus))
    machine = Machine(
        name, platform, f"{name}.cluster", uid=uid, rails=rails, accelerators=accelerators
    )
    return Member(
        host=host,
        machine=machine,
        site=site_of(host, platform),
        address=f"192.0.2.{name[-1]}",
        launchers=frozenset(launchers),
        programs=programs
        if programs is not None
        else {"mpirun": "/usr/bin/mpirun", "all_gather_perf": PERF, "ib_write_bw": "ib_write_bw"},
    )


PROGRAM = Program(argv=("perf", "-b", "1M"), per_host=8, env={"NCCL_ALGO": "Ring"}, limit_s=100.0)


def words(*launchers: str, uid: int = 1000, **variables: object) -> str:
    both = [
        member(f"gpu-{at}", *launchers, uid=uid, **variables)  # type: ignore[arg-type] # variables
        for at in (1, 2)
    ]
    return " ".join(command(PROGRAM, both[0], both))


def test_open_mpi() -> None:
    said = words("openmpi", commcheck_mpi_interface="10.1.0.0/16", ansible_port=2222)
    assert said.startswith("sh -c exec")
    assert "orte_launch_agent" in said
    assert " -H 192.0.2.1:8,192.0.2.2:8 -np 16 --map-by ppr:8:node --bind-to none" in said
    assert "--mca plm_rsh_args -o BatchMode=yes -o ConnectTimeout=10 -p 2222" in said
    assert "--mca btl_tcp_if_include 10.1.0.0/16 --mca oob_tcp_if_include 10.1.0.0/16" in said
    assert said.endswith("-x COMMCHECK_MARK -x PATH -x NCCL_ALGO=Ring perf -b 1M")
    assert "--timeout 80" in said
    assert "--allow-run-as-root" not in said
    assert "--allow-run-as-root" in words("openmpi", uid=0)


def test_open_mpi_5_has_other_names_for_its_daemons() -> None:
    said = words("openmpi5", commcheck_mpi_interface="eth0")
    assert "prte_launch_agent" in said
    assert "--prtemca plm_ssh_args" in said
    assert "--mca btl_tcp_if_include eth0 --prtemca oob_tcp_if_include eth0" in said


def test_hydra_hands_on_the_environment_by_itself() -> None:
    said = words("mpich", commcheck_mpi_interface="eth0")
    assert said.startswith("env HYDRA_LAUNCHER_EXTRA_ARGS=-o BatchMode=yes")
    assert "/usr/bin/mpirun -hosts 192.0.2.1:8,192.0.2.2:8 -n 16 -ppn 8 -iface eth0" in said
    assert said.endswith("-genv NCCL_ALGO Ring perf -b 1M")


def test_slurm_takes_the_hosts_own_names() -> None:
    said = words("srun")
    assert said.startswith("env NCCL_ALGO=Ring srun --kill-on-bad-exit=1")
    assert "-N 2 --ntasks-per-node=8 -w gpu-1,gpu-2" in said
    assert said.endswith("--mpi=pmix perf -b 1M")
    assert "--mpi=pmi2" in words("srun", commcheck_launch_args=["--mpi=pmi2"])
    assert "--mpi=pmix" not in words("srun", commcheck_launch_args=["--mpi=pmi2"])


def test_slurm_ends_no_run_before_our_own_limit() -> None:
    """It counts in whole minutes."""
    one = member("gpu-1", "srun")
    for limit_s, told in ((100.0, "--time=2"), (80.0, "--time=2"), (30.0, "--time=1")):
        assert told in command(replace(PROGRAM, limit_s=limit_s), one, (one, one))


def test_which_launcher() -> None:
    assert words("openmpi", "srun").startswith("sh -c")
    assert " srun " in words("openmpi", "srun", commcheck_launcher="srun")
    with pytest.raises(CommandMissing, match="mpirun or srun"):
        words()
    with pytest.raises(CommandMissing, match="no mpirun"):
        words("srun", commcheck_launcher="mpirun")


def test_one_host_needs_no_launcher() -> None:
    assert alone(PROGRAM) == ("env", "NCCL_ALGO=Ring", "perf", "-b", "1M")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mpirun (Open MPI) 4.1.5\n\nReport bugs to ...\n", "openmpi"),
        ("mpirun (Open MPI) 5.0.3\n", "openmpi5"),
        ("mpirun.openmpi (OpenRTE) 4.1.4\n", "openmpi"),
        ("HYDRA build details:\n    Version: 4.1.1\n", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9\n", "mpich"),
        ("something else\n", ""),
    ],
)
def test_the_mpi_is_known_by_its_version(text: str, kind: str) -> None:
    assert ready.mpi_kind(text) == kind


# --- what a run starts --------------------------------------------------------------------------


def launched(run: Run, *members: Member) -> str:
    job = collective_job("rails" if run.rail is not None else "pairs")
    parts = job.launch(run, {each.name: each for each in members}, Limits())
    return " ".join(parts[0].requests[0].command.argv)


def test_a_pair_a_rail_and_all_rails() -> None:
    both = [member(name, "openmpi") for name in ("gpu-1", "gpu-2")]
    said = launched(Run(("gpu-1", "gpu-2")), *both)
    assert f"{PERF} -b 64M -e 2048M -f 2 -w 5 -n 20 -c 1 -g 1" in said
    assert "-x NCCL_DEBUG=INFO" in said
    assert "-x NCCL_IB_HCA==mlx5_2:1" in launched(Run(("gpu-1", "gpu-2"), 2), *both)
    said = launched(Run(("gpu-1", "gpu-2"), ALL_RAILS), *both)
    assert "-x NCCL_TESTS_SPLIT=MOD 8" in said
    assert said.endswith("-a 3")


def test_one_host_runs_all_its_gpus_in_one_process() -> None:
    one = member("gpu-1", programs={"all_reduce_perf": "all_reduce_perf"})
    parts = collective_job("node").launch(Run(("gpu-1",)), {"gpu-1": one}, NodeLimits())
    said = " ".join(parts[0].requests[0].command.argv)
    assert said.endswith("all_reduce_perf -b 256M -e 8192M -f 2 -w 5 -n 20 -c 1 -g 8")
    assert "mpirun" not in said


SIZES = "-b 64M -e 2048M -f 2 -w 5 -n 20 -c 1"


@pytest.mark.parametrize(
    ("launchers", "hosts", "npus", "variables", "says"),
    [
        (
            ("mpich",),
            2,
            8,
            {},
            "env HYDRA_LAUNCHER_EXTRA_ARGS=-o BatchMode=yes -o ConnectTimeout=10 mpirun "
            "-hosts 192.0.2.1:8,192.0.2.2:8 -n 16 -ppn 8 -genv HCCL_BUFFSIZE 2048 "
            f"all_gather_test -p 8 {SIZES}",
        ),
        (
            ("mpich",),
            2,
            16,
            {
                "commcheck_mpi_interface": "enp189s0f0",
                "commcheck_job_env": {"HCCL_SOCKET_IFNAME": "=enp189s0f0", "HCCL_BUFFSIZE": 4096},
            },
            "-n 32 -ppn 16 -iface enp189s0f0 -genv HCCL_BUFFSIZE 4096 "
            f"-genv HCCL_SOCKET_IFNAME =enp189s0f0 all_gather_test -p 16 {SIZES}",
        ),
        (
            ("mpich",),
            1,
            8,
            {},
            f"-hosts 192.0.2.1:8 -n 8 -ppn 8 -genv HCCL_BUFFSIZE 2048 all_gather_test -p 8 {SIZES}",
        ),
        (
            ("openmpi",),
            2,
            8,
            {},
            f"-x COMMCHECK_MARK -x PATH -x HCCL_BUFFSIZE=2048 all_gather_test -p 8 {SIZES}",
        ),
        (
            ("srun",),
            2,
            8,
            {"commcheck_launch_args": ["--mpi=pmi2"]},
            f"--ntasks-per-node=8 -w gpu-1,gpu-2 --time=3 --export=ALL --mpi=pmi2 "
            f"all_gather_test -p 8 {SIZES}",
        ),
    ],
    ids=["hydra", "a3-own-network", "inside-a-host", "openmpi", "slurm"],
)
def test_hccl_test(
    launchers: tuple[str, ...], hosts: int, npus: int, variables: dict[str, object], says: str
) -> None:
    programs = {"mpirun": "mpirun", "all_gather_test": "all_gather_test"}
    names = [f"gpu-{number}" for number in range(1, hosts + 1)]
    members = [
        member(name, *launchers, gpus=npus, platform="ascend", programs=programs, **variables)  # type: ignore[arg-type] # variables
        for name in names
    ]
    assert launched(Run(tuple(names)), *members).endswith(says)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (member("gpu-2", gpus=4), "gpu-1 8, gpu-2 4"),
        (member("gpu-2", programs={}), "gpu-2 has no all_gather_perf"),
        (member("gpu-2", platform="ascend"), "different platforms"),
    ],
)
def test_hosts_that_cannot_run_together(other: Member, why: str) -> None:
    with pytest.raises(Unjudgeable, match=why):
        launched(Run(("gpu-1", "gpu-2")), member("gpu-1", "openmpi"), other)


def test_a_launch_host_that_is_not_there() -> None:
    both = [member(n, "openmpi", commcheck_launch_host="login") for n in ("gpu-1", "gpu-2")]
    with pytest.raises(Unjudgeable, match="login, from which runs are launched"):
        launched(Run(("gpu-1", "gpu-2")), *both)


def test_write_bw_has_a_port_for_each_rail() -> None:
    both = {name: member(name) for name in ("gpu-1", "gpu-2")}
    client, server = write_job().launch(Run(("gpu-1", "gpu-2")), both, WriteLimits())
    assert (client.host, server.host) == ("gpu-1", "gpu-2")
    ports = [" ".join(request.command.argv).partition(" -p ")[2][:5] for request in server.requests]
    assert ports == ["18515", "18516", "18517", "18518"]
    assert all(request.command.argv[-1] == "192.0.2.2" for request in client.requests)
    (one,) = write_job().launch(Run(("gpu-1", "gpu-2"), 2), both, WriteLimits())[1].requests
    assert "mlx5_2" in one.command.argv


def test_write_bw_keeps_off_ports_that_somebody_listens_on() -> None:
    listens = (
        "   4: 0100007F:4855 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n"  # 18517
    )
    both = {
        "gpu-1": member("gpu-1"),
        "gpu-2": replace(member("gpu-2"), told=(Output(listens),)),
    }
    client, server = write_job().launch(Run(("gpu-1", "gpu-2")), both, WriteLimits())
    for part in (client, server):
        words = [" ".join(request.command.argv) for request in part.requests]
        assert [each.partition(" -p ")[2][:5] for each in words] == [
            "18579",
            "18580",
            "18581",
            "18582",
        ]


@pytest.mark.parametrize(
    ("answered", "error"),
    [
        (Answered(problem="the connection broke"), "LaunchFailed"),
        (Answered(timed_out=True), "RunTimedOut"),
        (Answered(outputs=(Output("", "mpirun: not found", 127),)), "LaunchFailed"),
    ],
)
@pytest.mark.parametrize(
    ("job", "limits"), [(collective_job("pairs"), Limits()), (write_job(), WriteLimits())]
)
def test_a_run_that_brought_nothing_is_never_judged(
    job: Job, limits: object, answered: Answered, error: str
) -> None:
    both = {name: member(name) for name in ("gpu-1", "gpu-2")}
    told = job.read(Run(("gpu-1", "gpu-2")), both, limits, answered)
    assert told.outcome.good is None
    assert (told.verdicts[0].status, told.verdicts[0].error) == (Status.ERROR, error)


def test_a_run_that_hung_says_how_far_it_came() -> None:
    both = {name: member(name) for name in ("gpu-1", "gpu-2")}
    text = "# Using devices\n#  Rank  0 Group  0 Pid  1 on gpu-1 device  0 [0000:01:00.0] H100\n"
    answered = Answered(outputs=(Output(text),), timed_out=True)
    told = collective_job("pairs").read(Run(("gpu-1", "gpu-2")), both, Limits(), answered)
    assert "right after its ranks had met" in told.verdicts[0].reason


@pytest.mark.parametrize(
    ("platform", "fabric", "status"),
    [("gpu-efa", None, "fail"), ("gpu-roce", True, "fail"), ("gpu-roce", None, "skip")],
)
def test_a_run_is_held_against_all_nics_that_are_for_training(
    platform: str, fabric: bool | None, status: str
) -> None:
    rails = tuple(Rail(index=at, hca=f"rdma{at}", fabric=fabric) for at in range(32))
    both = {}
    for name in ("gpu-a01", "gpu-a04"):
        made = member(name, platform=platform, commcheck_line_rate_gbits=100)
        both[name] = replace(made, machine=replace(made.machine, rails=rails))
    text = text_of("16_allreduce_2node_one_rail_at_100g.txt")
    limits = Limits(collective="all_reduce")
    job = collective_job("pairs")
    told = job.read(Run(tuple(both)), both, limits, Answered(outputs=(Output(text),)))
    assert told.verdicts[0].status.value == status, told.verdicts[0].reason
    assert "of 400" in told.verdicts[0].reason


# --- is the host free? --------------------------------------------------------------------------


def frames(**answers: tuple[str, int]) -> dict[str, Frame]:
    """Answers to what is asked before, by a word of the command; what is not given is idle."""
    given = {"flock": ("locked\n", 0), "compute-apps": ("", 0), "query-gpu": ("0, 4, 0\n", 0)}
    given |= {name.replace("_", "-"): answer for name, answer in answers.items()}
    found = {}
    for request in ready.before("before x", NONE, "", ("all_gather_perf",)):
        for word, (text, rc) in given.items():
            if word in request.key:
                found[request.key] = Frame(request.key, text.encode(), b"", rc, 0.0, 0.1)
    return found


def why_not(**answers: tuple[str, int]) -> tuple[str, str]:
    verdict = ready.why_not("before x", NONE, frames(**answers), bytes.decode)
    return ("", "") if verdict is None else (verdict.kind.value or verdict.error, verdict.reason)


def test_an_idle_host_is_free() -> None:
    assert why_not() == ("", "")


@pytest.mark.parametrize(
    ("answers", "kind", "says"),
    [
        (
            {"compute_apps": ("mallory, 4711, 71234, python3 train.py\n", 0)},
            "busy",
            "python3 train.py (pid 4711 of mallory, 71234 MiB)",
        ),
        (
            {"compute_apps": ("unknown, 1, [N/A], -\nbob, 2, 5, a\neve, 3, 5, b\n", 0)},
            "busy",
            "and 1 more",
        ),
        ({"query_gpu": ("0, 4, 0\n1, 40960, 0\n", 0)}, "busy", "GPU 1 holds 40,960 MiB"),
        ({"query_gpu": ("0, 4, 97\n", 0)}, "busy", "GPU 0 is 97 % busy"),
        ({"query_gpu": ("", 0)}, "check", "no GPU to prove idle"),
        ({"compute_apps": ("No devices were found\n", 6)}, "check", "nothing was launched"),
        ({"flock": ("20260101T000000Z-abcd\n", 75)}, "busy", "run 20260101T000000Z-abcd holds"),
        ({"flock": ("", 75)}, "busy", "another commcheck"),
        ({"flock": ("", 74)}, "check", "no /etc/machine-id"),
        ({"flock": ("", 127)}, "check", "cannot be locked"),
        ({"squeue": ("4711 mallory\n", 0)}, "busy", "Slurm runs job 4711 of mallory"),
        (
            {"xmit": ("0 mlx5_0/1 400 0 0\n1 mlx5_0/1 400 0 500000000\n", 0)},
            "busy",
            "mlx5_0/1 receives 16.0 Gb/s of 400",
        ),
    ],
)
def test_what_is_not_proven_idle_is_left_alone(
    answers: dict[str, tuple[str, int]], kind: str, says: str
) -> None:
    assert why_not(**answers)[0] == kind
    assert says in why_not(**answers)[1]


def test_an_answer_that_is_not_there_is_no_idle_host() -> None:
    asked = frames()
    for key in list(asked):
        left = {other: frame for other, frame in asked.items() if other != key}
        assert ready.why_not("before x", NONE, left, bytes.decode) is not None


def test_scripts_take_values_as_arguments_only() -> None:
    for script in (
        scripts.LOCK,
        scripts.APPS,
        scripts.NPUS,
        scripts.NICS,
        scripts.SLURM,
        scripts.FIND,
        scripts.SWEEP,
        scripts.HOLD,
    ):
        assert "{" not in script.replace("${", "").replace("{ ", "")
    for request in ready.before("before x", NONE, "/opt/x", ("a",)):
        assert isinstance(request, Request)
