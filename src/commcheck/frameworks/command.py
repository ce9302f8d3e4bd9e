"""A training job's command line: the flags of Megatron, FSDP, DDP and DeepSpeed in it.

Sources: Megatron-LM megatron/training/arguments.py; Hugging Face Transformers TrainingArguments
(``--ddp_bucket_cap_mb``, ``--fsdp``, ``--deepspeed``); torchrun and deepspeed launchers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from commcheck.frameworks import huggingface, megatron_config
from commcheck.frameworks.settings import AUTO, Framework, Setting, Settings
from commcheck.lazy import dataclass, regex


class Word(NamedTuple):
    """One word of a command, and where it stands."""

    text: str
    where: str


MEGATRON: Final[Mapping[str, str]] = {
    "overlap_grad_reduce": "flag",
    "overlap_param_gather": "flag",
    "use_distributed_optimizer": "flag",
    "ddp_bucket_size": "number",
    "ddp_num_buckets": "number",
    "ddp_pad_buckets_for_high_nccl_busbw": "flag",
    "tensor_model_parallel_size": "number",
    "pipeline_model_parallel_size": "number",
    "context_parallel_size": "number",
    "sequence_parallel": "flag",
    "use_torch_fsdp2": "flag",
    "use_megatron_fsdp": "flag",
    "use_custom_fsdp": "flag",
    "tp_comm_overlap": "flag",
    "overlap_moe_expert_parallel_comm": "flag",
}
DDP: Final[Mapping[str, str]] = {
    "ddp_bucket_cap_mb": "number",
    "ddp_find_unused_parameters": "flag",
    "ddp_static_graph": "flag",
    "bucket_cap_mb": "number",
    "find_unused_parameters": "flag",
    "gradient_as_bucket_view": "flag",
    "static_graph": "flag",
}
FSDP: Final[Mapping[str, str]] = {
    "fsdp": "word",
    "fsdp_config": "word",
    "fsdp_backward_prefetch": "word",
    "fsdp_backward_prefetch_policy": "word",
    "fsdp_forward_prefetch": "flag",
    "fsdp_sharding_strategy": "word",
}
DEEPSPEED: Final[Mapping[str, str]] = {"deepspeed": "word", "deepspeed_config": "word"}
LAUNCH: Final[Mapping[str, str]] = {
    "nnodes": "word",
    "nproc_per_node": "number",
    "num_gpus": "number",
    "num_nodes": "number",
}
KNOWN: Final[Mapping[str, str]] = {
    **MEGATRON, **DDP, **FSDP, **DEEPSPEED, **LAUNCH, **huggingface.CHECKPOINTING
}  # fmt: skip
"""Of a rank's command line these are read, and of a script's those of its launcher, too."""
_OPENRLHF: Final = "openrlhf"
_OF_OPENRLHF: Final = {
    "zero_stage": "number", "overlap_comm": "flag", "ds.zero_stage": "number",
    "ds.overlap_comm": "flag",
}  # fmt: skip
"""Flags of ``openrlhf.cli``, whose newer releases begin them with ``ds.``."""
_READ: Final[Mapping[str, str]] = {**KNOWN, **huggingface.ACCELERATE, **_OF_OPENRLHF}
_ONLY_MEGATRON: Final = MEGATRON.keys() - {"sequence_parallel", "context_parallel_size"}
_MEGATRON_TOGETHER: Final = frozenset({"micro_batch_size", "num_attention_heads"})
"""Each of the two alone others have, too."""

_SWIFT: Final = "megatron"
"""``megatron sft``: ms-swift sets CUDA_DEVICE_MAX_CONNECTIONS=1 where nobody does (swift/cli)."""

_SWIFTS_OWN: Final = regex(r"^zero[0-3](_offload)?$")
"""``swift sft --deepspeed zero2``: a file of ms-swift itself, in older releases under
swift/llm/ds_config."""

_ACCELERATE: Final = "accelerate"
"""``accelerate launch``, whose flags mean nothing elsewhere."""

_MEGATRON_SCRIPT: Final = regex(r"(^|/)pretrain_\w+\.py$")
_NO: Final = frozenset({"false", "no", "0", "off", "none"})
BLOCKING: Final = ("CUDA_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING")
"""Under 1 the host waits for each kernel (CUDA programming guide; torch_npu)."""

ENVIRON: Final = frozenset(
    {"CUDA_DEVICE_MAX_CONNECTIONS", "WORLD_SIZE", "LOCAL_WORLD_SIZE", *BLOCKING}
)
_ASSIGNED: Final = regex(
    r"(?<![\w${-])([A-Za-z_]\w*)=(?:\"([^\"]*)\"|'([^']*)'|((?:\$\{[^}]{0,200}\}|[^\s;\"'])*))"
)
_EXPANDED: Final = regex(r"\$(?:(\w+)|\{(\w+)(?::?[-=]([^{}]{0,200}))?\})")
"""``$TP``, ``${TP}``, ``${TP:-8}``: the name, and what holds where it is not set."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The known flags of one command, by name with underscores. ``all_names``: of every flag."""

    values: Mapping[str, Setting]
    all_names: frozenset[str]
    programs: tuple[str, ...]


