"""Is a host free for a run, and what is there to run with? What is asked, and what it means. Pure.

A host counts as free only when everything says so: no process on an accelerator, none that hides
in another PID namespace and holds memory, and no other commcheck. Else it is skipped, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from commcheck.collect.base import Frame, Request, State
from commcheck.command import Command, Output
from commcheck.counters import Counters
from commcheck.errors import Unjudgeable
from commcheck.formats.rdma_counters import HW_COUNTERS
from commcheck.jobs import scripts
from commcheck.jobs.idle import (
    apps_busy,
    busy,
    load_busy,
    nics_busy,
    npus_busy,
    slurm_busy,
    unknown,
)
from commcheck.lazy import dataclass
from commcheck.model import Kind, Machine, Verdict
from commcheck.readings import Decode, output_of

HOLD_S: Final = 4 * 3600.0
"""No check loads hosts for longer; the lock is let go of then."""

USUAL: Final = (
    "/opt/nccl-tests/build",
    "/opt/nccl_tests/build",
    "/opt/rccl-tests/build",
    "/usr/local/nccl-tests/build",
    "/usr/local/Ascend/ascend-toolkit/latest/tools/hccl_test/bin",
    "/usr/local/Ascend/cann/tools/hccl_test/bin",
    "/usr/local/mpi/bin",
    "/usr/local/openmpi/bin",
    "/usr/local/mpich/bin",
    "/usr/mpi/gcc/openmpi/bin",
    "/opt/amazon/openmpi/bin",
    "/opt/hpcx/ompi/bin",
)
"""Where benchmarks and launchers usually are when they are not on PATH."""

LOSS: Final = (
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_slow_restart",
    "implied_nak_seq_err",
    "out_of_buffer",
    "to_retransmits",
    "seq_err_naks_rcvd",
    "missing_resp",
    "oos_drop_count",
)
"""Counters that grow where packets are lost.

Sources: NVIDIA mlx5 counters.rst, and the bnxt_re driver's hw_counters.
"""


def _sh(script: str, *words: str, limit_s: float = 15.0) -> Command:
    return Command(("sh", "-c", script, "sh", *words), timeout_s=limit_s)


def before(
    at: str, machine: Machine, folder: str, names: Iterable[str], asks: Iterable[Command] = ()
) -> tuple[Request, ...]:
    """What is asked of a host before anything is launched on it; the last one waits.

    ``folder``: where the inventory says that the benchmarks are, or "". ``names``: of programs.
    ``asks``: what else the job wants to know.
    """
    commands = [
        _sh(scripts.LOCK, "/etc/machine-id", f"{HOLD_S:.0f}"),
        *_idle(machine),
        *_to_launch(folder, names),
        *asks,
        *_counters(machine),
        _HOLD,
    ]
    return tuple(Request(command, at) for command in commands)


def at_head(at: str, folder: str, names: Iterable[str]) -> tuple[Request, ...]:
    """The same of a host that only launches: others may work on it meanwhile."""
    return tuple(Request(command, at) for command in (*_to_launch(folder, names), _HOLD))


def _to_launch(folder: str, names: Iterable[str]) -> tuple[Command, ...]:
    return (
        Command(("mpirun", "--version")),
        Command(("srun", "--version")),
        _sh(scripts.FIND, folder, ":".join(USUAL), "mpirun", "srun", "kubectl", *names),
    )


_HOLD: Final = _sh(scripts.HOLD, f"{HOLD_S:.0f}", limit_s=HOLD_S)


def after(at: str, machine: Machine) -> tuple[Request, ...]:
    """What is asked once nothing runs any more: counters again, and what was left behind."""
    load = () if machine.platform == "ascend" else (_LOAD,)
    commands = (_sh(scripts.SWEEP, limit_s=30.0), *_counters(machine), *load)
    return tuple(Request(command, at) for command in commands)


_APPS: Final = _sh(scripts.APPS, "/proc/")
_LOAD: Final = Command(
    (
        "nvidia-smi",
        "--query-gpu=index,memory.used,utilization.gpu",
        "--format=csv,noheader,nounits",
    ),
    timeout_s=15.0,
)
_NPUS: Final = _sh(scripts.NPUS, "/proc/", limit_s=30.0)
_NICS: Final = _sh(scripts.NICS, "/sys/class/infiniband")
_SLURM: Final = _sh(scripts.SLURM)


def _idle(machine: Machine) -> tuple[Command, ...]:
    accelerators = (_NPUS,) if machine.platform == "ascend" else (_APPS, _LOAD)
    return (*accelerators, _NICS, _SLURM)


def _counters(machine: Machine) -> Iterable[Command]:
    for rail in machine.rails:
        if rail.present:
            for command in HW_COUNTERS.commands:
                yield command.on(rail)


# --- what the answers mean ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What a host has to run with, and where."""

    launchers: frozenset[str]
    programs: Mapping[str, str]


def found(at: str, frames: Mapping[str, Frame], decode: Decode) -> Found:
    """Read the answers to ``before``. ``decode`` turns bytes into text."""
    outputs = _outputs(at, frames, decode)
    programs: dict[str, str] = {}
    launchers: set[str] = set()
    for words, (output, _) in outputs.items():
        if _is_script(words, scripts.FIND):
            programs = dict(
                line.split(" ", 1) for line in output.text.splitlines() if line.count(" ") == 1
            )
        elif words == "mpirun --version" and output.rc == 0:
            launchers.add(mpi_kind(output.text))
        elif words == "srun --version" and output.rc == 0:
            launchers.add("srun")
    if "mpirun" in programs and not any(name != "srun" for name in launchers):
        # Found in a usual place and not on PATH: which one it is, its folder tells.
        launchers.add("mpich" if "mpich" in programs["mpirun"] else "openmpi")
    return Found(frozenset(launchers - {""}), programs)


