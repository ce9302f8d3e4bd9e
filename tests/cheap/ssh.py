"""The server's side of SSH, in one thread and with one suite: as little as a host can cost.

Where a thousand simulated hosts and the client that is measured share two cores, each millisecond
of a server is one that the client does not have. What OpenSSH 9.2 offers first and our client asks
for: curve25519-sha256, ecdsa-sha2-nistp256 and aes128-gcm@openssh.com (RFC 4253, 4252, 4254, 5647,
5656, 8731). A key exchange a connection, one channel, one command.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEY_TYPE: Final = b"ecdsa-sha2-nistp256"

_VERSION: Final = b"SSH-2.0-cheap"
_CIPHER: Final = b"aes128-gcm@openssh.com"
_KEX: Final = b"curve25519-sha256,curve25519-sha256@libssh.org"  # two names of one thing
_SUITE: Final = (_KEX, KEY_TYPE, _CIPHER, _CIPHER, b"hmac-sha2-256", b"hmac-sha2-256",
                 b"none", b"none", b"", b"")  # fmt: skip
_TAG_BYTES: Final = 16
_PACKET_MOST: Final = 32768
_WINDOW: Final = 1 << 30  # what a client may say: more than any does
_READ_BYTES: Final = 1 << 16


class ProtocolError(Exception):
    """The client said what no client of ours says."""


class Shell(Protocol):
    """What runs on a host."""

    def start(self, command: bytes) -> None:
        """The command of the channel."""

    def feed(self, data: bytes) -> None:
        """More of its stdin."""

    def end(self) -> None:
        """Its stdin ended, or the client left."""


def string(data: bytes | memoryview) -> bytes:
    """A string on the wire."""
    return struct.pack(">I", len(data)) + data


def mpint(number: int) -> bytes:
    """A positive integer on the wire."""
    return string(number.to_bytes(number.bit_length() // 8 + 1, "big"))


def public_blob(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key as SSH has it."""
    point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return string(KEY_TYPE) + string(b"nistp256") + string(point)


