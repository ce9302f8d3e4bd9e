"""What the inventory says of how Python and torch are found for a training step."""

from __future__ import annotations

from typing import Any, Final

from commcheck.check import Key, expects, keys_of
from commcheck.jobs.job import Member
from commcheck.jobs.site import INTERFACE, JOB_ENV, read_folder, read_words
from commcheck.lazy import dataclass, regex
from commcheck.model import Wanted

_PROGRAM: Final = regex(r"(?:/[A-Za-z0-9_.+-]+)+|[A-Za-z0-9_.+][A-Za-z0-9_.+-]*")


def read_program(value: object) -> str:
    """A program: an absolute path, or a name that is looked for on PATH."""
    if isinstance(value, str) and len(value) <= 255 and _PROGRAM.fullmatch(value):
        return value
    raise ValueError(f"wanted an absolute path or a name on PATH, not {value!r}")


PYTHON: Final = Key(
    name="commcheck_train_python",
    read=read_program,
    defaults={"": "python3"},
    source="the first on PATH",
    meaning="Python that has the torch of the training jobs",
)
ENVIRONMENT: Final[Key[tuple[str, ...]]] = Key(
    name="commcheck_train_environment",
    read=read_words,
    defaults={"": ()},
    source="none: Python is started as it is",
    meaning="words before Python that enter its environment or container, such as "
    "docker exec trainer, apptainer exec --nv IMAGE, conda run -n train",
)
COMMAND: Final[Key[tuple[str, ...]]] = Key(
    name="commcheck_train_command",
    read=read_words,
    defaults={"": ()},
    source="none: commcheck's own training",
    meaning="the start of the site's own training, whose steps are profiled instead of "
    "commcheck's, such as torchrun --nproc-per-node 8 train.py",
)
FOLDER: Final[Key[str]] = Key(
    name="commcheck_train_folder",
    read=read_folder,
    defaults={"": ""},
    source="the login's home",
    meaning="folder in which commcheck_train_command is started",
)


@dataclass(frozen=True, slots=True)
class StepSite:
    """What is started, and with which environment."""

    python: Wanted[str] = expects(PYTHON)
    environment: Wanted[tuple[str, ...]] = expects(ENVIRONMENT)
    command: Wanted[tuple[str, ...]] = expects(COMMAND)
    folder: Wanted[str] = expects(FOLDER)
    env: Wanted[tuple[tuple[str, str], ...]] = expects(JOB_ENV)
    interface: Wanted[str | None] = expects(INTERFACE)


def site_of(member: Member) -> StepSite:
    """What the inventory says of a host's Python."""
    platform = member.machine.platform
    found: dict[str, Any] = {
        name: key.on(member.host, platform) for name, key in keys_of(StepSite).items()
    }
    return StepSite(**found)