def read_flags(words: Sequence[Word]) -> Flags:
    """Pick the known flags from words: ``--name value``, ``--name=value``, ``--no-name``."""
    values: dict[str, Setting] = {}
    names: set[str] = set()
    programs = []
    for place, (text, where) in enumerate(words):
        if not text.startswith("--"):
            follows = words[place + 1].text if place + 1 < len(words) else ""
            is_swift = text == _SWIFT and follows in ("pt", "sft", "rlhf")
            is_launch = text.rpartition("/")[2] == _ACCELERATE and follows == "launch"
            if is_launch or text == "accelerate.commands.launch":
                programs.append(_ACCELERATE)
            elif text.startswith("openrlhf.cli."):
                programs.append(_OPENRLHF)
            elif is_swift or text.endswith(".py") or text in ("deepspeed", "torchrun"):
                programs.append(text)
            continue
        flag, equals, value = text[2:].partition("=")
        name = flag.replace("-", "_")
        names.add(name)
        is_off = name.startswith("no_") and name[3:] in KNOWN
        name = name[3:] if is_off else name
        form = _READ.get(name)
        if form is None:
            continue
        follows = words[place + 1].text if place + 1 < len(words) else "--"
        if not equals and not follows.startswith("-"):
            value = follows
        if form == "flag" and not equals and name in MEGATRON and "$" in value:
            value = ""  # its flags take no value: more arguments follow
        found = _value(value, form, is_off=is_off)
        if found is not None:
            known = not isinstance(found, str) or (form == "word" and not _is_left(found))
            values[name] = Setting(found, where, known)
    return Flags(values, frozenset(names), tuple(programs))


def _value(text: str, form: str, *, is_off: bool) -> object | None:
    """The value; its text where that is none of its form; None where there is none."""
    if form == "flag" and not _is_left(text):
        # What follows a flag may be another argument: then it stands for itself.
        said = text.lower()
        return not (is_off or said in _NO)
    if form == "number":
        try:
            return float(text)
        except ValueError:
            return None if text.lower() == "none" else text or None
    return text or None


def _is_left(text: str) -> bool:
    """True where a shell would still have something to fill in."""
    return "$" in text or "`" in text


