"""What an authority publishes on a small HTTP server: lists and responses; and a client with its certificate."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.areas.authorities.revocation.issuer import Issuer


class Web:
    """A server with lists and a responder. bodies: the answers by path; None for no answer at all. stalled: the paths
    whose answers stop in the middle. respond: the
    function that answers requests at other paths, one at a time; None for status 404. requests: the number of requests
    by path."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes | None] = {}
        self.stalled = set[str]()
        self.respond: Callable[[bytes], bytes] | None = None
        self.requests = Counter[str]()
        self.released = threading.Event()
        self._turn = threading.Lock()
        self.port = 0

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        request = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.requests[handler.path] += 1
        body = self.bodies.get(handler.path)
        if body is None and handler.path in self.bodies:
            self.released.wait()
            return
        if body is None and self.respond is not None:
            with self._turn:
                body = self.respond(request)
        handler.send_response(404 if body is None else 200)
        handler.send_header("Content-Length", str(len(body or b"")))
        handler.end_headers()
        if handler.path in self.stalled:
            handler.wfile.write((body or b"")[:100])
            self.released.wait()
            return
        handler.wfile.write(body or b"")

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving() -> Iterator[Web]:
    """Run a server until the block ends."""
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer with a list."""
            web.answer(self)

        def do_POST(self) -> None:
            """Answer with a response."""
            web.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        web.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield web
        finally:
            web.released.set()
            server.shutdown()
            thread.join()


def by_certificate(directory: Path, client: Issuer, authority: Path) -> str:
    """Return the lines for a wpa_supplicant network with EAP-TLS. The client's key is written into the directory.

    authority: the file of the authority of the server's certificate.
    """
    file = directory / "client.pem"
    key = client.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(key + client.certificate.public_bytes(Encoding.PEM))
    lines = (
        f'ca_cert="{authority}"', "eap=TLS", 'identity="anonymous"', f'client_cert="{file}"', f'private_key="{file}"',
    )  # fmt: skip
    return "\n".join(lines)
