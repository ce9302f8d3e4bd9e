# mypy: ignore-errors
# ruff: noqa
# fmt: off
# Why: every event of a trace is one template on one line, in Kineto's own words and order.
"""Write synthetic profiler traces together with their exact metrics.

The traces have the shape that torch.profiler (Kineto) writes on a GPU: host operators, CUDA runtime
calls, launch arrows, kernels, memcpys, NCCL kernels with their collective arguments, annotations on
host and device.  A small event-driven model of a training step (DDP or ZeRO-3) decides when each
kernel runs, in whole nanoseconds, so that every expected number is exact.

    make_trace.py OUT_DIR --name good --ranks 2 --steps 3 --layers 8 --overlap 1
    make_trace.py OUT_DIR --name big --size-mb 200 --ranks 1
    make_trace.py OUT_DIR --name npu --npu
    make_trace.py --demo OUT_DIR        the small examples

OUT_DIR gets NAME_rankR.json (or .json.gz) for each rank and NAME.expected.json.
Only the standard library; the same arguments give the same bytes.
"""
import argparse
import gzip
import json
import math
import os
import random
import sys

US = 1000  # nanoseconds

BUS = {"allreduce": lambda n: 2 * (n - 1) / n, "allgather": lambda n: (n - 1) / n,
       "reduce_scatter": lambda n: (n - 1) / n, "broadcast": lambda n: 1.0}
