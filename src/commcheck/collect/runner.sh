# The part of commcheck that runs on a host: POSIX sh, no files written, leaves nothing behind.
#
# Set by the lines sent before this text: N nonce, M mark with its end, G seconds after which it
# ends by itself, A directories to append to PATH, R prefix of /sys and /proc (normally empty).
# By the requests: L number of the last command.
# Lines that begin with "#" are not sent.
#
# File descriptors: 3 lifeline (stdin of the session; its end means that the client is gone),
# 7 and 8 the session's stdout and stderr, 5 notes of one command's helpers, 6 its stdout.
exec 3<&0 7>&1 8>&2 </dev/null >/dev/null 2>&1
# A client that is gone makes output fail; dying of it would leave the clock below behind.
# Caught, not ignored: commands begin with the default.
trap : PIPE
unset CDPATH ENV BASH_ENV
LC_ALL=C LANG=C PATH=${PATH:-/usr/bin:/bin}
for d in /usr/local/sbin /usr/sbin /sbin /usr/local/cuda/bin /opt/mellanox/*/bin \
  /opt/amazon/efa/bin /usr/local/Ascend/driver/tools /usr/local/Ascend/*/bin; do
  if [ -d "$d" ]; then PATH=$PATH:$d; fi
done
PATH=$PATH$A
export LC_ALL LANG PATH
cd /

nap() { COMMCHECK_MARK= sleep "$1" || COMMCHECK_MARK= sleep 1; }

# /proc/self/stat is opened by the (sub)shell itself: $me is its own pid, without a fork.
self() { read -r me rest </proc/self/stat; }

# Kept as text: a root shell runs the same where commands ran under sudo.
# marked: pids, but for those given, whose environment holds the words in $W.
# grep gets an empty mark, so that it does not find itself; its pid, printed first, is spared too,
# since a busybox may run it without an exec. TERM comes first: timeout(1) passes it on.
S='
marked() {
  read -r me rest </proc/self/stat
  set -- "$@" "$me"
  for f in $(
    cd /proc && read -r me rest <self/stat && echo "$me" && COMMCHECK_MARK= &&
      exec grep -lszxF "$W" [0-9]*/environ
  ); do
    case $f in */environ) f=${f%/environ} ;; *) set -- "$@" "$f" ;; esac
    case " $* " in *" $f "*) ;; *) printf "%s " "$f" ;; esac
  done
}
sweep() {
  n=0
  while w=$(marked "$@") && [ -n "$w" ] && [ "$n" -lt 20 ]; do
    case $n in
      0) kill -TERM $w; z=0.03 ;;
      1) z=0.27 ;;
      *) kill -KILL $w; z=0.05 ;;
    esac
    n=$((n + 1))
    COMMCHECK_MARK= sleep $z || COMMCHECK_MARK= sleep 1
  done
}
'
eval "$S"
W=COMMCHECK_MARK=$M

# Q: 0 no command ran under full sudo, 1 some may have. Without the mark in its own environment,
# or the root shell would find the sudo that carries it.
Q=0
everything() {
  sweep "$@"
  if [ "$Q" = 1 ]; then
    COMMCHECK_MARK= sudo -n env COMMCHECK_MARK= sh -c "W=$W; $S sweep \"\$@\"" sh "$@" </dev/null
  fi
}

# Ends the session also where the client's machine vanished without closing its connection.
clock() {
  (
    exec 3<&- 7>&- 8>&-
    sleep "$G"
    self
    everything "$me"
  ) &
}
clock
early=$!

# --- what is on this machine: lines "key value", subjects.py reads them --------------------------

U=
while read -r k v e rest; do
  if [ "$k" = Uid: ]; then U=$e; break; fi
done <"$R/proc/self/status"
case $U in '' | *[!0-9]*) U=$(id -u) ;; esac

O=
kv() {
  O="$O$1 $2
"
}

# The first line of a file, in $v.
rd() { v=; IFS= read -r v <"$1"; }

# A name that is none we would put into a command becomes "?".
name() { case $1 in '' | *[!A-Za-z0-9_.:-]*) v='?' ;; *) v=$1 ;; esac; }

# Key and first line of a file, if there is one.
fact() { rd "$2"; if [ -n "$v" ]; then kv "$1" "$v"; fi; }

machine() {
  fact hostname "$R/proc/sys/kernel/hostname"
  rd "$R/proc/sys/kernel/ostype"
  k=$v
  rd "$R/proc/sys/kernel/osrelease"
  if [ -n "$k$v" ]; then kv kernel "$k $v"; else kv kernel "$(uname -sr)"; fi
  fact boot_id "$R/proc/sys/kernel/random/boot_id"
  fact uptime "$R/proc/uptime"
  kv uid "$U"
  case $U:$COMMCHECK_BECOME in
    0:sudo) kv root sudo ;;
    0:*) kv root self ;;
    *:refused) kv root refused ;;
    *) kv root untried ;;
  esac
  for k in sys_vendor product_name; do fact "dmi_$k" "$R/sys/class/dmi/id/$k"; done
  fact hypervisor "$R/sys/hypervisor/type"
  fact container "$R/run/systemd/container"
  if [ -n "$container" ]; then kv container variable; fi
  if [ -n "$KUBERNETES_SERVICE_HOST" ]; then kv container kubernetes; fi
  for k in .dockerenv run/.containerenv; do if [ -e "$R/$k" ]; then kv container "$k"; fi; done
  if grep -qsaF container= "$R/proc/1/environ"; then kv container init; fi
  while read -r k v; do
    case "$k $v " in
      flags*' hypervisor '*) kv cpu_hypervisor 1; break ;;
      flags*) break ;;
    esac
  done <"$R/proc/cpuinfo"
}