class Reader:
    """The fields of a packet, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """So many bytes."""
        if self._at + count > len(self._data):
            raise ProtocolError("a packet ends too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self) -> int:
        """A uint32."""
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        """A string."""
        return self.take(self.number())

    def flag(self) -> bool:
        """A boolean."""
        return self.take(1) != b"\0"


class _Sealed:
    """One direction of AES-GCM: a key, and a nonce that counts."""

    def __init__(self, key: bytes, first: bytes) -> None:
        self._cipher = AESGCM(key)
        self._fixed = first[:4]
        self._count = int.from_bytes(first[4:12], "big")

    def _nonce(self) -> bytes:
        nonce = self._fixed + self._count.to_bytes(8, "big")
        self._count = self._count + 1 & 0xFFFFFFFFFFFFFFFF
        return nonce

    def seal(self, size: bytes, data: bytes) -> bytes:
        return self._cipher.encrypt(self._nonce(), data, size)

    def open(self, size: bytes, data: bytes) -> bytes:
        return self._cipher.decrypt(self._nonce(), data, size)


class Connection:
    """One client. ``readable`` and ``writable`` are called when the socket is; neither waits.

    Both are false where this is over, and ``close`` is next: a client that we cannot follow is
    told of on stderr.

    ``accepts``: the one public key that may log in, under any name. ``shell`` is made when a
    command comes, and says its part by ``say``.
    """

    def __init__(
        self,
        sock: socket.socket,
        host_key: ec.EllipticCurvePrivateKey,
        accepts: ec.EllipticCurvePublicKey,
        shell: Callable[[Connection], Shell],
    ) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self._host_key = host_key
        self._accepts = accepts
        self._make_shell = shell
        self._shell: Shell | None = None
        self._in = bytearray()
        self._out = bytearray()
        self._opens: _Sealed | None = None
        self._seals: _Sealed | None = None
        self._next_opens: _Sealed | None = None
        self._client_version = b""
        self._client_init = b""
        self._session = b""
        self._user_may = False
        self._channel = b""
        self._hung_up = False
        self._window = 0
        self._packet_most = 0
        self._unsaid: deque[tuple[int, memoryview]] = deque()
        self._own_init = b"\x14" + os.urandom(16) + b"".join(map(string, _SUITE)) + bytes(5)
        self._out += _VERSION + b"\r\n"
        self._send(self._own_init)

    # --- the socket -----------------------------------------------------------------------------

    def readable(self) -> bool:
        """Take what came."""
        try:
            data = self.sock.recv(_READ_BYTES)
            if not data:
                return False
            self._in += data
            while (packet := self._packet()) is not None:
                self._handle(packet)
        except BlockingIOError:
            return True
        except (ProtocolError, ValueError, InvalidSignature, InvalidTag) as error:
            print(f"simulated host: {type(error).__name__}: {error}", file=sys.stderr)
            return False
        except OSError:
            return False
        return self.writable()

    def writable(self) -> bool:
        """Send what waits."""
        try:
            while self._out:
                del self._out[: self.sock.send(self._out)]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    @property
    def waits(self) -> bool:
        """True while there is something to be sent."""
        return bool(self._out)

    def close(self) -> None:
        """The client is gone, or shall go."""
        if self._shell is not None:
            self._shell.end()
        self.sock.close()

    # --- packets --------------------------------------------------------------------------------

    def _packet(self) -> bytes | None:
        """The next whole one's payload."""
        if not self._client_version:
            end = self._in.find(b"\n")
            if end < 0:
                return None
            self._client_version = bytes(self._in[:end]).rstrip(b"\r")
            del self._in[: end + 1]
        if len(self._in) < 4:
            return None
        size = int.from_bytes(self._in[:4], "big")
        if not 8 <= size <= 4 * _PACKET_MOST:
            raise ProtocolError(f"a packet of {size} bytes")
        whole = 4 + size + (_TAG_BYTES if self._opens else 0)
        if len(self._in) < whole:
            return None
        head, body = bytes(self._in[:4]), bytes(self._in[4:whole])
        del self._in[:whole]
        if self._opens:
            body = self._opens.open(head, body)
        return body[1 : len(body) - body[0]]

    def _send(self, payload: bytes) -> None:
        # The length is encrypted with neither; without AES-GCM it counts for the padding.
        block, counted = (16, 1) if self._seals else (8, 5)
        padding = block - (counted + len(payload)) % block
        padding += block if padding < 4 else 0
        body = bytes((padding,)) + payload + bytes(padding)
        size = struct.pack(">I", len(body))
        self._out += size + (self._seals.seal(size, body) if self._seals else body)

    def _handle(self, packet: bytes) -> None:
        fields = Reader(packet)
        match fields.take(1)[0]:
            case 20:  # KEXINIT
                if self._client_init:
                    raise ProtocolError("new keys are not for connections as short as ours")
                self._client_init = packet
            case 30 if self._client_init and not self._session:  # KEX_ECDH_INIT
                self._exchange(fields.string())
            case 21 if self._session:  # NEWKEYS
                self._opens = self._next_opens
            case 5:  # SERVICE_REQUEST
                self._send(b"\x06" + string(fields.string()))
            case 50 if self._session:  # USERAUTH_REQUEST
                self._log_in(fields, packet)
            case 80:  # GLOBAL_REQUEST: a keepalive
                fields.string()
                if fields.flag():
                    self._send(b"\x52")
            case 90 if self._user_may:  # CHANNEL_OPEN
                self._open(fields)
            case 98:  # CHANNEL_REQUEST
                self._request(fields)
            case 93:  # CHANNEL_WINDOW_ADJUST
                fields.number()
                self._window += fields.number()
                self._flush()
            case 94 if self._shell:  # CHANNEL_DATA
                fields.number()
                self._shell.feed(fields.string())
            case 96 if self._shell:  # CHANNEL_EOF: a shell ends by it
                self._shell.end()
                self.hang_up()
            case 97:  # CHANNEL_CLOSE
                self.hang_up()
            case 1:  # DISCONNECT
                raise ConnectionResetError
            case 2 | 3 | 4 | 7 | 95:  # IGNORE, UNIMPLEMENTED, DEBUG, EXT_INFO; stderr to us
                pass
            case kind:
                raise ProtocolError(f"message {kind}")

    # --- keys and login -------------------------------------------------------------------------

    def _exchange(self, theirs: bytes) -> None:
        own = x25519.X25519PrivateKey.generate()
        shared = own.exchange(x25519.X25519PublicKey.from_public_bytes(theirs))
        point = own.public_key().public_bytes_raw()
        secret = mpint(int.from_bytes(shared, "big"))
        host_key = public_blob(self._host_key.public_key())
        told = (self._client_version, _VERSION, self._client_init, self._own_init, host_key,
                theirs, point)  # fmt: skip
        self._session = hashlib.sha256(b"".join(map(string, told)) + secret).digest()
        pair = utils.decode_dss_signature(
            self._host_key.sign(self._session, ec.ECDSA(hashes.SHA256()))
        )
        signature = string(KEY_TYPE) + string(b"".join(map(mpint, pair)))
        self._send(b"\x1f" + string(host_key) + string(point) + string(signature))
        self._send(b"\x15")

        def derived(letter: bytes) -> bytes:
            told = secret + self._session + letter + self._session
            return hashlib.sha256(told).digest()

        self._next_opens = _Sealed(derived(b"C")[:16], derived(b"A")[:12])
        self._seals = _Sealed(derived(b"D")[:16], derived(b"B")[:12])

    def _log_in(self, fields: Reader, packet: bytes) -> None:
        fields.string()  # any name
        fields.string()
        known = public_blob(self._accepts)
        if fields.string() == b"publickey":
            signed, kind, key = fields.flag(), fields.string(), fields.string()
            if (kind, key) == (KEY_TYPE, known):
                if not signed:
                    self._send(b"\x3c" + string(kind) + string(key))
                    return
                blob = fields.string()
                self._verify(blob, string(self._session) + packet[: -len(string(blob))])
                self._user_may = True
                self._send(b"\x34")
                return
        self._send(b"\x33" + string(b"publickey") + b"\0")

    def _verify(self, blob: bytes, signed: bytes) -> None:
        signature = Reader(blob)
        signature.string()
        pair = Reader(signature.string())
        r, s = (int.from_bytes(pair.string(), "big") for _ in range(2))
        self._accepts.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))

    # --- the channel ----------------------------------------------------------------------------

    def _open(self, fields: Reader) -> None:
        if fields.string() != b"session" or self._channel:
            raise ProtocolError("one session")
        self._channel = fields.take(4)
        self._window, most = fields.number(), fields.number()
        self._packet_most = min(most, _PACKET_MOST)
        self._send(b"\x5b" + self._channel + bytes(4) + struct.pack(">II", _WINDOW, _PACKET_MOST))

    def _request(self, fields: Reader) -> None:
        fields.number()
        kind, reply = fields.string(), fields.flag()
        runs = kind == b"exec" and self._shell is None
        if reply:
            self._send((b"\x63" if runs else b"\x64") + self._channel)
        if runs:
            self._shell = self._make_shell(self)
            self._shell.start(fields.string())

    def say(self, stdout: bytes, stderr: bytes = b"") -> None:
        """Output of the command, as far as the client has room for it now; the rest later."""
        for stream, data in ((0, stdout), (1, stderr)):
            if data:
                self._unsaid.append((stream, memoryview(data)))
        self._flush()

    def hang_up(self) -> None:
        """Close the channel, once."""
        if self._channel and not self._hung_up:
            self._hung_up = True
            self._send(b"\x61" + self._channel)

    def _flush(self) -> None:
        while self._unsaid and self._window:
            stream, data = self._unsaid.popleft()
            most = min(self._window, self._packet_most)
            if len(data) > most:
                self._unsaid.appendleft((stream, data[most:]))
                data = data[:most]
            self._window -= len(data)
            kind = b"\x5f" + self._channel + b"\0\0\0\x01" if stream else b"\x5e" + self._channel
            self._send(kind + string(data))