def told(
    at: str, asks: Iterable[Command], frames: Mapping[str, Frame], decode: Decode
) -> tuple[Output, ...]:
    """What was answered to a job's own questions; one that was not, failed."""
    keys = [Request(command, at).key for command in asks]
    return tuple(
        output_of(frames[key], decode) if key in frames else Output("", "not recorded", 1)
        for key in keys
    )


def why_not(
    at: str, machine: Machine, frames: Mapping[str, Frame], decode: Decode
) -> Verdict | None:
    """Why nothing may be launched on the host, from the answers to ``before``; None: it is free."""
    outputs = _outputs(at, frames, decode)
    return _lock(outputs) or _busy(machine, outputs)


def _outputs(at: str, frames: Mapping[str, Frame], decode: Decode) -> _Outputs:
    return {
        key.removeprefix(f"{at}: "): (output_of(frame, decode), frame.state)
        for key, frame in frames.items()
        if key.startswith(f"{at}: ")
    }


def mpi_kind(text: str) -> str:
    """Which MPI ``mpirun --version`` belongs to; "" where it does not say.

    Open MPI 4 calls itself OpenRTE where it is started by another name than mpirun.
    """
    match = re.search(r"\((?:Open MPI|OpenRTE)\) (\d+)|\(PRRTE\)|Open MPI v?(\d+)", text)
    if match:
        major = int(match[1] or match[2] or 5)
        return "openmpi5" if major >= 5 else "openmpi"
    return "mpich" if re.search(r"HYDRA|Intel\(R\) MPI|MPICH", text) else ""


_Outputs = Mapping[str, tuple[Output, State]]


def _is_script(words: str, script: str) -> bool:
    head = script.strip()[:24]
    return words.startswith("sh -c ") and head in words[:80]


def _script(outputs: _Outputs, script: str) -> tuple[Output, State] | None:
    return next((each for words, each in outputs.items() if _is_script(words, script)), None)


def _lock(outputs: _Outputs) -> Verdict | None:
    answer = _script(outputs, scripts.LOCK)
    if answer is None:
        return unknown("CommandNotRun", "not recorded: the host was not asked whether it is free")
    output, _ = answer
    if output.rc == 0:
        return None
    if output.rc == 75:
        runs = ", ".join(line for line in output.text.split() if line)
        by = f"commcheck run {runs}" if runs else "another commcheck, of another user perhaps"
        return busy(f"{by} holds the host's lock (flock on /etc/machine-id)")
    what = "has no /etc/machine-id" if output.rc == 74 else "cannot be locked"
    return unknown("CommandFailed", f"the host {what}: {output.complaint}; nothing was launched")


def _busy(machine: Machine, outputs: _Outputs) -> Verdict | None:
    if machine.platform == "ascend":
        answer = _script(outputs, scripts.NPUS)
        if answer is None or answer[0].rc != 0:
            return _not_known("npu-smi info", answer)
        return npus_busy(answer[0].text) or _others_busy(outputs)
    apps, load = _script(outputs, scripts.APPS), outputs.get(str(_LOAD))
    if apps is None or apps[0].rc != 0:
        return _not_known("nvidia-smi --query-compute-apps", apps)
    if load is None or load[0].rc != 0:
        return _not_known("nvidia-smi --query-gpu", load)
    return apps_busy(apps[0].text) or load_busy(load[0].text) or _others_busy(outputs)


def _others_busy(outputs: _Outputs) -> Verdict | None:
    """What speaks against a launch besides the accelerators. Without an answer, nothing does."""
    for script, busy_by in ((scripts.NICS, nics_busy), (scripts.SLURM, slurm_busy)):
        answer = _script(outputs, script)
        found = busy_by(answer[0].text) if answer is not None and answer[0].rc == 0 else None
        if found is not None:
            return found
    return None


def _not_known(what: str, answer: tuple[Output, State] | None) -> Verdict:
    said = answer[0].complaint if answer else "it was not run"
    return unknown(
        "NotProvenIdle",
        f"{what} does not say whether the accelerators are idle: {said}; nothing was launched",
    )


# --- counters -----------------------------------------------------------------------------------


def counters(at: str, machine: Machine, frames: Mapping[str, Frame], decode: Decode) -> Counters:
    """Loss counters of all rails together, as ``mlx5_0/out_of_sequence``. Empty: none was read."""
    values: dict[str, int] = {}
    for rail in machine.rails:
        for command in HW_COUNTERS.commands if rail.present else ():
            frame = frames.get(Request(command.on(rail), at).key)
            if frame is None:
                continue
            try:
                read = HW_COUNTERS.read(output_of(frame, decode))
            except Unjudgeable:
                continue
            values.update(
                {f"{rail.label}/{name}": read.values[name] for name in LOSS if name in read.values}
            )
    return Counters(values)


def still_held(at: str, frames: Mapping[str, Frame], decode: Decode) -> str:
    """Why the GPUs are not as idle as before, after the runs; "" where they are, or none says."""
    answer = _outputs(at, frames, decode).get(str(_LOAD))
    held = load_busy(answer[0].text) if answer is not None and answer[0].rc == 0 else None
    return held.reason.removeprefix("busy: ") if held is not None and held.kind is Kind.BUSY else ""


def left_behind(at: str, frames: Mapping[str, Frame], decode: Decode) -> tuple[int, Sequence[str]]:
    """How many processes of ours had to be ended, and the pids of those that resist."""
    for key, frame in frames.items():
        if key.startswith(f"{at}: ") and _is_script(key.removeprefix(f"{at}: "), scripts.SWEEP):
            words = output_of(frame, decode).text.split()
            return (int(words[0]) if words and words[0].isdigit() else 0), words[1:]
    return 0, ()
