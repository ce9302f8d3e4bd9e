"""Starts a profiled training on the host it is carried to, and clears up. Knows no commcheck.

``python -c STARTER TEXTS OPTIONS`` makes a private folder, starts the ranks of ``train_step.py``
under torchrun, or the site's own command with the hook of ``wrapper.py``, prints what the ranks
told and their traces, and removes the folder. What it prints, a line each: ``step`` and JSON,
``problem`` and JSON, ``left-out RANK BYTES``, ``trace RANK`` with a piece of the packed trace in
base64, ``traced RANK BYTES``. Needs Python 3.8.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

VARIABLE = "COMMCHECK_STEP_FOLDER"
_PIECE = 3000  # bytes of a trace in one line
_NO_TORCH, _FAILED = 3, 4
_MEET_S = 120  # the hosts of one training wait so long for each other
_LOOK_S = 0.2
_OTHERS_S = 60.0  # ranks meet in every step: the last trace is there so much after the first
_LEAVE_S = 10.0
_LEAST_FREE = 1 << 16  # bytes; no trace is so small


def launch(texts: Mapping[str, str], options: Mapping[str, Any]) -> int:
    """Start what is to be profiled, wait for it, print what it leaves, and remove all of it."""
    os.environ.update(options["env"])
    own = options.get("command")
    if not own and importlib.util.find_spec("torch") is None:
        _say({"missing": "torch", "python": sys.executable})
        return _NO_TORCH
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    try:
        with private_folder() as folder:
            failed = (_own if own else _ranks)(folder, texts, options)
            _print_told(folder)
            if failed:
                sys.stderr.write((folder / "ranks.log").read_text(errors="replace")[-6000:])
                return _FAILED
            for path in traces_in(folder):
                _print_trace(path, options["most_bytes"])
    except OSError as error:
        _say({"what": f"its temporary folder cannot be used: {error}"})
        return _FAILED
    return 0


def _leave(number: int, _frame: object) -> NoReturn:
    # timeout(1) passes on what it is sent: the second one must not break off the clearing up.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder that is gone afterwards, however this process ends.

    A shell waits for that end. It carries no mark and no variable of ours: what is swept with
    SIGKILL a moment after SIGTERM leaves it the folder. Raises ``OSError``.
    """
    folder = Path(tempfile.mkdtemp(prefix="commcheck-step-"))
    guard = None
    try:
        guard = subprocess.Popen(  # noqa: S603 - no word is anybody else's
            ["/bin/sh", "-c", _GUARD, "sh", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
        )
        yield folder
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)
        if guard is not None:
            guard.communicate()


_GUARD = """
read -r over
n=0
while [ -e "$1" ] && [ "$n" -lt 50 ]; do
  rm -rf "$1"
  n=$((n + 1))
  sleep 0.2
done
"""
"""$1 the folder. Whoever still writes there may make it fail; they are swept meanwhile."""


def _ranks(folder: Path, texts: Mapping[str, str], options: Mapping[str, Any]) -> bool:
    """Our own training, as this host's part of it. True where it failed."""
    script = folder / "train_step.py"
    script.write_text(texts["train_step.py"])
    place = options["place"]
    # Torch before 2.0 knows these words with underscores only.
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes", str(place["nodes"])]
    words += ["--node_rank", str(place["node"]), "--master_addr", place["master"]]
    words += ["--master_port", str(place["port"] or _free_port())]
    words += ["--rdzv_conf", f"timeout={_MEET_S}"]
    words += ["--nproc_per_node", str(options["ranks"]), str(script), json.dumps(options)]
    child = _started(words, folder, {}, None)
    try:
        rc = child.wait(options["limit_s"])
    except subprocess.TimeoutExpired:
        _say({"what": f"the ranks did not end within {options['limit_s']:g} s"})
        rc = _FAILED
    finally:
        child.kill()
        child.wait()
        end_all(folder)
    if rc != 0 and _is_full(folder):
        _say({"what": no_room(folder)})
    return rc != 0


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _started(
    words: list[str], folder: Path, env: Mapping[str, str], at: str | None
) -> subprocess.Popen[bytes]:
    # torchrun and inductor would leave folders of their own in the temporary one.
    given = {**os.environ, **env, VARIABLE: str(folder), "TMPDIR": str(folder)}
    with (folder / "ranks.log").open("wb") as out:
        return subprocess.Popen(  # noqa: S603
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=given, cwd=at
        )


# --- the site's own command ---------------------------------------------------------------------


def _own(folder: Path, texts: Mapping[str, str], options: Mapping[str, Any]) -> bool:
    """A few steps of the site's own training. True where it left no trace."""
    place = options["place"]
    env = hooked(folder, texts["wrapper.py"], options["skip"], options["steps"])
    if place["nodes"] > 1:
        # torchrun takes what its words leave open from PET_*; others read the plain names.
        told = {"NNODES": place["nodes"], "NODE_RANK": place["node"]}
        told.update(MASTER_ADDR=place["master"], MASTER_PORT=place["port"])
        env.update({at + name: str(told[name]) for name in told for at in ("", "PET_")})
    try:
        child = _started(options["command"], folder, env, options["folder"] or None)
    except OSError as error:
        _say({"what": f"{options['command'][0]} cannot be started: {error}"})
        return True
    try:
        wait_for_traces(child, options["limit_s"], folder)
    finally:
        end_gently(child, folder)
    if traces_in(folder):
        return False
    _say({"what": why_none(options["command"][0], child.returncode, options, folder)})
    return True