# Which netdev carries this session is worked out from these by the client.
routes() {
  set -- $SSH_CONNECTION
  if [ $# = 4 ]; then kv ssh "$3"; fi
  n=0
  while read -r a b c d e f g h rest; do
    n=$((n + 1))
    if [ $n -gt 256 ]; then break; fi
    name "$a"
    case $b:$c:$h in
      00000000:*:00000000) kv default "$v" ;;
      *:00000000:*) kv net4 "$v $b $h" ;;
    esac
  done <"$R/proc/net/route"
  case $3 in
    *:*)
      while read -r a b c d e f; do name "$f"; kv net6 "$v $a"; done <"$R/proc/net/if_inet6" ;;
  esac
  for d in "$R"/sys/class/net/*/lower_*; do
    if [ -e "$d" ]; then
      a=${d%/lower_*}
      name "${a##*/}"; a=$v
      name "${d##*/lower_}"
      e=
      if cd -P "$d/device"; then e=" $PWD"; fi
      kv lower "$a $v$e"
    fi
  done
  cd /
}

# cd -P and $PWD resolve a symlink without a fork; sysfs shows the way through the PCI bridges so.
ports() {
  for d in "$R"/sys/class/infiniband/*; do
    if [ ! -d "$d" ]; then continue; fi
    name "${d##*/}"; hca=$v
    path= driver= physfn=
    if cd -P "$d/device"; then path=$PWD; fi
    if cd -P "$d/device/driver"; then driver=${PWD##*/}; fi
    if cd -P "$d/device/physfn"; then physfn=${PWD##*/}; fi
    for p in "$d"/ports/*; do
      n=${p##*/}
      case $n in *[!0-9]*) continue ;; esac
      kv port "$hca $n"
      if [ -n "$path" ]; then kv path "$path"; fi
      if [ -n "$driver" ]; then kv driver "$driver"; fi
      if [ -n "$physfn" ]; then kv physfn "$physfn"; fi
      fact pci_id "$d/device/device"
      # What the card says of itself: only root may read it, and it takes milliseconds.
      if [ "$v" = 0x1021 ] && rd "$p/link_layer" && [ "$v" = InfiniBand ] &&
        grep -qsaF SMDL=SW_MNG "$d/device/vpd"; then
        kv nvswitch 1
      fi
      if [ -e "$d/parent" ]; then kv soft 1; fi
      for k in link_layer state phys_state rate; do fact "$k" "$p/$k"; done
      rd "$p/gid_attrs/ndevs/0"
      if [ -n "$v" ]; then name "$v"; kv netdev "$v"; fi
      for e in "$d"/device/net/*; do
        if [ -e "$e" ]; then
          name "${e##*/}"; a=$v
          rd "$e/dev_port"
          kv net "$a $v"
        fi
      done
    done
  done
  cd /
}

accelerators() {
  for d in "$R"/sys/bus/pci/devices/*; do
    rd "$d/vendor"
    case $v in 0x10de | 0x19e5) a=$v ;; *) continue ;; esac
    rd "$d/class"
    case $a$v in 0x10de0x030[02]* | 0x19e50x1200*) ;; *) continue ;; esac
    if [ ! -e "$d/physfn" ] && cd -P "$d"; then
      b=
      e=$PWD
      if cd -P "$d/driver"; then
        case $PWD in *vfio* | */pci-stub) b=" ${PWD##*/}" ;; esac
      fi
      kv accelerator "$a $e$b"
    fi
  done
  for d in "$R"/proc/driver/nvidia/gpus/*; do
    if [ -d "$d" ]; then
      b=
      while read -r k a v rest; do
        if [ "$k $a" = 'Device Minor:' ]; then b=$v; fi
      done <"$d/information"
      kv gpu "${d##*/} $b"
    fi
  done
  for d in "$R"/dev/nvidia[0-9]*; do
    if [ -e "$d" ]; then kv gpu_file "${d##*/nvidia}"; fi
  done
  # The driver's device files carry the physical chip ids.
  for d in "$R"/dev/davinci[0-9]*; do
    if [ -e "$d" ]; then kv npu "${d##*/davinci}"; fi
  done
  cd /
}

now() { read -r t rest </proc/uptime; }

# Marker lines on each stream: nothing but this shell knows the nonce.
both() {
  printf "\n$N %s\n" "$@" >&7
  printf "\n$N %s\n" "$@" >&8
}

