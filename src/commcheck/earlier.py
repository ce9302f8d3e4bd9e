"""What an earlier run of commcheck read on the same host since the same boot: hours for nothing.

Counters say little at one moment and much as a difference. The last reading of an earlier run
stands in its frames, so the difference to it costs the host nothing. The frames that are used are
copied into the later run under the phase ``earlier``: it can be judged again without the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from commcheck.check import EARLIER
from commcheck.collect.base import SUBJECTS, Frame, State
from commcheck.errors import RunFolderError
from commcheck.lazy import dataclass
from commcheck.report.cleaning import decode
from commcheck.report.find import EVENTS
from commcheck.report.folder import RunFolder

MOST_RUNS: Final = 8
"""Earlier runs that are looked into for one host: with a limit, most runs lack most hosts."""


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """The runs before this one in the same folder, the newest first."""

    folders: tuple[RunFolder, ...] = field(default=())

    @classmethod
    def beside(cls, run: Path) -> EarlierRuns:
        """Those beside ``run``, which is left out. A folder that cannot be listed has none."""
        try:
            names = sorted((each.name for each in run.parent.iterdir()), reverse=True)
        except OSError:
            return cls()
        paths = [run.parent / name for name in names if name < run.name]
        # An analysis of files has events, and no answer of any host.
        runs = (
            path
            for path in paths
            if not path.is_symlink() and (path / EVENTS).is_file() and (path / "frames").is_dir()
        )
        return cls(tuple(RunFolder(path) for path, _ in zip(runs, range(MOST_RUNS), strict=False)))

    def frames(self, host: str, boot_id: str, keys: Iterable[str]) -> tuple[Frame, ...]:
        """The newest frames of ``keys`` since the boot, renamed to the phase ``earlier``.

        ``keys``: of commands at the end of a visit. A counter starts anew at boot, so without a
        boot id, or with another, there is nothing to compare with.
        """
        wanted = frozenset(keys)
        if not boot_id or not wanted:
            return ()
        for folder in self.folders:
            found = _of_run(folder, host, boot_id, wanted)
            if found:
                return found
        return ()


def watched(frames: Iterable[str]) -> tuple[str, ...]:
    """Of the keys of a visit's frames those of commands that ran at both its ends."""
    keys = set(frames)
    return tuple(
        f"end: {command}"
        for phase, _, command in (key.partition(": ") for key in sorted(keys))
        if phase == "start" and f"end: {command}" in keys
    )


def _of_run(
    folder: RunFolder, host: str, boot_id: str, wanted: frozenset[str]
) -> tuple[Frame, ...]:
    booted, found = False, {}
    try:
        for frame in folder.frames(host, of=(SUBJECTS, "end: ")):
            if frame.key == SUBJECTS:
                booted = f"boot_id {boot_id}" in decode(frame.stdout).split("\n")
                if not booted:
                    return ()
            elif frame.key in wanted and frame.state is State.DONE:
                found[frame.key] = frame
    except (RunFolderError, OSError):
        return ()  # a damaged record of then must not cost the run of today
    if not booted:
        return ()
    return tuple(
        replace(frame, key=f"{EARLIER}: {key.partition(': ')[2]}") for key, frame in found.items()
    )
