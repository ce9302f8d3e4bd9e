"""Settings of a job, wherever they stand: values, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from commcheck.lazy import dataclass

Framework = Literal["deepspeed", "ddp", "megatron", "fsdp"]
TITLES: Mapping[Framework, str] = {
    "deepspeed": "DeepSpeed",
    "ddp": "DDP",
    "megatron": "Megatron",
    "fsdp": "FSDP",
}

AUTO = "auto"
"""DeepSpeed under Hugging Face: the trainer fills it in (hidden size squared for buckets)."""

NOT_SET: Final = "not set"
OLD_NAME: Final = "backward_prefetch_policy"
"""FSDP's prefetch under Accelerate: nobody set it, or only under a name that is read no longer."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that was set, and where: ``ds_config.json:7``.

    ``is_known=False``: what stands there is computed elsewhere (``$TP``, ``args.bucket``), and
    ``value`` is its text: the default does not hold either.
    """

    value: object
    where: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set of one framework; what is not has the framework's default.

    ``where``: the file, or the processes. ``environ``: CUDA_DEVICE_MAX_CONNECTIONS, whether
    launches block, and what launchers set, as far as it is known; None: not known. ``runs``: seen
    on a running job. ``branches``: of a script, which gives some of them or others. ``elsewhere``:
    the settings stand in this file, which was not read. ``is_config``: fields and no flags; what
    is not named there a recipe decides, and no default holds.
    """

    framework: Framework
    where: str
    values: Mapping[str, Setting] = field(default_factory=dict)
    environ: Mapping[str, Setting] | None = None
    ranks: int | None = None
    runs: bool = False
    branches: bool = False
    elsewhere: str = ""
    is_config: bool = False

    def is_set(self, name: str) -> bool:
        """True where it is set at all."""
        return name in self.values

    def at(self, name: str) -> str:
        """Where it is set, or where it could be."""
        found = self.values.get(name)
        return found.where if found else self.where

    def number(self, name: str, default: float | None = None) -> float | None:
        """A number; the default where it is not set, None where it is ``auto`` or not known."""
        found = self.values.get(name)
        if found is None:
            return default
        is_number = isinstance(found.value, int | float) and not isinstance(found.value, bool)
        return float(found.value) if is_number else None  # type: ignore[arg-type] # is_number

    def flag(self, name: str, default: bool | None = None) -> bool | None:
        """A truth value; the default where not set, None where ``auto`` or not known."""
        found = self.values.get(name)
        if found is None:
            return default
        return found.value if isinstance(found.value, bool) else None

    def word(self, name: str) -> str:
        """A text in lower case; "" where it is not set."""
        found = self.values.get(name)
        return "" if found is None else str(found.value).lower()
