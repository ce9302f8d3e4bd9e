"""Is a host free for a run, and what is there to run with? What is asked, and what it means. Pure.

A host counts as free only when everything says so: no process on an accelerator, none that hides
in another PID namespace and holds memory, and no other commcheck. Else it is skipped, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from commcheck.collect.base import Frame, Request, State
from commcheck.command import Command, Output
from commcheck.counters import Counters
from commcheck.errors import Unjudgeable
from commcheck.formats.rdma_counters import HW_COUNTERS
from commcheck.jobs import scripts
from commcheck.model import Kind, Machine, Status, Verdict
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

_MEMORY_MIB: Final = 1500.0
_LOAD_PERCENT: Final = 5.0
"""An idle GPU holds a few hundred MiB for the driver. Source: nvidia-smi of idle H100 and A100."""

_NPU_MEMORY_MB: Final = 1500.0

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


def before(at: str, machine: Machine, folder: str, names: Iterable[str]) -> tuple[Request, ...]:
    """What is asked of a host before anything is launched on it; the last one waits.

    ``folder``: where the inventory says that the benchmarks are, or "". ``names``: of programs.
    """
    commands = [
        _sh(scripts.LOCK, "/etc/machine-id", f"{HOLD_S:.0f}"),
        *_idle(machine),
        *_to_launch(folder, names),
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
        _sh(scripts.FIND, folder, ":".join(USUAL), "mpirun", "srun", *names),
    )


_HOLD: Final = _sh(scripts.HOLD, f"{HOLD_S:.0f}", limit_s=HOLD_S)


def after(at: str, machine: Machine) -> tuple[Request, ...]:
    """What is asked once nothing runs any more: counters again, and what was left behind."""
    commands = (_sh(scripts.SWEEP, limit_s=30.0), *_counters(machine))
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
_NPUS: Final = Command(("npu-smi", "info"), timeout_s=30.0)


def _idle(machine: Machine) -> tuple[Command, ...]:
    return (_NPUS,) if machine.platform == "ascend" else (_APPS, _LOAD)


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
    """Which MPI ``mpirun --version`` belongs to; "" where it does not say."""
    match = re.search(r"\(Open MPI\) (\d+)|\(PRRTE\)|Open MPI v?(\d+)", text)
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
        return _error("CommandNotRun", "not recorded: the host was not asked whether it is free")
    output, _ = answer
    if output.rc == 0:
        return None
    if output.rc == 75:
        runs = ", ".join(line for line in output.text.split() if line)
        by = f"commcheck run {runs}" if runs else "another commcheck, of another user perhaps"
        return busy(f"{by} holds the host's lock (flock on /etc/machine-id)")
    what = "has no /etc/machine-id" if output.rc == 74 else "cannot be locked"
    return _error("CommandFailed", f"the host {what}: {output.complaint}; nothing was launched")


def _busy(machine: Machine, outputs: _Outputs) -> Verdict | None:
    if machine.platform == "ascend":
        answer = outputs.get(str(_NPUS))
        if answer is None or answer[0].rc != 0:
            return _not_known("npu-smi info", answer)
        return npus_busy(answer[0].text)
    apps, load = _script(outputs, scripts.APPS), outputs.get(str(_LOAD))
    if apps is None or apps[0].rc != 0:
        return _not_known("nvidia-smi --query-compute-apps", apps)
    if load is None or load[0].rc != 0:
        return _not_known("nvidia-smi --query-gpu", load)
    return apps_busy(apps[0].text) or load_busy(load[0].text)


def _not_known(what: str, answer: tuple[Output, State] | None) -> Verdict:
    said = answer[0].complaint if answer else "it was not run"
    return _error(
        "NotProvenIdle",
        f"{what} does not say whether the accelerators are idle: {said}; nothing was launched",
    )


def apps_busy(text: str) -> Verdict | None:
    """Compute processes: ``owner, pid, MiB, name`` a line."""
    told = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",", 3)]
        if len(cells) == 4:
            owner, pid, memory, name = cells
            holds = f", {memory} MiB" if memory.isdigit() else ""
            told.append(f"{name or '-'} (pid {pid} of {owner}{holds})")
    if not told:
        return None
    more = f" and {len(told) - 2} more" if len(told) > 2 else ""
    return busy(f"a job runs on its GPUs: {', '.join(told[:2])}{more}")


def load_busy(text: str) -> Verdict | None:
    """GPUs in use by a process that is not listed: ``index, MiB, percent`` a line."""
    rows = 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 3 or not cells[0].isdigit():
            continue
        rows += 1
        memory, percent = (_number(cell) for cell in cells[1:])
        if memory is not None and memory >= _MEMORY_MIB:
            return busy(
                f"GPU {cells[0]} holds {memory:,.0f} MiB and lists no process: one in another "
                "container, perhaps"
            )
        if percent is not None and percent >= _LOAD_PERCENT:
            return busy(f"GPU {cells[0]} is {percent:.0f} % busy and lists no process")
    if rows:
        return None
    return _error("NotProvenIdle", "nvidia-smi lists no GPU to prove idle; nothing was launched")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_NPU_ROW: Final = re.compile(r"\|\s*(\d+)\s+(\d+)\s*\|\s*(\d+)\s*\|\s*(\S+)\s*\|\s*(\d+)\s*\|")
_NPU_FREE: Final = re.compile(r"No running processes found in NPU (\d+)")


def npus_busy(text: str) -> Verdict | None:
    """The process table of ``npu-smi info``; it names no owner."""
    _, mark, table = text.partition("Process id")
    if not mark:
        return _error("NotProvenIdle", "npu-smi info shows no process table; nothing was launched")
    rows = [match for match in map(_NPU_ROW.match, table.splitlines()) if match]
    if rows:
        told = ", ".join(f"{row[4]} (pid {row[3]}, NPU {row[1]}, {row[5]} MB)" for row in rows[:2])
        more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
        return busy(f"a job runs on its NPUs: {told}{more}")
    if _NPU_FREE.search(table):
        return None
    return _error("NotProvenIdle", "npu-smi info names no NPU as free; nothing was launched")


def busy(reason: str) -> Verdict:
    """Nothing is launched beside somebody's work."""
    return Verdict(status=Status.SKIP, kind=Kind.BUSY, reason=f"busy: {reason}")


def _error(name: str, reason: str) -> Verdict:
    return Verdict(status=Status.ERROR, kind=Kind.CHECK, reason=reason, error=name)


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
                read = HW_COUNTERS.parse(output_of(frame, decode))
            except Unjudgeable:
                continue
            values.update(
                {f"{rail.label}/{name}": read.values[name] for name in LOSS if name in read.values}
            )
    return Counters(values)


def left_behind(at: str, frames: Mapping[str, Frame], decode: Decode) -> tuple[int, Sequence[str]]:
    """How many processes of ours had to be ended, and the pids of those that resist."""
    for key, frame in frames.items():
        if key.startswith(f"{at}: ") and _is_script(key.removeprefix(f"{at}: "), scripts.SWEEP):
            words = output_of(frame, decode).text.split()
            return (int(words[0]) if words and words[0].isdigit() else 0), words[1:]
    return 0, ()
