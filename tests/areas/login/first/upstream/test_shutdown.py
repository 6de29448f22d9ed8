"""Tests of a stop of the service while a login waits for its home server."""

import socket
import threading
from pathlib import Path

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REQUEST, Request, SharedSecret, decode, encode_reply
from tests.running_service import running_service

SECRET, HOME_SECRET = "between-nas-and-service", "between-service-and-home"
ONE = {"orgId": 1, "tenantId": 1, "domainId": 1}


def received(home: socket.socket) -> tuple[Request, tuple[str, int]]:
    """Return the next login that the home server receives."""
    while True:
        datagram, source = home.recvfrom(4096)
        request = decode(datagram, SharedSecret(HOME_SECRET.encode()))
        if request.code == ACCESS_REQUEST:
            return request, source


def test_a_login_that_waits_is_answered_before_the_end(tmp_path: Path) -> None:
    """If the home server answers after the stop began, the login is still answered and recorded."""
    with socket.socket(type=socket.SOCK_DGRAM) as home, running_service(tmp_path) as service:
        home.bind(("127.0.0.1", 0))
        home.settimeout(20)
        service.add_client("nas", "127.0.0.1", SECRET)
        server = {"host": "127.0.0.1", "port": home.getsockname()[1], "secret": HOME_SECRET}
        body = {"firstFactor": "radius", "radius": {"servers": [server], "statusCheck": False}}
        service.post("/ad/SetFirstFactor", {**ONE, **body})
        with service.radius(SECRET) as nas:
            for user in ("ann", "bob"):  # the first login resolves the server's name; the second finds it resolved
                login = nas.packet(user, "hello")
                nas.send(login)
                request, source = received(home)
                if user == "bob":
                    stopping = threading.Thread(target=service.stop)
                    stopping.start()
                    while stopping.is_alive() and "stopping" not in service.log():
                        stopping.join(0.05)
                home.sendto(encode_reply(ACCESS_ACCEPT, request, SharedSecret(HOME_SECRET.encode())), source)
                assert nas.receive(login)[0] == ACCESS_ACCEPT
            stopping.join()
        assert service.rows("select user_name, applied_decision from events order by id") == [
            ("ann", "accept"),
            ("bob", "accept"),
        ]