def hooked(folder: Path, wrapper: str, skip: int, steps: int) -> dict[str, str]:
    """Put the hook into the folder; variables by which every Python of a command finds it."""
    hook = folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(wrapper)
    behind = os.environ.get("PYTHONPATH", "")
    return {
        "PYTHONPATH": f"{hook}{os.pathsep}{behind}" if behind else str(hook),
        VARIABLE: str(folder),
        "COMMCHECK_STEP_SKIP": str(skip),
        "COMMCHECK_STEP_STEPS": str(steps),
    }


def wait_for_traces(child: subprocess.Popen[bytes], limit_s: float, folder: Path) -> None:
    """Until the command ends, or every rank that began has left its trace."""
    end = time.monotonic() + limit_s
    while child.poll() is None and time.monotonic() < end:
        time.sleep(_LOOK_S)
        began = list(folder.glob("rank*.began"))
        over = traces_in(folder) + list(folder.glob("rank*.problem"))
        if not over:
            continue
        end = min(end, time.monotonic() + _OTHERS_S) if len(over) == 1 else end
        ranks = [int(text) for each in began for text in [each.read_text().strip()] if text]
        if len(over) >= max([len(began), *ranks]):
            return


def traces_in(folder: Path) -> list[Path]:
    """The traces that are whole."""
    return sorted(folder.glob("rank*[0-9].json.gz"))


def why_none(name: str, rc: int | None, options: Mapping[str, Any], folder: Path) -> str:
    """Why a command left no trace. ``options``: with ``skip`` and ``steps``."""
    if _is_full(folder):
        return f"{name} left no trace: {no_room(folder)}"
    said = [each.read_text().strip() for each in sorted(folder.glob("*.problem"))]
    if said:
        return f"{name} left no trace: {said[0]}"
    if any(folder.glob("rank*.began")):
        what = f"it ended before {options['steps']} steps were profiled"
    else:
        what = (
            f"no process of it made {options['skip']} steps of a torch optimizer; it must train "
            "with torch 2.0 or later, in a Python that is not started with -S, -E or -I"
        )
    return f"{name} left no trace (exit code {rc}): {what}"


def no_room(folder: Path) -> str:
    """What is said where nothing can be written any more."""
    return f"no room is left in {folder.parent}, where traces go: TMPDIR may name another folder"


def _is_full(folder: Path) -> bool:
    return shutil.disk_usage(str(folder)).free < _LEAST_FREE


# --- the end ------------------------------------------------------------------------------------


def end_gently(child: subprocess.Popen[bytes], folder: Path) -> None:
    """End a command and all that it started, at first so that it can clear up."""
    child.terminate()  # which knows whether its number may be another's by now
    for pid in _with(folder):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + _LEAVE_S
    while _with(folder) and time.monotonic() < end:
        child.poll()  # or it would stay as a zombie
        time.sleep(_LOOK_S / 4)
    end_all(folder)
    child.kill()
    child.wait()


def end_all(folder: Path) -> None:
    """End what has the folder in its environment."""
    for pid in _with(folder):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _with(folder: Path) -> list[int]:
    """Processes of the folder: torchrun gives every rank a session of its own."""
    variable = f"{VARIABLE}={folder}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if variable in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


# --- what is printed ----------------------------------------------------------------------------


def _print_told(folder: Path) -> None:
    """What the first rank here told of the step, and what went wrong on any."""
    told = [each.read_text() for each in sorted(folder.glob("rank*.told"))]
    for line in [line for line in told if line.startswith("step")][:1]:
        sys.stdout.write(line)
    for line in told:
        if line.startswith("problem"):
            sys.stdout.write(line)


def _print_trace(path: Path, most_bytes: int) -> None:
    rank = path.name[len("rank") :].partition(".")[0]
    data = path.read_bytes()
    if len(data) > most_bytes:
        sys.stdout.write(f"left-out {rank} {len(data)}\n")
        return
    for at in range(0, len(data), _PIECE):
        piece = base64.b64encode(data[at : at + _PIECE]).decode()
        sys.stdout.write(f"trace {rank} {piece}\n")
    sys.stdout.write(f"traced {rank} {len(data)}\n")


def _say(told: Mapping[str, Any]) -> None:
    sys.stdout.write(f"problem {json.dumps(told)}\n")


if __name__ == "__main__":
    import zlib

    TEXTS = json.loads(zlib.decompress(base64.b64decode(sys.argv[1])))
    sys.exit(launch(TEXTS, json.loads(sys.argv[2])))