KERNEL = {"allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
          "allgather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
          "reduce_scatter": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"}
RECORD = {"allreduce": "allreduce", "allgather": "_allgather_base", "reduce_scatter": "_reduce_scatter_base"}
ANNOT = {"allreduce": "nccl:all_reduce", "allgather": "nccl:_all_gather_base",
         "reduce_scatter": "nccl:_reduce_scatter_base"}
HCOM = {"allreduce": "hcom_allReduce_", "allgather": "hcom_allGather_", "reduce_scatter": "hcom_reduceScatter_"}
COMPUTE_NAMES = [
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
    "(int, float, float const*, float const*, float const*, float*, float*, float*)",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
    "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::"
    "{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float>)",
]
HOST_NAMES = ["aten::linear", "aten::addmm", "aten::mm", "aten::layer_norm", "aten::add_"]


# ---------------------------------------------------------------- intervals (start, end), nanoseconds

def union(spans):
    out = []
    for s, e in sorted(spans):
        if e <= s:
            continue
        if out and s <= out[-1][1]:
            if e > out[-1][1]:
                out[-1][1] = e
        else:
            out.append([s, e])
    return out


def length(spans):
    return sum(e - s for s, e in spans)


def intersect(a, b):
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        s, e = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if s < e:
            out.append([s, e])
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return out


def subtract(a, b):
    out, j = [], 0
    for s, e in a:
        while j < len(b) and b[j][1] <= s:
            j += 1
        k, at = j, s
        while k < len(b) and b[k][0] < e:
            if b[k][0] > at:
                out.append([at, b[k][0]])
            at = max(at, b[k][1])
            k += 1
        if at < e:
            out.append([at, e])
    return out


# ---------------------------------------------------------------- the model of one step

class Ev:
    """One device event: kind is compute, comm or mem."""
    __slots__ = ("kind", "stream", "start", "end", "launch", "name", "coll", "nbytes", "phase", "seq", "layer")

    def __init__(self, kind, stream, start, end, launch, name, phase, coll=None, nbytes=0, seq=-1, layer=-1):
        self.kind, self.stream, self.start, self.end, self.launch = kind, stream, start, end, launch
        self.name, self.phase, self.coll, self.nbytes, self.seq, self.layer = name, phase, coll, nbytes, seq, layer


def buckets(sizes, cap):
    """Gradients arrive last layer first; a bucket closes once it holds at least cap bytes."""
    out, cur, total = [], [], 0
    for layer in range(len(sizes) - 1, -1, -1):
        cur.append(layer)
        total += sizes[layer]
        if total >= cap:
            out.append((cur, total))
            cur, total = [], 0
    if cur:
        out.append((cur, total))
    return out


def comm_ns(o, coll, nbytes):
    factor = BUS[coll](o.world)
    return int(o.alpha_us * US + nbytes * factor / (o.busbw * 1e9) * 1e9)


def simulate_step(o, rng, t0, step, seq0):
    """All ranks together. Returns ([events of rank 0, ...], [host end per rank], next sequence number)."""
    ranks = o.ranks
    slow = [o.straggler_factor if r == o.straggler else 1.0 for r in range(ranks)]
    out_f = o.outlier_factor if step == o.outlier_step else 1.0
    fwd = [[int(rng.uniform(.8, 1.2) * o.kernel_us * US) for _ in range(o.kernels)] for _ in range(o.layers)]
    bwd = [[int(rng.uniform(1.6, 2.4) * o.kernel_us * US) for _ in range(o.kernels)] for _ in range(o.layers)]
    sizes = [int(o.layer_mb * 1e6) // 4 * 4 for _ in range(o.layers)]
    ev = [[] for _ in range(ranks)]
    cpu = [t0 + 50 * US] * ranks       # host clock: launches happen here, one after the other
    gpu = [t0 + 60 * US] * ranks       # when the compute stream is free
    launch = int(o.launch_us * US)
    cs, as_, rs, ms = 7, 20, 24 if (o.two_streams or o.mode == "zero3") else 20, 9
    seq = seq0
    free = {as_: [t0] * ranks, rs: [t0] * ranks}

    def compute(r, durs, phase, layer, not_before=0):
        for i, d in enumerate(durs):
            d = max(500, int(d * slow[r] * out_f))
            at = cpu[r]
            cpu[r] += launch
            s = max(gpu[r], cpu[r] + 3 * US, not_before)
            ev[r].append(Ev("compute", cs, s, s + d, at, COMPUTE_NAMES[(layer + i) % len(COMPUTE_NAMES)],
                            phase, layer=layer))
            gpu[r] = s + d

    def collective(coll, stream, nbytes, ready, phase, layer, scale=1.0):
        """ready: per rank. A rank's kernel starts when that rank is ready and all end together."""
        nonlocal seq
        starts = []
        for r in range(ranks):
            at = cpu[r]
            cpu[r] += launch
            s = max(ready[r] + 2 * US, free[stream][r], cpu[r] + 3 * US)
            starts.append((s, at))
        end = max(s for s, _ in starts) + int(comm_ns(o, coll, nbytes) * scale * out_f)
        for r in range(ranks):
            ev[r].append(Ev("comm", stream, starts[r][0], end, starts[r][1], KERNEL[coll], phase,
                            coll=coll, nbytes=nbytes, seq=seq, layer=layer))
            free[stream][r] = end
        seq += 1
        return end

    if o.memcpy:
        for r in range(ranks):
            at = cpu[r]
            cpu[r] += launch
            s = cpu[r] + 3 * US
            ev[r].append(Ev("mem", ms, s, s + o.memcpy_us * US, at, "Memcpy HtoD (Pinned -> Device)", "forward",
                            nbytes=int(o.memcpy_us * 20e3)))
    if o.mode == "zero3":
        ends = {}
        starts = {}

        def gather(layer, phase, key):
            ready = [t0 + 60 * US] * ranks
            lead = key - o.prefetch if key >= o.prefetch else None
            for r in range(ranks):
                if o.prefetch == 0:
                    ready[r] = gpu[r]
                elif lead is not None and lead in starts:
                    ready[r] = starts[lead][r]
            ends[key] = collective("allgather", as_, sizes[layer], ready, phase, layer)

        key = 0
        order = [(l, "forward") for l in range(o.layers)] + [(l, "backward") for l in range(o.layers - 1, -1, -1)]
        issued = 0
        for key, (layer, phase) in enumerate(order):
            while issued <= min(key + o.prefetch, len(order) - 1):
                gather(order[issued][0], order[issued][1], issued)
                issued += 1
            starts[key] = []
            for r in range(ranks):
                n = len(ev[r])
                compute(r, fwd[layer] if phase == "forward" else bwd[layer], phase, layer, not_before=ends[key])
                starts[key].append(ev[r][n].start)
            if phase == "backward":
                collective("reduce_scatter", rs, sizes[layer], list(gpu), "backward", layer)
    else:
        for layer in range(o.layers):
            for r in range(ranks):
                compute(r, fwd[layer], "forward", layer)
        bs = buckets(sizes, o.bucket_mb * 1e6) if o.mode == "ddp" else []
        now = math.ceil(o.overlap * len(bs) - 1e-9)
        todo, k = [], 0
        have = set()
        for layer in range(o.layers - 1, -1, -1):
            for r in range(ranks):
                compute(r, bwd[layer], "backward", layer)
            have.add(layer)
            while k < len(bs) and set(bs[k][0]) <= have:
                if k < now:
                    collective("allreduce", as_ if (k % 2 == 0 or not o.two_streams) else rs, bs[k][1],
                               list(gpu), "backward", bs[k][0][-1])
                else:
                    todo.append(bs[k])
                k += 1
        for b in todo:
            collective("allreduce", as_, b[1], list(gpu), "backward", b[0][-1])
    if o.memcpy:
        for r in range(ranks):  # one copy out under the backward, one after it
            for s in (gpu[r] - 2 * o.memcpy_us * US, gpu[r] + 5 * US):
                ev[r].append(Ev("mem", ms, s, s + o.memcpy_us * US, s - 8 * US, "Memcpy DtoH (Device -> Pinned)",
                                "backward", nbytes=int(o.memcpy_us * 20e3)))
    for r in range(ranks):
        last = max(e.end for e in ev[r] if e.kind != "mem")
        compute(r, [int(o.kernel_us * US)] * max(1, o.kernels // 2), "optimizer", 0, not_before=last)
    ends = []
    for r in range(ranks):
        ends.append(max(max(e.end for e in ev[r]), cpu[r]) + int(o.host_gap_us * US))
    return ev, ends, seq


# ---------------------------------------------------------------- expected metrics

def ms(ns):
    return round(ns / 1e6, 6)


def ratio(a, b):
    return None if b == 0 else round(a / b, 6)


def call_ns(o):
    """How long one launch call lasts on the host."""
    return max(1000, int(o.launch_us * US * .8))


LATENCY_NS = 10_000


def host_wait_ns(before, events, after, s, e, o):
    """Gaps between compute kernels until the launch had its effect, without what ended in them."""
    cs = sorted((x for x in events if x.kind == "compute"), key=lambda x: x.start)
    cs = [x for x in before if x.kind == "compute"][-1:] + cs + [x for x in after if x.kind == "compute"][:1]
    held = union((x.start, x.end) for x in (*before, *events, *after) if x.kind != "compute")
    waits = []
    for a, b in zip(cs, cs[1:]):
        called = b.launch + call_ns(o)
        if b.start > a.end and called > a.end:
            gap = [(a.end, min(b.start, called + LATENCY_NS))]
            waits += subtract(gap, [x for x in held if x[1] <= b.start])
    return sum(max(0, min(y, e) - max(x, s)) for x, y in waits)


def step_metrics(events, s, e, host, o, before=(), after=()):
    comp = union((x.start, x.end) for x in events if x.kind == "compute")
    comm = union((x.start, x.end) for x in events if x.kind == "comm")
    mem = union((x.start, x.end) for x in events if x.kind == "mem")
    allu = union((x.start, x.end) for x in events)
    over = intersect(comm, comp)
    blank = subtract(comm, comp)
    cs = sorted((x for x in events if x.kind == "compute"), key=lambda x: x.start)
    host_gap = sum(max(0, b.start - a.end) for a, b in zip(cs, cs[1:]) if b.launch + call_ns(o) > a.end)
    host_wait = host_wait_ns(before, events, after, s, e, o)
    t = e - s
    d = {"step_time_ms": ms(t), "host_step_ms": ms(host), "compute_busy_ms": ms(length(comp)),
         "comm_busy_ms": ms(length(comm)), "mem_busy_ms": ms(length(mem)), "overlapped_ms": ms(length(over)),
         "exposed_comm_ms": ms(length(blank)), "exposed_comm_strict_ms": ms(length(subtract(blank, mem))),
         "longest_blank_ms": ms(max((y - x for x, y in blank), default=0)),
         "idle_ms": ms(t - length(allu)), "overlap_ratio": ratio(length(over), length(comm)),
         "comm_share": ratio(length(comm), t), "exposed_share": ratio(length(blank), t),
         "compute_share": ratio(length(comp), t), "host_wait_idle_ms": ms(host_gap),
         "host_only_wait_ms": ms(host_wait),
         "kernels": sum(x.kind != "mem" for x in events), "comm_kernels": sum(x.kind == "comm" for x in events)}
    f = [x for x in events if x.phase == "forward"]
    ag = union((x.start, x.end) for x in f if x.coll == "allgather")
    if ag:
        w = max(x.end for x in f) - min(x.start for x in f)
        d["forward_ms"] = ms(w)
        d["allgather_share_of_forward"] = ratio(length(ag), w)
        d["exposed_allgather_share_of_forward"] = ratio(length(subtract(ag, comp)), w)
    return d


class Totals:
    """Sums over steps, one rank."""

    def __init__(self):
        self.steps, self.coll = [], {}

    def add(self, d, events, world):
        self.steps.append(d)
        for x in events:
            if x.kind != "comm":
                continue
            c = self.coll.setdefault(x.coll, {"count": 0, "bytes": 0, "time_ns": 0, "sizes": {}})
            c["count"] += 1
            c["bytes"] += x.nbytes
            c["time_ns"] += x.end - x.start
            c["sizes"][x.nbytes] = c["sizes"].get(x.nbytes, 0) + 1

    def report(self, world):
        keys = [k for k in self.steps[0] if k.endswith("_ms") or k in ("kernels", "comm_kernels")]
        tot = {k: round(sum(s.get(k, 0) for s in self.steps), 6) for k in keys if k != "longest_blank_ms"}
        tot["longest_blank_ms"] = max(s["longest_blank_ms"] for s in self.steps)
        tot["overlap_ratio"] = ratio(tot["overlapped_ms"], tot["comm_busy_ms"])
        tot["comm_share"] = ratio(tot["comm_busy_ms"], tot["step_time_ms"])
        tot["exposed_share"] = ratio(tot["exposed_comm_ms"], tot["step_time_ms"])
        times = sorted(s["step_time_ms"] for s in self.steps)
        n = len(times)
        tot["median_step_ms"] = round((times[(n - 1) // 2] + times[n // 2]) / 2, 6)
        coll = {}
        for k, c in sorted(self.coll.items()):
            alg = c["bytes"] / c["time_ns"] if c["time_ns"] else 0.0   # bytes per ns = GB/s
            coll[k] = {"count": c["count"], "bytes": c["bytes"], "time_ms": ms(c["time_ns"]),
                       "algbw_GBps": round(alg, 6), "busbw_GBps": round(alg * BUS[k](world), 6),
                       "sizes": [[b, m] for b, m in sorted(c["sizes"].items())]}
        few = self.steps if len(self.steps) <= 20 else self.steps[:20]
        return {"total": tot, "collectives": coll, "steps": few, "step_count": len(self.steps)}


# ---------------------------------------------------------------- writers

def ts(ns):
    return "%d.%03d" % (ns // 1000, ns % 1000)


class Kineto:
    """style pretty: as Kineto lays it out; style compact: one line, as json.dump would."""

    def __init__(self, path, o, rank):
        self.o, self.rank, self.n, self.bytes = o, rank, 0, 0
        raw = gzip.GzipFile(filename="", mode="wb", fileobj=open(path, "wb"), compresslevel=6, mtime=0) \
            if path.endswith(".gz") else open(path, "wb", buffering=1 << 20)
        self.f, self.buf = raw, []
        self.dev = 0 if o.local_device0 else rank
        self.pid, self.tid, self.btid = 4000 + rank, 4000 + rank, 4300 + rank
        self.base = 0 if o.epoch_ts else 1711964646000000000
        self.corr, self.extid, self.held = 1000, 1, None
        head = {"schemaVersion": 1, "deviceProperties": [
            {"id": self.dev, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85045870592, "computeMajor": 9,
             "computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
             "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 132}]}
        dist = {"backend": "nccl", "rank": rank, "world_size": o.world, "pg_count": 1, "pg_config": [
            {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": o.world,
             "ranks": list(range(o.world))}], "nccl_version": "2.21.5"}
        self.tail_dist = None
        if o.dist_info == "head":
            head["distributedInfo"] = dist
        elif o.dist_info == "tail":
            self.tail_dist = dist
        head["host_name"] = "node-%02d" % rank
        head["displayTimeUnit"] = "ms"
        if not o.epoch_ts:
            head["baseTimeNanoseconds"] = self.base
        s = json.dumps(head, indent=2)
        self.put(s[:s.rindex("}")].rstrip() + ',\n  "traceEvents": [\n')
        self.event('"ph": "M", "name": "process_name", "ts": %s, "pid": %d, "tid": 0, "args": {"name": "python"}'
                   % (self.t(o.t0), self.pid))
        self.event('"ph": "M", "name": "process_labels", "ts": %s, "pid": %d, "tid": 0, "args": {"labels": "CPU"}'
                   % (self.t(o.t0), self.pid))
        self.event('"ph": "M", "name": "process_labels", "ts": %s, "pid": %d, "tid": 0, "args": {"labels": "GPU %d"}'
                   % (self.t(o.t0), self.dev, self.dev))
        for st in ([7, 9, 20, 24]):
            self.event('"ph": "M", "name": "thread_name", "ts": %s, "pid": %d, "tid": %d, "args": {"name": "stream %d "}'
                       % (self.t(o.t0), self.dev, st, st))

    def t(self, ns):
        return ts(ns + self.o.clock[self.rank] + (1711964646000000000 if self.o.epoch_ts else 0))

    def put(self, s):
        self.buf.append(s)
        self.bytes += len(s)
        if len(self.buf) > 4000:
            self.f.write("".join(self.buf).encode())
            self.buf = []

    def event(self, body):
        self.n += 1
        if self.o.style == "compact":
            self.put(("" if self.n == 1 else ", ") + "{" + body + "}")
        else:
            head, sep, args = body.partition(', "args": {')
            text = head.replace(', "', ',\n    "')
            if sep:
                text += ',\n    "args": {\n      ' + args[:-1].rstrip() + "\n    }"
            self.put(("" if self.n == 1 else ",\n") + "  {\n    " + text + "\n  }")

    def span(self, cat, name, pid, tid, s, e, args=""):
        a = ', "args": {%s}' % args if args else ""
        name = name.replace('"', "'")
        if self.o.phases == "BE":
            if cat == "gpu_user_annotation" and not name.startswith("ProfilerStep"):
                return   # these cross the edges of their neighbours by a nanosecond: no begin/end nesting
            self.held.append((s, 1, '"ph": "B", "cat": "%s", "name": "%s", "pid": %d, "tid": %d, "ts": %s%s'
                              % (cat, name, pid, tid, self.t(s), a)))
            self.held.append((e, 0, '"ph": "E", "cat": "%s", "name": "%s", "pid": %d, "tid": %d, "ts": %s'
                              % (cat, name, pid, tid, self.t(e))))
        else:
            self.event('"ph": "X", "cat": "%s", "name": "%s", "pid": %d, "tid": %d, "ts": %s, "dur": %s%s'
                       % (cat, name, pid, tid, self.t(s), ts(e - s), a))

    def step(self, number, s, e, events):
        self.held = []
        self.write_step(number, s, e, events)
        for _, _, body in sorted(self.held):
            self.event(body)

    def write_step(self, number, s, e, events):
        o, dev, pid = self.o, self.dev, self.pid
        self.span("user_annotation", "ProfilerStep#%d" % number, pid, self.tid, s, e,
                  '"External id": %d, "Record function id": 0, "Ev Idx": %d' % (self.extid, self.n))
        for phase in ("forward", "backward", "optimizer"):
            mine = [x for x in events if x.phase == phase]
            if mine:
                self.span("user_annotation", phase, pid, self.tid, min(x.launch for x in mine) - 200,
                          max(x.launch for x in mine) + 3 * US, '"External id": %d' % (self.extid + 1))
        for x in sorted(events, key=lambda x: x.launch):
            self.corr += 1
            self.extid += 1
            tid = self.btid if x.phase == "backward" else self.tid
            la, lb = x.launch, x.launch + call_ns(o)
            if x.kind == "compute":
                name = HOST_NAMES[self.corr % len(HOST_NAMES)]
                self.span("cpu_op", name, pid, tid, la - 90, lb + 90,
                          '"External id": %d, "Sequence number": %d, "Fwd thread id": 0, "Record function id": 0, '
                          '"Ev Idx": %d' % (self.extid, self.corr % 997, self.n))
                for _ in range(o.extra_ops):
                    self.span("cpu_op", "aten::empty_strided", pid, tid, la - 60, la - 10,
                              '"External id": %d, "Record function id": 0, "Ev Idx": %d' % (self.extid, self.n))
                rt, cbid = "cudaLaunchKernel", 211
                args = ('"External id": %d, "queued": 0, "device": %d, "context": 1, "stream": %d, "correlation": %d, '
                        '"registers per thread": 168, "shared memory": 98304, "blocks per SM": 1.939394, '
                        '"warps per SM": 7.757576, "grid": [32, 8, 1], "block": [128, 1, 1], '
                        '"est. achieved occupancy %%": 12' % (self.extid, dev, x.stream, self.corr))
                cat, name = "kernel", x.name
            elif x.kind == "comm":
                n_out = x.nbytes // 4
                n_in = n_out
                if x.coll == "allgather":
                    n_in = n_out // o.world
                elif x.coll == "reduce_scatter":
                    n_in, n_out = n_out, n_out // o.world
                meta = ('"Collective name": "%s", "In msg nelems": %d, "Out msg nelems": %d, "Group size": %d, '
                        '"dtype": "Float", "In split size": "[]", "Out split size": "[]", "Process Group Name": "0", '
                        '"Process Group Description": "default_pg", "Process Group Ranks": "%s"'
                        % (RECORD[x.coll], n_in, n_out, o.world, list(range(o.world)))) if o.coll_args else None
                if meta:
                    self.span("cpu_op", "record_param_comms", pid, tid, la - 400, lb + 300,
                              '"External id": %d, "Record function id": %d, %s, "Seq": %d, "Ev Idx": %d'
                              % (self.extid, self.extid, meta, x.seq, self.n))
                    self.span("user_annotation", ANNOT[x.coll], pid, tid, la - 300, lb + 250,
                              '"External id": %d, "Ev Idx": %d' % (self.extid + 1, self.n))
                    self.span("gpu_user_annotation", ANNOT[x.coll], dev, x.stream, x.start - 1, x.end + 1,
                              '"External id": %d' % (self.extid + 1))
                rt, cbid = "cudaLaunchKernelExC", 430
                args = ('"External id": %d, "queued": 0, "device": %d, "context": 1, "stream": %d, "correlation": %d, '
                        '"registers per thread": 96, "shared memory": 82240, "blocks per SM": 0.181818, '
                        '"warps per SM": 3.090909, "grid": [24, 1, 1], "block": [544, 1, 1], '
                        '"est. achieved occupancy %%": 0%s'
                        % (self.extid, dev, x.stream, self.corr,
                           ", " + meta + ', "Seq": %d' % x.seq if meta else ""))
                cat, name = "kernel", x.name
            else:
                rt, cbid = "cudaMemcpyAsync", 41
                args = ('"External id": %d, "device": %d, "context": 1, "stream": %d, "correlation": %d, "bytes": %d, '
                        '"memory bandwidth (GB/s)": %.6f'
                        % (self.extid, dev, x.stream, self.corr, x.nbytes, x.nbytes / max(1, x.end - x.start)))
                cat, name = "gpu_memcpy", x.name
            self.span("cuda_runtime", rt, pid, tid, la, lb,
                      '"External id": %d, "cbid": %d, "correlation": %d' % (self.extid, cbid, self.corr))
            self.event('"ph": "s", "id": %d, "pid": %d, "tid": %d, "ts": %s, "cat": "ac2g", "name": "ac2g"'
                       % (self.corr, pid, tid, self.t(la)))
            self.span(cat, name, dev, x.stream, x.start, x.end, args)
            self.event('"ph": "f", "id": %d, "pid": %d, "tid": %d, "ts": %s, "cat": "ac2g", "name": "ac2g", "bp": "e"'
                       % (self.corr, dev, x.stream, self.t(x.start)))
            if o.sync_events and x.kind == "comm":   # not work: must not count as busy
                self.span("cuda_sync", "Stream Wait Event", dev, 7, x.start - 900, x.start + 40 * US,
                          '"stream": 7, "correlation": %d, "device": %d, "wait_on_stream": %d'
                          % (self.corr, dev, x.stream))
        if o.gpu_step_annotation:
            self.span("gpu_user_annotation", "ProfilerStep#%d" % number, dev, 7,
                      min(x.start for x in events) - 1, max(x.end for x in events if x.stream == 7) + 1,
                      '"External id": 1')

    def close(self, end):
        self.event('"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", '
                   '"ts": %s, "dur": %s, "args": {"Op count": 0}' % (self.t(self.o.t0), ts(end - self.o.t0)))
        self.event('"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", '
                   '"tid": "Trace PyTorch Profiler", "ts": %s' % self.t(self.o.t0))
        self.event('"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": %s' % self.t(end))
        tail = "\n  ],"
        if self.tail_dist:
            tail += '"distributedInfo": %s,' % json.dumps(self.tail_dist)
        self.put(tail + '"traceName": "trace.json" }')
        self.f.write("".join(self.buf).encode())
        raw = self.f.fileobj if isinstance(self.f, gzip.GzipFile) else None
        self.f.close()
        if raw:
            raw.close()


class Npu:
    """trace_view.json of torch_npu: a bare array, ts as a string, device rows told by process and thread names."""

    def __init__(self, path, o, rank):
        self.o, self.rank, self.n = o, rank, 0
        self.f = gzip.GzipFile(filename="", mode="wb", fileobj=open(path, "wb"), compresslevel=6, mtime=0) \
            if path.endswith(".gz") else open(path, "wb", buffering=1 << 20)
        self.pid = 437000 + rank
        self.base = 1704161511 * 10**9
        self.all, self.rows, self.group = [], [], "%019d" % (13681369207305868844 // 10 + 7)
        self.f.write(b"[")
        for pid, name, label, idx in ((self.pid, "Python", "CPU", 0), (self.pid * 100 + 1, "CANN", "CPU", 2),
                                      (self.pid * 100 + 2, "Ascend Hardware", "NPU %d" % rank, 8),
                                      (self.pid * 100 + 3, "HCCL", "NPU %d" % rank, 9),
                                      (self.pid * 100 + 4, "Overlap Analysis", "NPU %d" % rank, 11)):
            self.put({"name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}, "ph": "M"})
            self.put({"name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}, "ph": "M"})
            self.put({"name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": idx}, "ph": "M"})
        self.hw, self.hc, self.ov = self.pid * 100 + 2, self.pid * 100 + 3, self.pid * 100 + 4
        for tid, name in enumerate(("Computing", "Communication", "Communication(Not Overlapped)", "Free")):
            self.put({"name": "thread_name", "pid": self.ov, "tid": tid, "args": {"name": name}, "ph": "M"})
        self.put({"name": "thread_name", "pid": self.hw, "tid": 7, "args": {"name": "Stream 7"}, "ph": "M"})
        self.put({"name": "thread_name", "pid": self.hc, "tid": 2, "args": {"name": "Group 0 Communication"}, "ph": "M"})
        self.put({"name": "thread_name", "pid": self.hc, "tid": 3, "args": {"name": "Plane 0"}, "ph": "M"})

    def put(self, d):
        self.f.write(((", " if self.n else "") + json.dumps(d)).encode())
        self.n += 1

    def t(self, ns):
        return ts(ns + self.base + self.o.clock[self.rank])

    def x(self, name, pid, tid, s, e, args=None, cat=None):
        d = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": self.t(s), "dur": (e - s) / 1000}
        if cat:
            d["cat"] = cat
        if args is not None:
            d["args"] = args
        self.put(d)

    def step(self, number, s, e, events):
        self.x("ProfilerStep#%d" % number, self.pid, self.pid, s, e, {"Sequence number": -1, "Fwd thread id": 0}, "cpu_op")
        for x in sorted(events, key=lambda x: x.start):
            if x.kind == "comm":
                name = "%s_844_%d_1@%s" % (HCOM[x.coll], x.seq, self.group)
                self.x(name, self.hc, 2, x.start, x.end, {"connection_id": x.seq, "Model Id": 4294967295,
                                                          "data_type": "FP32", "alg_type": "MESH-RING-NHR",
                                                          "count": x.nbytes // 4})
                mid = x.start + (x.end - x.start) // 4
                self.x("Notify_Wait", self.hc, 3, x.start, mid, {"notify_id": x.seq, "src_rank": 0, "dst_rank": 1,
                                                                "transport_type": "LOCAL", "size(Byte)": 0})
                self.x("Memcpy", self.hc, 3, mid, x.end, {"src_rank": 0, "dst_rank": 1, "transport_type": "SDMA",
                                                         "size(Byte)": x.nbytes, "bandwidth(GB/s)": 18.5})
            else:
                kind = "AI_CORE" if x.kind == "compute" else "MEMCPY_ASYNC"
                self.x("MatMulV2" if x.kind == "compute" else "MEMCPY_ASYNC", self.hw, 7, x.start, x.end,
                       {"Model Id": 4294967295, "Task Type": kind, "Stream Id": 7, "Task Id": self.n, "Batch Id": 0,
                        "Subtask Id": 4294967295, "connection_id": self.n})
        self.all.extend(events)

    def close(self, end):
        comp = union((x.start, x.end) for x in self.all if x.kind == "compute")
        comm = union((x.start, x.end) for x in self.all if x.kind == "comm")
        both = union([tuple(x) for x in comp] + [tuple(x) for x in comm])
        free = [[a[1], b[0]] for a, b in zip(both, both[1:])]
        for tid, spans, name in ((0, comp, "Computing"), (1, comm, "Communication"),
                                 (2, subtract(comm, comp), "Communication(Not Overlapped)"), (3, free, "Free")):
            for a, b in spans:
                self.x(name, self.ov, tid, a, b)
        self.f.write(b"]")
        raw = self.f.fileobj if isinstance(self.f, gzip.GzipFile) else None
        self.f.close()
        if raw:
            raw.close()


# ---------------------------------------------------------------- one trace set

def defaults():
    return argparse.Namespace(
        name="trace", ranks=2, world=None, steps=3, first_step=2, layers=8, kernels=6, kernel_us=100.0, mode="ddp",
        overlap=1.0, bucket_mb=25.0, layer_mb=12.5, busbw=40.0, alpha_us=25.0, launch_us=6.0, prefetch=1,
        straggler=-1, straggler_factor=1.0, outlier_step=-1, outlier_factor=3.0, memcpy=False, memcpy_us=300,
        two_streams=False, dist_info="head", coll_args=True, style="pretty", phases="X", npu=False, gz=False,
        truncate=0.0, size_mb=0.0, seed=1, host_gap_us=80.0, extra_ops=2, epoch_ts=False, sync_events=False,
        gpu_step_annotation=True, local_device0=True, clock=None, t0=5_000_000_000, verdict=None)


def make(out: str, o: argparse.Namespace) -> tuple[list[str], dict]:
    o.world = o.world or o.ranks
    o.ranks = min(o.ranks, o.world)
    if o.mode != "none" and o.world < 2:
        o.world = 8 if o.ranks == 1 else o.ranks
    o.clock = o.clock or [0] * o.ranks
    os.makedirs(out, exist_ok=True)
    ext = ".json.gz" if o.gz else ".json"
    paths = [os.path.join(out, "%s_rank%d%s" % (o.name, r, ext)) for r in range(o.ranks)]
    rng = random.Random(o.seed)
    ws = [(Npu if o.npu else Kineto)(p, o, r) for r, p in enumerate(paths)]
    tot = [Totals() for _ in ws]
    skew = []
    pending = None
    t, seq, k = o.t0, 0, 0
    steps = o.steps

    last = [()] * o.ranks

    def flush(cur, nxt):
        step, start, ends, evs = cur
        for r, events in enumerate(evs):
            a = min(x.start for x in events)
            b = min(x.start for x in nxt[r]) if nxt else max(ends[r], max(x.end for x in events))
            of = step_metrics(events, a, b, ends[r] - start[r], o, last[r], nxt[r] if nxt else ())
            tot[r].add(of, events, o.world)
            last[r] = events
        if o.ranks > 1:
            by = {}
            for r, events in enumerate(evs):
                for x in events:
                    if x.kind == "comm":
                        by.setdefault(x.seq, {})[r] = x
            for s, d in sorted(by.items()):
                starts = [d[r].start for r in range(o.ranks)]
                skew.append(starts)

    while k < steps:
        evs, ends, seq = simulate_step(o, rng, t, k + o.first_step, seq)
        start = [t] * o.ranks
        for r, w in enumerate(ws):
            w.step(k + o.first_step, t, ends[r], evs[r])
        cur = (k + o.first_step, start, ends, evs)
        if pending:
            flush(pending, evs)
        pending = cur
        t = max(ends) + 20 * US
        k += 1
        if o.size_mb and k == 1 and not o.npu:
            steps = max(2, math.ceil(o.size_mb * 1e6 / max(1, ws[0].bytes)))
    flush(pending, None)
    for w in ws:
        w.close(t)
    exp = {"generator": "make_trace.py", "args": {a: v for a, v in sorted(vars(o).items()) if a not in ("verdict",)},
           "files": [os.path.basename(p) for p in paths], "world_size": o.world,
           "window": "device cadence: first device event of a step to first device event of the next; "
                     "last step: to the end of its host annotation",
           "ranks": {str(r): x.report(o.world) for r, x in enumerate(tot)}}
    if skew:
        n = o.ranks
        late = [sum(s[r] - min(s) for s in skew) / len(skew) for r in range(n)]
        sp = sorted(max(s) - min(s) for s in skew)
        exp["straggler"] = {
            "collectives": len(skew), "mean_start_skew_ms": ms(sum(sp) / len(sp)), "max_start_skew_ms": ms(sp[-1]),
            "mean_lateness_ms": [ms(x) for x in late],
            "wait_ms": [ms(sum(max(s) - s[r] for s in skew)) for r in range(n)],
            "straggler_rank": max(range(n), key=lambda r: late[r]) if max(late) > 50 * US else None,
            "clock_offset_us": [c / 1000 for c in o.clock]}
    if o.verdict:
        exp["verdict"] = o.verdict
    if o.truncate:
        for p in paths:
            size = os.path.getsize(p)
            with open(p, "r+b") as f:
                f.truncate(int(size * o.truncate))
    with open(os.path.join(out, o.name + ".expected.json"), "w") as f:
        json.dump(exp, f, indent=1)
        f.write("\n")
    return paths, exp


def variant(**kw: object) -> argparse.Namespace:
    o = defaults()
    for k, v in kw.items():
        if not hasattr(o, k):
            raise SystemExit("unknown parameter " + k)
        setattr(o, k, v)
    return o


DEMO = [
    dict(name="good_overlap", bucket_mb=25, busbw=40, verdict="compute bound, comm hidden"),
    dict(name="serial", overlap=0.0, bucket_mb=100, busbw=20, verdict="exposed comm: no overlap"),
    dict(name="small_buckets", bucket_mb=0.4, layer_mb=0.4, layers=60, kernels=2, kernel_us=20, busbw=40, alpha_us=150,
         verdict="many small collectives: latency bound"),
    dict(name="zero3_gather_bound", mode="zero3", prefetch=0, busbw=12, layer_mb=25, layers=6,
         verdict="ZeRO-3 all-gather bound"),
    dict(name="straggler", ranks=4, straggler=2, straggler_factor=1.35, kernels=3, verdict="rank 2 is slow"),
    dict(name="launch_bound", kernel_us=4, launch_us=14, kernels=12, layer_mb=2, verdict="host cannot launch fast enough"),
]


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--demo", action="store_true")
    d = defaults()
    for k, v in sorted(vars(d).items()):
        if k in ("clock", "verdict", "t0"):
            continue
        flag = "--" + k.replace("_", "-")
        if isinstance(v, bool):
            p.add_argument(flag, dest=k, action=argparse.BooleanOptionalAction, default=v)
        else:
            p.add_argument(flag, dest=k, type=int if v is None else type(v), default=v)
    p.add_argument("--clock-us", default="", help="per rank clock offsets, comma separated microseconds")
    a = p.parse_args(argv)
    if a.demo:
        for kw in DEMO:
            o = variant(gz=True, **kw)
            paths, _ = make(a.out, o)
            print(o.name, sum(os.path.getsize(x) for x in paths))
        return 0
    o = d
    for k in vars(d):
        if hasattr(a, k):
            setattr(o, k, getattr(a, k))
    if a.clock_us:
        o.clock = [int(float(x) * 1000) for x in a.clock_us.split(",")]
    paths, _ = make(a.out, o)
    for x in paths:
        print(x, os.path.getsize(x))
    return 0


if __name__ == "__main__":
    sys.exit(main())
