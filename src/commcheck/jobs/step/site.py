"""What the inventory says of how Python and torch are found for a training step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from commcheck.check import Key, expects
from commcheck.jobs.site import JOB_ENV, read_words
from commcheck.model import Wanted

_PROGRAM: Final = re.compile(r"(?:/[A-Za-z0-9_.+-]+)+|[A-Za-z0-9_.+][A-Za-z0-9_.+-]*")


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


@dataclass(frozen=True, slots=True)
class StepSite:
    """What is started, and with which environment."""

    python: Wanted[str] = expects(PYTHON)
    environment: Wanted[tuple[str, ...]] = expects(ENVIRONMENT)
    env: Wanted[tuple[tuple[str, str], ...]] = expects(JOB_ENV)
