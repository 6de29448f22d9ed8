"""Connections of the API in one process. Each sends its next request as soon as it has the answer to the last one."""

import json
import socket
import threading
import time
from array import array
from collections.abc import Sequence
from itertools import cycle
from typing import Final

from sallyport.base.wire import Row
from sallyport.cli.benchmark.traffic import HOST, LoadError, Traffic

TIMEOUT_S: Final = 30.0
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_CHUNK: Final = 1 << 17


def post(path: str, body: Row, token: str) -> bytes:
    """Return a POST request in octets."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nX-Authorization: {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def receive(connection: socket.socket) -> None:
    """Receive one answer. Raises LoadError if its status is not 200."""
    octets = bytearray()
    while (end := octets.find(_END)) < 0:
        octets += _some(connection)
    if not octets.startswith(b"HTTP/1.1 200"):
        raise LoadError(f"the API has answered {bytes(octets[:200]).decode(errors='replace')}")
    length = octets[octets.index(_LENGTH) + len(_LENGTH) :].split(b"\r", 1)[0]
    left = end + len(_END) + int(length) - len(octets)
    while left > 0:
        left -= len(_some(connection))


def _some(connection: socket.socket) -> bytes:
    octets = connection.recv(_CHUNK)
    if not octets:
        raise LoadError("the API has closed a connection")
    return octets


def read_lists(port: int, requests: Sequence[bytes], connections: int, seconds: float) -> Traffic:
    """Keep connections busy with these requests for some seconds. Return what was answered. Raises LoadError."""
    began, cpu_began = time.perf_counter(), time.process_time()
    latencies = [array("d") for _ in range(connections)]
    errors: list[Exception] = []

    def send(own: "array[float]", end: float) -> None:
        try:
            with socket.create_connection((HOST, port), timeout=TIMEOUT_S) as connection:
                for request in cycle(requests):
                    sent = time.perf_counter()
                    connection.sendall(request)
                    receive(connection)
                    now = time.perf_counter()
                    own.append(now - sent)
                    if now >= end:
                        return
        except (OSError, LoadError) as error:
            errors.append(error)

    threads = [threading.Thread(target=send, args=(own, began + seconds)) for own in latencies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0] if isinstance(errors[0], LoadError) else LoadError(f"the API: {errors[0]}")
    found = Traffic(sum(map(len, latencies)), time.perf_counter() - began, time.process_time() - cpu_began)
    for own in latencies:
        found.latencies.extend(own)
    return found
