"""The host answers over SSH and runs the probes.

Why: What cannot be asked cannot be called healthy. A host that does not answer is an error of its
own, never a pass, and nothing above it is judged.
Reads: the session itself: host name, kernel and rights, from the runner's first answer.
By hand: ``ssh -v HOST true``, with the address, user and port of the inventory; then
``ssh HOST 'sh -c "echo ok"'``. Where the inventory names a Prometheus server, a note of the run
says whether exporters still answer on a host that is silent.

Where no session can be opened the code says how far it came:

- ``inventory``, ``ssh-config``, ``key-unreadable``: the connection cannot be described. Mend the
  inventory's variable, the ssh_config or the key file that the reason names.
- ``password-unchecked``: a password goes only to a host whose key is checked. Take its key into
  known_hosts, or log in with a key.
- ``dns``: the name does not resolve. Mend ``ansible_host`` or the resolver.
- ``tcp-refused``: the host is up, nothing listens on the port. Is sshd running, is the port right?
- ``tcp-unreachable``, ``tcp-failed``: no route, or the network says no. Look at this machine's
  routes and VPN first: if many hosts say so, it is not them.
- ``tcp-timeout``: no answer at all. Host off, wrong address, firewall, or a jump host is missing.
- ``banner-timeout``: the port is open and nobody speaks. The host is stalled (out of memory, dead
  disk). Look at its console or BMC.
- ``not-ssh``: something else than sshd answers on that port.
- ``dropped-before-banner``: sshd hung up at once. Usually MaxStartups: fewer ``--forks``, or raise
  MaxStartups; also TCP wrappers and fail2ban.
- ``unsupported-ssh-algorithms``: no common key exchange or cipher: one side is very old.
- ``handshake-timeout``, ``handshake-failed``: the key exchange stuck or broke. A path that drops
  large packets (MTU) does that.
- ``host-key-unknown``: never seen before. Take the key from a trusted source into known_hosts, or
  run once with ``--host-keys accept-new``.
- ``host-key-changed``, ``host-key-type-changed``: another key than known_hosts has. Re-installed,
  an address used twice, or an attack: find out which before ``ssh-keygen -R HOST``.
- ``auth-refused``: user or key are not accepted. Is the key loaded, is the user in the inventory?
- ``auth-timeout``: the login hangs: a dead directory service or home file system.
- ``channel-refused``: logged in, but no session may be opened: MaxSessions, or a forced command.
- ``no-shell``: ``ansible_connection: local``, and this machine has no ``/bin/sh``; or a container,
  or the system of a node, that is made without a shell.
- ``not-recorded``: a recorded run is read again, and it never reached this host.
- ``no-runner``: the login shell ran something else than the probes (a menu, a restricted shell, a
  banner that waits for a key). Use a user with a plain POSIX shell.
- ``connection-lost``: the session broke while probes ran; what was answered before is kept. Look
  for a reboot, an out-of-memory kill, a link flap.
- ``output-flood``, ``protocol``: the host sent what no probe sends. A login script that prints
  without end, or a shell that is no shell.
- ``host-deadline``: the host used up its time. Something on it hangs: look at the last command.
- ``out-of-resources``: this machine, not the host, has no descriptor, thread or memory left. Fewer
  ``--forks``, or a higher ``ulimit``.
- ``jump-host-lost``: the connection to the jump host broke; its own log says why.
- ``pod-not-found``, ``pod-not-running``, ``container-not-found``, ``exec-refused``, ``forbidden``,
  ``kubeconfig``, ``api-unreachable``, ``node-unreachable``, ``no-kubectl``, ``debug-pod``: what
  Kubernetes says, in words that the reason repeats; begin with ``kubectl get pod NAME -o wide``.
- ``interrupted``, ``not-tried``: the run was stopped, or its jump host failed, before this host's
  turn. Run again.

Healthy though odd: without root rights, or in a container, the host is reachable all the same; the
checks that lost their eyes say so themselves.
"""

from __future__ import annotations

from commcheck.check import Check, Nothing, passed
from commcheck.model import Machine, Verdict, Words


def judge(_seen: Nothing, machine: Machine, _want: Nothing, _limits: Nothing) -> Verdict:
    """A host that gets here has answered; one that does not is judged by the engine."""
    named = machine.hostname or machine.name
    kernel = f"kernel {machine.kernel}" if machine.kernel else "kernel not told"
    rights = {"self": "as root", "sudo": "with sudo"}.get(machine.root, "without root rights")
    words = [f"{named} answers, {kernel}, {rights}"]
    around = [("a container", machine.in_container), ("a vm", machine.in_vm)]
    if inside := " in ".join(word for word, is_so in around if is_so):
        words.append(inside)
    if machine.platform == "unknown":
        words.append("platform unknown: declare commcheck_platform")
    return passed(", ".join(words))


CHECK = Check(
    id="physical.reachable",
    title=Words("Host answers over SSH", "主机可通过 SSH 访问"),
    subject=Machine,
    seen=Nothing,
    judge=judge,
)
