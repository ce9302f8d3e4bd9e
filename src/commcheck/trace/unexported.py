"""What a profiler left in a folder that is no trace yet, or no trace beside the traces of others.

The profiler writes raw data while the job runs, and its text afterwards: by a thread that may be
killed with the job, or by hand. Source: torch_npu and MindSpore, profiler.profiler.analyse; msprof,
"offline parsing".
Kineto writes ``NAME.json.tmp``, and gives it its name when all is written (libkineto,
output_json.cpp).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from commcheck.lazy import regex
from commcheck.trace import kerneltable, steptable
from commcheck.trace.source import Foreign

_RANKED: Final = regex(r".+_ascend_(?:pt|ms)")
_MSPROF: Final = regex(r"PROF_\w+")
OF_MSPROF: Final = regex(r"msprof_\w+\.json")
"""The trace that msprof writes."""


def unexported(top: Path) -> Mapping[Path, str]:
    """The folders, ``top`` too, without any text in them, and what is to be said of each."""
    found: dict[Path, str] = {}
    inside = [top, *(each for each in top.rglob("*") if each.is_dir())]
    ranked = [each for each in inside if _RANKED.fullmatch(each.name)]
    # A rank's folder has what msprof recorded for it inside.
    alone = [
        each
        for each in inside
        if _MSPROF.fullmatch(each.name) and not set(ranked) & set(each.parents)
    ]
    for folder in sorted((*ranked, *alone)):
        files = [each for each in folder.rglob("*") if each.is_file()]
        if files and not any(_is_text(each.name) for each in files):
            found[folder] = str(Foreign(str(folder), _why(folder, files)))
    return found


def unfinished(files: Iterable[Path]) -> dict[Path, str]:
    """The traces that their profiler began to write, and of which there is no whole one."""
    left = [each for each in files if each.name.endswith((".json.tmp", ".json.gz.tmp"))]
    what = "is what a profiler that was interrupted left of a trace; profile again"
    return {
        each: str(Foreign(str(each), what))
        for each in left
        if not each.with_name(each.name.removesuffix(".tmp")).exists()
    }


def tables_alone(files: Iterable[Path], chosen: Collection[Path]) -> dict[Path, str]:
    """The folders of ranks that hold tables, where what was chosen are the traces of others."""
    homes = {parent for each in chosen for parent in each.parents}
    what = "holds a table and no trace_view.json, as others do: it is not judged; give it by itself"
    return {
        folder: str(Foreign(str(folder), what))
        for each in files
        if chosen and (steptable.is_one(each.name) or kerneltable.is_one(each.name))
        for folder in each.parents
        if _RANKED.fullmatch(folder.name) and folder not in homes
    }


def _is_text(name: str) -> bool:
    is_trace = name.startswith("trace_view.json") or OF_MSPROF.fullmatch(name) is not None
    return is_trace or steptable.is_one(name) or kerneltable.is_one(name)


def _why(folder: Path, files: list[Path]) -> str:
    if _MSPROF.fullmatch(folder.name):
        how = f"msprof --export=on --output={folder}"
        return f"is not exported yet: {how} writes msprof_*.json"
    if any(each.suffix == ".db" and each.parent.name == "ASCEND_PROFILER_OUTPUT" for each in files):
        return "is exported as a database alone; profile with export_type Text, which is read here"
    library = "torch_npu" if folder.name.endswith("_pt") else "mindspore"
    # It takes the folder above, and writes those of all ranks there.
    call = f"from {library}.profiler.profiler import analyse; analyse('{folder.parent}')"
    return f'is not exported yet: python3 -c "{call}" writes trace_view.json'