# The end of command $1, and with it the begin of the next: sshd makes a packet of every write, and
# packets are what a host costs the client. $2 exit code, $3 how it ran, $t when it ended.
ended() {
  e="end $1 $2 $t $3"
  now
  if [ "$1" -lt "$L" ]; then both "$e" "begin $(($1 + 1)) $t"; else both "$e"; fi
}

now
both "begin 0 $t"
machine
routes
ports
accelerators
printf '%s' "$O" >&7
now
both "end 0 0 $t plain"

# --- running commands ----------------------------------------------------------------------------

# Old busybox has another syntax, tiny ones no timeout at all.
if timeout -k 1 5 true; then T=1; else T=0; fi

# Turns a subshell into the command, with its step in the environment. The redirections are inside,
# or a shell that waits for it would say "Killed" on the command's stderr.
become() {
  exec 2>&1 >&6 5>&- 6>&- 7>&- 8>&-
  COMMCHECK_STEP=$M$i:
  export COMMCHECK_STEP
  exec "$@"
}

# The limit where timeout(1) cannot do it: there is none, or it may not signal the command, which
# runs under the operator's sudo. Gives up on what it cannot kill, so that the bundle goes on.
limited() {
  l=$1
  shift
  self
  (become "$@") &
  p=$!
  (
    exec >/dev/null 6>&- 7>&- 8>&-
    sleep "$l"
    kill -TERM $p
    nap 2
    kill -KILL $p
    nap 0.2
    printf 'r 137\n' >&5
    kill -KILL "$me"
  ) &
  w=$!
  wait $p
  l=$?
  kill $w
  return $l
}

# Probes sudo once. K: 1 it runs anything as root, 0 single commands perhaps, - there is none.
probe() {
  K=0
  if [ "$U" != 0 ]; then
    if ! command -v sudo; then K=-
    elif (limited 15 sudo -n env true) 5>/dev/null 6>&1; then K=1 Q=1
    fi
  fi
}

# A helper's pid, told to the one who waits for it, before it becomes head(1).
helper() { self; printf 'h %s\n' "$me" >&5; }

# Waits for the command's end, then until its output has drained. A child that it left behind may
# hold the pipes open: what carries the command's step is swept then, so that head(1) sees the end
# and hands over what it has; a head(1) that still does not is killed. $1 id, $2 how it runs.
finish() {
  r=- p= n=0
  while read -r k v; do
    case $k in h) p="$p $v" ;; r) r=$v ;; esac
    n=$((n + 1))
    if [ $n = 3 ]; then break; fi
  done
  now
  n=0
  for k in $p; do
    while kill -0 $k; do
      n=$((n + 1))
      # A few looks are free where cores are; then about 0.4 s of naps.
      case $n in
        ? | ??) ;;
        10?) nap 0.005 ;;
        11?) nap 0.03 ;;
        120)
          W=COMMCHECK_STEP=$M$1:
          everything
          W=COMMCHECK_MARK=$M
          ;;
        12?) nap 0.05 ;;
        13?) kill -KILL $k; nap 0.05 ;;
        *) break ;;
      esac
    done
  done
  ended "$1" "$r" "$2"
}

# c ID CAP LIMIT ROOT WORD...: runs one command and frames what it answers.
c() {
  i=$1 b=$2 l=$3 h=plain j=$T
  case $4:$U in 1:0 | 0:*) ;; *) case $K in 1) h=sudo ;; 0) h=direct j=0 ;; -) h=nosudo ;; esac ;; esac
  shift 4
  now
  if [ "$i" = 1 ]; then both "begin 1 $t"; fi
  case $h in
    nosudo) ended "$i" - $h; return ;;
    direct) set -- sudo -n "$@" ;;
  esac
  if [ $j = 1 ]; then set -- timeout -k 2 "$l" "$@"; fi
  if [ $h = sudo ]; then
    set -- sudo -n env "COMMCHECK_MARK=$M" "COMMCHECK_STEP=$M$i:" "PATH=$PATH" LC_ALL=C LANG=C "$@"
  fi
  {
    {
      {
        if [ $j = 1 ]; then (become "$@"); else limited "$l" "$@"; fi
        printf 'r %s\n' $? >&5
      } | { helper; exec head -c "$b" >&8 5>&- 6>&- 7>&- 8>&-; }
    } 6>&1 | { helper; exec head -c "$b" >&7 5>&- 7>&- 8>&-; }
  } 5>&1 | finish "$i" $h
}

# --- the second part: the requests, which follow from what was found -----------------------------

n= k=
read -r n k <&3
case $n in '' | *[!0-9]*) n=0 ;; esac
s=$(head -c "$n" <&3)
# Cut short: the client is gone.
case $s in *"#$N") ;; *) k= s= ;; esac
if [ "$k" = root ]; then probe; fi

# Again, now that it is known whether sudo has to sweep.
clock
kill "$early"

# The lifeline: nothing more is sent, so that a read ends only when the client does.
(
  exec 7>&- 8>&-
  while read -r k; do :; done <&3
  self
  everything "$me"
) &
exec 3<&-

eval "$s"

trap '' TERM
everything $$
if [ -n "$s" ]; then both bye; fi
exit 0