def settings_of(
    flags: Flags,
    where: str,
    environ: Mapping[str, Setting] | None,
    *,
    runs: bool = False,
    branches: bool = False,
    ranks: int | None = None,
) -> tuple[Settings, ...]:
    """The settings of each framework that a command uses."""
    ranks = ranks or _ranks(flags)
    found: list[Settings] = []

    def add(framework: Framework, names: Iterable[str], elsewhere: str = "") -> None:
        values = {_NAMES.get(n, n): flags.values[n] for n in names if n in flags.values}
        if "use_fsdp" in others and framework == "fsdp":
            values = huggingface.launched_by_accelerate(values, where)
        elif "fsdp" in values and not elsewhere:
            values = huggingface.left_to_transformers(values, where)
        if framework == "deepspeed" and _OPENRLHF in flags.programs:
            # openrlhf/utils/deepspeed/deepspeed_utils.py, get_train_ds_config; cli: stage 2
            own = {"stage": Setting(2, where), "reduce_bucket_size": Setting(AUTO, where)}
            values = {**own, **values}
        if framework == "ddp" and "ddp_bucket_cap_mb" in flags.values:
            values = huggingface.searched_by_transformers(values, where, flags.values)
        found.append(Settings(framework, where, values, environ, ranks, runs, branches, elsewhere))

    if _SWIFT in flags.programs and environ is not None:
        environ = {"CUDA_DEVICE_MAX_CONNECTIONS": Setting("1", where), **environ}
    launched = flags.values if _ACCELERATE in flags.programs else {}
    others = {"use_fsdp", "use_deepspeed"} & {name for name, each in launched.items() if each.value}
    shards = flags.all_names & DEEPSPEED.keys() or "fsdp" in flags.values or others
    if _is_megatron(flags):
        add("megatron", MEGATRON)
    if flags.values.keys() & DDP.keys() and not shards:  # else DDP wraps nothing
        add("ddp", DDP)
    if "use_fsdp" in others or flags.values.keys() & FSDP.keys():
        file = launched.get("config_file") if "use_fsdp" in others else None
        file = flags.values.get("fsdp_config") or file
        names = (*FSDP, "fsdp_version", "fsdp_auto_wrap_policy")
        add("fsdp", names, str(file.value) if file else "")
    for name in ("deepspeed_config", "deepspeed", "deepspeed_config_file"):
        file = (launched if name in huggingface.ACCELERATE else flags.values).get(name)
        told = _SWIFTS_OWN.sub(r"swift/config/\g<0>.json", str(file.value)) if file else ""
        if told.endswith(".json") or _is_left(told):
            add("deepspeed", (), told)
            break
    else:
        if "use_deepspeed" in others and "zero_stage" in launched:
            add("deepspeed", huggingface.ACCELERATE_ZERO)
        elif _OPENRLHF in flags.programs:
            add("deepspeed", _OF_OPENRLHF)
    return tuple(found)


def _is_megatron(flags: Flags) -> bool:
    """Megatron that reduces gradients itself: under DeepSpeed its flags only shape the model."""
    if flags.all_names & DEEPSPEED.keys():
        return False
    return bool(
        flags.all_names & _ONLY_MEGATRON
        or flags.all_names >= _MEGATRON_TOGETHER
        or any(each == _SWIFT or _MEGATRON_SCRIPT.search(each) for each in flags.programs)
    )


_NAMES: Final = {
    **huggingface.ACCELERATE_ZERO,
    "ds.zero_stage": "stage",
    "ds.overlap_comm": "overlap_comm",
    "fsdp_version": "version",
    "fsdp_auto_wrap_policy": "auto_wrap_policy",
    "fsdp_sharding_strategy": "sharding_strategy",
    "ddp_bucket_cap_mb": "bucket_cap_mb",
    "ddp_find_unused_parameters": "find_unused_parameters",
    "ddp_static_graph": "static_graph",
    "fsdp_backward_prefetch": "backward_prefetch",
    "fsdp_backward_prefetch_policy": "backward_prefetch",
    "fsdp_forward_prefetch": "forward_prefetch",
}


def _ranks(flags: Flags) -> int | None:
    """Hosts times processes, where the launcher's flags tell both."""
    hosts = flags.values.get("nnodes") or flags.values.get("num_nodes")
    each = flags.values.get("nproc_per_node") or flags.values.get("num_gpus")
    if each is None or not isinstance(each.value, float):
        return None
    count = str(hosts.value).rpartition(":")[2] if hosts else "1"
    try:
        return int(float(count) * each.value)
    except ValueError:
        return None


# --- texts --------------------------------------------------------------------------------------

_SEPARATOR: Final = regex(r"[;&|]+$")
_OPENS: Final = regex(r"(?:^|;)\s*(?:if|case)\s")
_CLOSES: Final = regex(r"(?:^|;)\s*(?:fi|esac)\b")
_PRODUCT: Final = regex(r"\$\(\(\s*(\d{1,7})\s*\*\s*(\d{1,7})\s*\)\)")
"""``$((8*2))``, as scripts count their ranks."""
_WORD: Final = regex(r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s\"'])+")


