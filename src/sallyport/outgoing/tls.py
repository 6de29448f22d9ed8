"""TLS for connections to servers that a tenant configures. The parameters that a server chooses must not block the
event loop.

A server chooses the Diffie-Hellman group, and the certificates that its client has to verify. A handshake with a prime
of 9,900 bits took 2.4 s, and a handshake with `ffdhe8192` took 0.6 s. Therefore the TLS contexts do not offer the
finite-field ciphers of TLS 1.2. `secured` does the arithmetic of a handshake in a worker thread, where `ssl` releases
the interpreter lock.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from typing import Final, cast

import trio

from sallyport.outgoing.pem import certificates_pem, key_pem

_CIPHERS: Final = "ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
_READ: Final = 16 << 10


def client_context(authorities: str | None = None) -> ssl.SSLContext:
    """Return a context that verifies servers.

    authorities: the trusted certificates in PEM. If None, the system's trust store is read, which takes 20 ms. Raises
    PemError if `authorities` has no certificate, or has a certificate that is not accepted.
    """
    trusted = None if authorities is None else certificates_pem(authorities)
    context = ssl.create_default_context(cadata=trusted)
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION  # a renegotiation would run on the event loop
    return context


def unverified_context() -> ssl.SSLContext:
    """Return a context that accepts every server certificate. Use the context only to read the certificate, and send no
    request through it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers(_CIPHERS)
    return context


def show_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Configure a context to present a client certificate. certificate, key: PEM texts.

    Raises PemError if the certificate or the key is not accepted. Raises ssl.SSLError if the key does not belong to the
    certificate.
    """
    pems = f"{certificates_pem(certificate)}{key_pem(key)}"
    kept = os.memfd_create("certificate", os.MFD_CLOEXEC)  # ssl reads only files, and a key must not be on disk
    try:
        os.write(kept, pems.encode())
        context.load_cert_chain(f"/proc/self/fd/{kept}")
    finally:
        os.close(kept)


class LazyContext:
    """A TLS context that is created in a worker thread on first use."""

    def __init__(self, make: Callable[[], ssl.SSLContext]) -> None:
        self._make = make
        self._made: ssl.SSLContext | None = None
        self._making = trio.Lock()

    async def get(self) -> ssl.SSLContext:
        """Return the context. Raises PemError or ssl.SSLError if the context cannot be created."""
        async with self._making:
            if self._made is None:
                self._made = await trio.to_thread.run_sync(self._make)
            return self._made


class _Wrapper:
    """A wrapper of a context for `trio.SSLStream`. It gives access to the connection's TLS object and buffers."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self.incoming: ssl.MemoryBIO
        self.outgoing: ssl.MemoryBIO
        self.connection: ssl.SSLObject

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **options: object) -> ssl.SSLObject:
        """Return a new TLS object of the context."""
        self.incoming, self.outgoing = incoming, outgoing
        self.connection = self._context.wrap_bio(incoming, outgoing, **options)  # type: ignore[arg-type]
        return self.connection


async def secured(
    stream: trio.SocketStream, context: ssl.SSLContext, host: str, threads: trio.CapacityLimiter
) -> trio.SSLStream[trio.SocketStream]:
    """Do a TLS handshake on a stream, with its arithmetic in worker threads, and return the encrypted stream.

    host: the name that the server's certificate must have. threads: the limit of the tenant's concurrent handshakes.

    Raises trio.BrokenResourceError if the handshake fails or the certificate is not trusted. The cause of the error is
    an ssl.SSLError.
    """
    wrapper = _Wrapper(context)
    tls = trio.SSLStream(stream, cast("ssl.SSLContext", wrapper), server_hostname=host, https_compatible=True)
    while not await trio.to_thread.run_sync(_step, wrapper.connection, limiter=threads):
        if pending := wrapper.outgoing.read():
            await stream.send_all(pending)
        octets = await stream.receive_some(_READ)
        if octets:
            wrapper.incoming.write(octets)
        else:
            wrapper.incoming.write_eof()
    await tls.do_handshake()  # the handshake is complete: this sends the last octets
    return tls


def _step(connection: ssl.SSLObject) -> bool:
    """Advance a handshake. Return whether it is complete."""
    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError as error:
        raise trio.BrokenResourceError from error
    return True
