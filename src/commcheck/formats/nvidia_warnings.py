"""What ``nvidia-smi`` says beside its answer: a GPU whose InfoROM is corrupted.

It is told by a line among the others and by exit code 14, and the answer is whole all the same.
Source: nvidia-smi manual, return value; https://github.com/NVIDIA/gpu-operator/issues/285
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commcheck.command import Output
from commcheck.lazy import regex

_LINE: Final = regex(r"WARNING: infoROM is corrupted at gpu ([0-9A-Fa-f:.]{7,16})\s*")
_CODE: Final = 14


def corrupted(output: Output) -> tuple[str, ...]:
    """PCI addresses of the GPUs, as told."""
    lines = f"{output.text}\n{Output(output.stderr).text}".split("\n")
    return tuple(dict.fromkeys(m[1].lower() for each in lines if (m := _LINE.fullmatch(each))))


def without_warnings(output: Output) -> Output:
    """The answer alone. An exit code 14 that no line explains stays."""
    if not corrupted(output):
        return output
    kept = "".join(
        line for line in output.text.splitlines(keepends=True) if not _LINE.fullmatch(line)
    )
    return replace(output, stdout=kept, rc=0 if output.rc == _CODE else output.rc)
