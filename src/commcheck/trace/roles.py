"""What a process group is for, by the framework's own description of it.

Sources: Megatron-LM core/parallel_state.py (group_desc), PyTorch DeviceMesh (``mesh_`` and the name
of the dimension) with the dimensions of torchtitan, DeepSpeed's sequence parallelism, MindSpeed.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from itertools import chain
from typing import Final

from commcheck.lazy import regex
from commcheck.trace import names
from commcheck.trace.names import POINT_TO_POINT, TINY_BYTES
from commcheck.trace.store import Device, Trace, members_of


class Role(StrEnum):
    """What is communicated, and so what can hide it."""

    TENSOR = "tensor-parallel"  # inside a layer: the next operation needs the result
    EXPERT = "expert-parallel"  # tokens to their experts and back
    CONTEXT = "context-parallel"  # keys and values of a sequence that several ranks hold
    PIPELINE = "pipeline"  # send and receive between stages, and the small that all do together
    UNTOLD = "undescribed"  # send and receive of a group that is not described
    OTHER = "other"  # gradients, weights, and all that is not described


COULD_HIDE: Final = (Role.OTHER, Role.EXPERT, Role.CONTEXT)
"""What a step can do while it goes on, with the right settings."""

_WORD: Final = regex(r"[a-z0-9]+")
_DATA: Final = frozenset(
    {"data", "dp", "edp", "fsdp", "efsdp", "hsdp", "replicate", "shard", "optimizer"}
)
_WORDS: Final = {
    Role.TENSOR: frozenset({"tensor", "tp"}),
    Role.EXPERT: frozenset({"expert", "expt", "exp", "ep", "etp"}),
    Role.CONTEXT: frozenset({"context", "cp", "sequence", "sp", "ulysses"}),
    Role.PIPELINE: frozenset({"pipeline", "pipe", "pp"}),
}
_AS_SEND_RECV: Final = POINT_TO_POINT | {"alltoall", "gather", "scatter"}
"""What PyTorch makes of sends and receives, so that the kernel is called SendRecv."""


def role_of(about: str) -> Role:
    """The role of a group by its description; ``OTHER`` where that names none, or several.

    DATA_PARALLEL_GROUP_WITH_CP, EXPERT_DATA_PARALLEL_GROUP: gradients. MODEL_PARALLEL_GROUP and
    TENSOR_AND_CONTEXT_PARALLEL_GROUP: norms and losses, now and then.
    """
    words = frozenset(_WORD.findall(about.lower().replace("_", " ")))
    if words & _DATA:
        return Role.OTHER
    found = {role for role, mine in _WORDS.items() if words & mine}
    if found == {Role.EXPERT, Role.TENSOR}:
        return Role.EXPERT
    return found.pop() if len(found) == 1 else Role.OTHER


def role_of_call(kind: str, about: str) -> Role:
    """The role of a collective by its kind and its group's description."""
    role = role_of(about)
    if kind in POINT_TO_POINT:
        return Role.UNTOLD if role is Role.OTHER else role
    # What stages do together otherwise is small: tied embeddings, the loss.
    return Role.OTHER if role is Role.PIPELINE else role


def role_of_kernel(name: str) -> Role:
    """The role of what a kernel moves, where its library is made for one; else ``OTHER``."""
    if names.OF_EXPERTS.search(name):
        return Role.EXPERT
    return Role.TENSOR if names.OF_LAYERS.search(name) else Role.OTHER


_BETWEEN_STAGES: Final = (Role.PIPELINE, Role.UNTOLD)


class Roles:
    """The roles of a device's events."""

    def __init__(self, trace: Trace, device: Device) -> None:
        self._codes = trace.codes
        self._transfers = device.transfers
        self._by_code: dict[int, Role] = {}
        self._by_call: dict[tuple[str, str, str, bool], Role] = {}
        called = {
            role_of_call(record.transfer.kind, record.transfer.about)
            for record in trace.records
            if record.transfer.kind in _AS_SEND_RECV
        }
        # Kernels of coalesced calls have no arguments; the calls on the host tell what they can be.
        self._bare = called.pop() if len(called) == 1 else Role.UNTOLD
        self._pipes: dict[str, Role] = {}
        moved = (what for what, _ in device.transfers.values())
        for what in chain(moved, (record.transfer for record in trace.records)):
            if what.kind in POINT_TO_POINT and what.group not in self._pipes:
                role = role_of_call(what.kind, what.about)
                if role in _BETWEEN_STAGES:
                    self._pipes[what.group] = role

    def pipes(self, found: Collection[Role]) -> frozenset[str]:
        """The groups in which stages of a pipeline send, or may send.

        ``found``: the roles on the device; its sends may tell no group, which is "" then.
        """
        untold = {""} if any(each in found for each in _BETWEEN_STAGES) else ()
        return frozenset(self._pipes or untold)

    def of(self, code: int, index: int) -> Role:
        """The role of an event of communication, by its code and its index."""
        moved = self._transfers.get(index)
        if moved is not None:
            what = moved[0]
            is_tiny = what.size_bytes is not None and what.size_bytes < TINY_BYTES
            call = what.kind, what.about, what.group, is_tiny
            if call not in self._by_call:
                self._by_call[call] = self._of_call(*call)
            return self._by_call[call]
        if code not in self._by_code:
            self._by_code[code] = self._by_name(self._codes[code].name)
        return self._by_code[code]

    def _of_call(self, kind: str, about: str, group: str, is_tiny: bool) -> Role:
        role = role_of_call(kind, about)
        if role is not Role.OTHER or not is_tiny:
            return role
        # Its time is that of waiting: stages end a step one after the other.
        mine = members_of(group)
        crossed = {self._pipes[pipe] for pipe in self._pipes if len(mine & members_of(pipe)) > 1}
        return next((each for each in _BETWEEN_STAGES if each in crossed), role)

    def _by_name(self, kernel: str) -> Role:
        told = role_of_kernel(kernel)
        if told is not Role.OTHER:
            return told
        return self._bare if names.collective(kernel) in POINT_TO_POINT else Role.OTHER
