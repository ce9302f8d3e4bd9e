"""Compiled templates, kept where Python keeps its own: a third of a short run is compiling them."""

from __future__ import annotations

import contextlib
import sys
from hashlib import sha256
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, FileSystemBytecodeCache


class _Cache(FileSystemBytecodeCache):
    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):  # not ours to write to, or full: compiled next time too
            super().dump_bytecode(bucket)


def cache_beside(templates: Path, settings: Path) -> jinja2.BytecodeCache | None:
    """A cache in the templates' ``__pycache__``; None where Python is told to write none.

    ``settings``: the file that sets up the environment. The library only notices that a template
    changed; code that was compiled under other settings must not be taken either.
    """
    if sys.dont_write_bytecode:
        return None
    folder = templates / "__pycache__"
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        form = sha256(settings.read_bytes() + jinja2.__version__.encode()).hexdigest()[:16]
        return _Cache(str(folder), f"{form}-%s.cache")
    return None
