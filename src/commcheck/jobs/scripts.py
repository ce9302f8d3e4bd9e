"""The few shell scripts that run on hosts around a job: POSIX sh, values only as arguments.

Processes of ours are known by ``COMMCHECK_MARK=<run>.job-<n>:`` in their environment and by
nothing else; a foreign benchmark of the same name is never touched.
"""

from __future__ import annotations

from typing import Final

LOCK: Final = """
f=$1
if [ ! -r "$f" ]; then f=/etc/hostname; fi
exec 9<"$f" || exit 74
if flock -n 9; then
  sleep "$2" >/dev/null 2>&1 &
  echo locked
  exit 0
fi
r=${COMMCHECK_MARK%%.*}
grep -hsaoz 'COMMCHECK_MARK=[^.]*' /proc/[0-9]*/environ | tr '\\0' '\\n' |
  sed 's/^COMMCHECK_MARK=//' | grep -vxF "$r" | sort -u | head -n 3
exit 75
"""
"""$1 the file, $2 seconds; containers lack it, and lock their own. The sleep keeps the lock; it
carries the session's mark and dies with
it. Opened to read only: it writes nothing and any user may. 75: held by another, whose run is
told; 74: no such file."""

APPS: Final = """
o=$(nvidia-smi --query-compute-apps=pid,used_memory,process_name \
  --format=csv,noheader,nounits) || { r=$?; printf '%s\\n' "$o"; exit $r; }
printf '%s\\n' "$o" | while IFS= read -r l; do
  p=${l%%,*} u= n=
  case $p in '' | *[!0-9]*) continue ;; esac
  while read -r k v e; do
    if [ "$k" = Uid: ]; then u=$v; break; fi
  done <"$1$p/status"
  if [ -n "$u" ]; then n=$(id -un "$u") || n="uid $u"; fi 2>/dev/null
  printf '%s, %s\\n' "${n:-unknown}" "$l"
done
"""
"""$1 ``/proc/``. Processes on the GPUs, the owner before each."""

NPUS: Final = """
o=$(npu-smi info) || { r=$?; printf '%s\\n' "$o"; exit $r; }
printf '%s\\n' "$o"
f=
printf '%s\\n' "$o" | while IFS='| ' read -r _ _ _ p _; do
  if [ "$p" = Process ]; then f=1; fi
  case $p in '' | *[!0-9]*) continue ;; esac
  if [ -z "$f" ]; then continue; fi
  u=
  while read -r k v e; do
    if [ "$k" = Uid: ]; then u=$v; break; fi
  done <"$1$p/status"
  if [ -n "$u" ]; then printf 'owner %s %s\\n' "$p" "$(id -un "$u" || echo "uid $u")"; fi
done 2>/dev/null
exit 0
"""
"""$1 ``/proc/``. The table of NPUs, then the owner of each process of it."""

NICS: Final = """
cd "$1" 2>/dev/null || exit 0
n=0
while [ "$n" -lt 2 ]; do
  for p in */ports/*; do
    read -r x <"$p/counters/port_xmit_data" && read -r r <"$p/counters/port_rcv_data" &&
      read -r g o <"$p/rate" && echo "$n ${p%%/*}/${p##*/} $g $x $r"
  done
  if [ "$n" = 0 ]; then sleep 1; fi
  n=$((n + 1))
done 2>/dev/null
"""
"""$1 the folder of RDMA devices. What each port has sent and received, in words of four bytes,
twice within a second, with its rate in Gb/s."""

SLURM: Final = """
command -v squeue >/dev/null || exit 0
h=$(hostname -s)
timeout 5 squeue -h -w "$h" -o '%i %u %T' 2>/dev/null |
  while read -r i u s; do
    if [ "$u" != "$(id -un)" ] && [ "$s" != PENDING ]; then echo "$i $u"; fi
  done
"""
"""Slurm's jobs that have this host and are not of this user: a job without a process on a GPU will
start one, while its nodes are made ready (CONFIGURING) too; and where one ends (COMPLETING) the
epilog may test the GPUs. Source: JOB STATE CODES of squeue(1)."""

FIND: Final = """
a=$1 b=$2
shift 2
for n; do
  p=
  if [ -n "$a" ] && [ -x "$a/$n" ]; then p=$a/$n; fi
  if [ -z "$p" ]; then p=$(command -v "$n") || p=; fi
  IFS=:
  for d in $b; do if [ -z "$p" ] && [ -x "$d/$n" ]; then p=$d/$n; fi; done
  unset IFS
  if [ -n "$p" ]; then printf '%s %s\\n' "$n" "$p"; fi
done
exit 0
"""
"""$1 the declared folder, $2 usual places with colons between, then names: each with its path."""

