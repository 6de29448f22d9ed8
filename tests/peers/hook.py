"""A customer's webhook in the test's process. It checks each signature, and a test sets the answers of its users.

with Hook() as hook:
    service.post("/ad/SetMFAProvider", {**ids, "provider": "webhook", **hook.fields})
    hook.will("bob", "approved", after_s=1)

A user whose answer is not set does not answer. `close` ends the webhook with all its connections, as a kill does.
`open` starts it again on the same port.
"""

import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

SECRET = "the hook's own secret"
Misbehaviour = Callable[["Handler"], None]


@dataclass(frozen=True)
class Will:
    """The answer of a user, and the time at which it is given, in seconds of the monotonic clock."""

    status: str
    at: float


class Hook:
    """The webhook server.

    tls: the TLS context of the server, whose name is then `localhost`. misbehave: a function that handles a request
    instead of the server. traces: the headers `traceparent` of the requests about each challenge. prompted_at: the time
    of the first request about each challenge, in seconds of the monotonic clock. patience_s: how far the time of a
    signature may be from the present.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls
        self._wills: dict[str, tuple[str, float]] = {}
        self._decided: dict[str, Will] = {}
        self._server: Server | None = None
        self.port = 0
        self.prompts: list[dict[str, Any]] = []
        self.traces: dict[str, set[str]] = {}
        self.prompted_at: dict[str, float] = {}
        self.polls = 0
        self.forged = 0
        self.patience_s = 60.0
        self.misbehave: Misbehaviour | None = None
        self.closing = threading.Event()

    def __enter__(self) -> "Hook":
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields of the provider for SetMFAProvider."""
        origin = f"http://127.0.0.1:{self.port}" if self.tls is None else f"https://localhost:{self.port}"
        return {"url": f"{origin}/hook", "secret": SECRET}

    def open(self) -> None:
        """Listen. After a `close`, listen on the same port again."""
        self.closing.clear()
        self._server = server = Server(("127.0.0.1", self.port), Handler)
        server.hook, server.tls = self, self.tls
        self.port = server.server_address[1]
        server.thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        server.thread.start()

    def close(self) -> None:
        """End the server if it is running."""
        self.closing.set()
        if self._server is not None:
            self._server.end()
            self._server = None

    def will(self, user: str, status: str, *, after_s: float = 0.0) -> None:
        """Set the user's answer to the current prompt and to later prompts."""
        self._wills[user] = status, after_s
        for prompt in [prompt for prompt in self.prompts if prompt["user"] == user]:
            self._decided.setdefault(prompt["challenge_id"], Will(status, time.monotonic() + after_s))

    def prompts_of(self, user: str) -> int:
        """Return the number of prompts of a user. Each challenge_id counts once."""
        return len({prompt["challenge_id"] for prompt in self.prompts if prompt["user"] == user})

    def wait_for_prompt(self, user: str, count: int = 1) -> None:
        """Wait until a user has got `count` prompts. Fail after 10 seconds."""
        deadline = time.monotonic() + 10
        while self.prompts_of(user) < count:
            assert time.monotonic() < deadline, f"{user} was prompted {self.prompts_of(user)} times"
            time.sleep(0.01)

    # --- what it answers --------------------------------------------------------------------------------------

    def signed(self, headers: dict[str, str], body: bytes) -> bool:
        """Return whether X-Sallyport-Signature is right and recent."""
        timestamp = headers.get("x-sallyport-timestamp", "")
        right = hmac.new(SECRET.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
        given = headers.get("x-sallyport-signature", "")
        is_right = hmac.compare_digest(right, given) and abs(int(timestamp) - time.time()) < self.patience_s
        self.forged += not is_right
        return is_right

    def asked(self, body: bytes) -> tuple[int, dict[str, str]]:
        """Return the answer to a POST."""
        asked = json.loads(body)
        if asked["type"] == "enrolment":
            return 200, {"status": "unknown_user" if asked["user"] == "nobody" else "enrolled"}
        status, after_s = self._wills.get(asked["user"], ("", 0.0))
        self.prompts.append(asked)
        self.prompted_at.setdefault(asked["challenge_id"], time.monotonic())
        if status == "unknown_user":
            return 200, {"status": status}
        if status:
            self._decided.setdefault(asked["challenge_id"], Will(status, time.monotonic() + after_s))
        return 202, {"poll_url": f"/poll/{asked['challenge_id']}"}

    def polled(self, challenge_id: str) -> tuple[int, dict[str, str]]:
        """Return the answer to a GET request to a poll_url."""
        self.polls += 1
        will = self._decided.get(challenge_id)
        decided = will is not None and time.monotonic() >= will.at
        return 200, {"status": will.status if will is not None and decided else "waiting"}


class Server(ThreadingHTTPServer):
    """A server with a thread for each connection. All threads end with the server."""

    daemon_threads = False
    block_on_close = True
    hook: Hook
    tls: ssl.SSLContext | None = None
    thread: threading.Thread

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Record the connection, so that `end` can break it."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Make the TLS handshake in the connection's own thread.

        If the client does not trust the certificate, end the connection.
        """
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(10)
        with suppress(OSError), self.tls.wrap_socket(request.dup(), server_side=True) as secured:
            super().finish_request(secured, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Record that the connection has ended."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken connection."""

    def end(self) -> None:
        """Stop listening, and break every connection."""
        self.shutdown()
        self.thread.join()
        self.socket.close()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_POST(self) -> None:
        """Answer a question."""
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        """Answer with the state of a prompt."""
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        hook = self.server.hook
        if hook.misbehave is not None:
            self.close_connection = True
            hook.misbehave(self)
        elif not hook.signed({name.lower(): value for name, value in self.headers.items()}, body):
            self.say(401, {})
        else:
            about = json.loads(body).get("challenge_id", "") if body else self.path.rpartition("/")[2]
            hook.traces.setdefault(about, set()).add(self.headers.get("traceparent", ""))
            self.say(*(hook.asked(body) if body else hook.polled(about)))

    def say(self, status: int, document: object, **headers: str) -> None:
        """Send a JSON answer."""
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
