"""A training step gets a fair share of what its devices can compute.

Why: The share of the peak (MFU) is the one number that holds everything that waits: communication,
small kernels, input, late ranks. It says that something is wrong, and a trace says what.
Reads: the summary that DeepSpeed's flops profiler prints into a training log. On files:
``commcheck analyze config LOG``, with the device's name. A host cannot be asked for it.
By hand: 3 x flops of the forward pass / time of the step / peak of the device; the peak is that of
16 bits without sparsity (A100 312, H100 SXM 989, B200 2250, Ascend 910B3 313 TFLOPS).
Mend: profile a few steps and look at where the time goes: ``commcheck analyze trace``.
Healthy though odd: small models, short sequences and recomputation lower it without any fault; the
profiled step itself is slower than others. The profiler's backward latency includes communication.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, not_applicable
from commcheck.frameworks.mfu import CHECK_ID, LOW, TITLE, MfuLimits
from commcheck.model import Machine, Verdict


def judge(_seen: Nothing, _machine: Machine, _want: Nothing, _limits: MfuLimits) -> Verdict:
    """Of a host alone nothing is known."""
    return not_applicable("no output of a flops profiler; for files: commcheck analyze config LOG")


CHECK = Check(
    id=CHECK_ID,
    title=TITLE,
    subject=Machine,
    seen=Nothing,
    limits=MfuLimits,
    judge=judge,
    causes=(LOW,),
)