_SWEEP: Final = """
n=0 c=0
COMMCHECK_MARK=
export COMMCHECK_MARK
while [ "$n" -lt "$L" ]; do
  w=
  for f in $(cd /proc && exec grep -lszE "^COMMCHECK_MARK=$R[.]job-[0-9]+:$" [0-9]*/environ); do
    w="$w ${f%/environ}"
    if [ "$n" = 0 ]; then c=$((c + 1)); fi
  done
  if [ "$n" -gt 0 ] && [ -z "$w" ]; then break; fi
  case $n in 0 | 1) s=TERM ;; *) s=KILL ;; esac
  if [ -n "$w" ]; then kill -$s $w; sleep 0.2; fi
  n=$((n + 1))
done 2>/dev/null
"""

SWEEP: Final = f'R=${{COMMCHECK_MARK%%.*}} L=20{_SWEEP}echo "$c ${{w:-}}"'
"""Ends what the run's jobs left on this machine: how many there were, and pids that resist."""

HOLD: Final = f"""
R=${{COMMCHECK_MARK%%.*}}
export R
J='L=10{_SWEEP}'
trap 'COMMCHECK_MARK= COMMCHECK_STEP= sh -c "$J" >/dev/null 2>&1 </dev/null & exit 0' TERM HUP INT
sleep "$1" >/dev/null 2>&1 &
wait
"""
"""Waits while runs go on. When the session ends, for whatever reason, it sweeps the machine: a
commcheck that was killed leaves no rank and no daemon here, whoever started them."""

MPIJOB: Final = """
n=commcheck-$(printf %s "${COMMCHECK_MARK%:}" | tr A-Z._ a-z--)
m=$1 l=$2
shift 2
delete='COMMCHECK_MARK= COMMCHECK_STEP= "$@" delete mpijobs.kubeflow.org "$n" --ignore-not-found'
delete="$delete --wait=false >/dev/null 2>&1 </dev/null"
trap 'trap "" TERM HUP INT; eval "$delete &"; exit 143' TERM HUP INT
pods() {
  w=$1 p=$2
  shift 2
  "$@" get pods -l "commcheck.job=$n$w" -o "jsonpath={range .items[*]}$p{'\\n'}{end}"
}
up() { read -r s z </proc/uptime; s=${s%.*}; }
up
e=$((s + l))
late() {
  up
  if [ "$s" -lt "$e" ]; then sleep 1; return; fi
  h=$("$@" get "mpijobs.kubeflow.org/$n" -o 'jsonpath={.spec.runPolicy.suspend}' 2>/dev/null)
  if [ "$h" = true ]; then h=' it is suspended: a queue (Kueue) has not let it in;'; else h=; fi
  echo "the MPIJob did not begin within $l s;$h of its pods are known:" \
    "$(pods '' "{.metadata.name} {.status.phase} \\
{.status.conditions[?(@.type=='PodScheduled')].message} \\
{.status.containerStatuses[*].state.waiting.reason}" "$@" 2>&1)" >&2
  eval "$delete"
  exit 1
}
printf %s "$m" | sed "s/@NAME@/$n/g" | "$@" create --validate=strict -f - >/dev/null || exit 1
until "$@" get "jobs.batch/$n-launcher" -o name >/dev/null 2>&1; do late "$@"; done
until "$@" logs "job/$n-launcher" -c launcher --limit-bytes=1 >/dev/null 2>&1; do late "$@"; done
pods ,commcheck.role=worker '# commcheck: pod {.metadata.name} {.spec.nodeName}' "$@"
"$@" logs -f "job/$n-launcher" -c launcher &
wait $!
r=$?
eval "$delete"
exit $r
"""
"""$1 the manifest, $2 seconds to begin, then kubectl with its options. Prints on which node each
worker is, and the launcher's log. The job is deleted however this ends: what deletes it carries no
mark, and outlives a sweep.
"""

SERVED: Final = """
n=0
while :; do
  o=$("$@" 2>&1)
  r=$?
  case $o in
    *"Couldn't connect"*)
      n=$((n + 1))
      if [ "$n" -lt 60 ]; then sleep 0.25; continue; fi ;;
  esac
  printf '%s\\n' "$o"
  exit $r
done
"""
"""A perftest client that waits until its server listens, 15 s at most."""