def read_text(
    text: str, file: str, given: Mapping[str, Setting] = MappingProxyType({})
) -> tuple[Settings, ...]:
    """A shell script, a pasted command or a copy of ``/proc/PID/cmdline``: what it starts.

    ``given``: variables that are set before it begins; of Slurm's ``#SBATCH`` those are known too.

    Flags may be collected in variables (``ARGS="--overlap-grad-reduce"``) all over a script: they
    are taken together, as one job, those of all its branches too. A variable (``$TP``) is filled in
    where it is set, or by its default (``${TP:-8}``); else its flag is set to what nobody knows.
    """
    if "\0" in text:
        words = [Word(each, file) for each in text.split("\0") if each]
        return settings_of(read_flags(words), file, None)
    words = []
    asked = _asked_of_slurm(text, file)
    variables = {**asked, **given}
    depth, branches = 0, False
    for number, whole in enumerate(text.splitlines(), 1):
        ends = (match.start() for match in _WORD.finditer(whole) if match[0].startswith("#"))
        line = whole[: next(ends, None)]
        where = f"{file}:{number}"
        opens, closes = len(_OPENS.findall(line)), len(_CLOSES.findall(line))
        in_branch = depth + opens > 0
        depth = max(depth + opens - closes, 0)
        branches = branches or (in_branch and "--" in line)
        for match in _ASSIGNED.finditer(line):
            if in_branch and match[1] in BLOCKING:
                continue  # while profiling, say
            value = filled(match[2] or match[3] or match[4] or "", variables)
            variables[match[1]] = Setting(value, where, not _is_left(value))
        for match in _WORD.finditer(line):
            words += [Word(each, where) for each in _pieces(match[0])]
    words = [Word(filled(text, variables), where) for text, where in words]
    environ = {name: variables[name] for name in ENVIRON & variables.keys()}
    flags = read_flags(words)
    ranks = _tasks(words, flags, asked)
    found = settings_of(flags, file, environ, ranks=ranks, branches=branches)
    return (*found, *megatron_config.in_overrides(words))


_ASKED: Final = regex(
    r"\s(-N|-n|--nodes|--ntasks|--ntasks-per-node|--gpus-per-node|--gres)[= ]?\s*"
    r"(?:gpu:)?(?:[a-z]\w*:)?(\d{1,7})(?=\s|$)"
)
_SLURM: Final = {
    "-N": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "--nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "-n": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "--ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "--gres": ("SLURM_GPUS_ON_NODE",),
}
"""Variables of a job by the option that asks for it. Source: sbatch(1)."""


def _asked_of_slurm(text: str, file: str) -> dict[str, Setting]:
    return {
        name: Setting(match[2], f"{file}:{number}")
        for number, line in enumerate(text.splitlines(), 1)
        if line.startswith("#SBATCH")
        for match in _ASKED.finditer(line)
        for name in _SLURM[match[1]]
    }


def _tasks(words: Sequence[Word], flags: Flags, asked: Mapping[str, Setting]) -> int | None:
    """Ranks where each is a task of ``srun``, without a launcher that starts them on its node."""
    launched = "nproc_per_node" in flags.values or set(flags.programs) & {"torchrun", "deepspeed"}
    if launched or all(word.text != "srun" for word in words):
        return None
    counts = {name: int(str(each.value)) for name, each in asked.items()}
    if "SLURM_NTASKS" in counts:
        return counts["SLURM_NTASKS"]
    each = counts.get("SLURM_NTASKS_PER_NODE")
    return each and each * counts.get("SLURM_NNODES", 1)


def _pieces(word: str) -> list[str]:
    """The words in a quoted text, and of an assignment what is assigned.

    That is no value of the flag before it: ``--`` stands between.
    """
    text = word.strip("\"'()")
    name, equals, rest = text.partition("=")
    if equals and re.fullmatch(r"[A-Za-z_]\w*\+?", name):
        text = "-- " + rest.strip("\"'(")
    text = text.replace('"', "").replace("'", "")
    return [_SEPARATOR.sub("", each) for each in text.split() if each not in ("\\", "")]


def filled(text: str, variables: Mapping[str, Setting]) -> str:
    """A word with its variables filled in; what several words or nobody would fill is left."""

    def value(match: re.Match[str]) -> str:
        found = variables.get(match[1] or match[2])
        told = match[3] if found is None else str(found.value)
        return match[0] if not told or " " in told else told.strip("\"'")

    return _PRODUCT.sub(
        lambda match: str(int(match[1]) * int(match[2])), _EXPANDED.sub(value, text)
    )
