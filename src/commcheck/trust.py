"""Whether a file that was found, and that nobody named, may decide what commcheck does."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def distrusted(path: Path) -> str:
    """Why a file or folder must not be followed, in words; "": it may be.

    It must belong to this user or to root, and not everybody may write it: whoever else can put a
    file there would choose what runs here, and with whose keys.
    """
    found = path.stat()
    if found.st_mode & stat.S_IWOTH:
        return f"everybody may write {path} (chmod o-w mends that)"
    if found.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to another user (uid {found.st_uid})"
    return ""
