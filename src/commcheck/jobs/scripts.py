"""The few shell scripts that run on hosts around a job: POSIX sh, values only as arguments.

Processes of ours are known by ``COMMCHECK_MARK=<run>.job-<n>:`` in their environment and by
nothing else; a foreign benchmark of the same name is never touched.
"""

from __future__ import annotations

from typing import Final

LOCK: Final = """
exec 9<"$1" || exit 74
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
"""$1 the file, $2 seconds. The sleep keeps the lock; it carries the session's mark and dies with
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
