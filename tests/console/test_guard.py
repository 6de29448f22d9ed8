"""The guard behind a proxy: which connections count as encrypted, and which forms are the service's own."""

import pytest
from starlette.requests import Request
from starlette.responses import Response

from sallyport.base.errors import Forbidden
from sallyport.console.guard import SESSION, TOKEN, Guard, form_token, local_path

PUBLIC = "https://console.example"
PROXIED = ("192.0.2.9", 0)
"""The client of a request that a trusted proxy has forwarded."""
DIRECT = ("192.0.2.9", 50000)


def request(client: tuple[str, int], body: str = "", **headers: str) -> Request:
    """Return a request without TLS."""
    octets = body.encode()
    given = {"host": "console.example", "content-type": "application/x-www-form-urlencoded", **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": octets, "more_body": False}

    scope = {"type": "http", "method": "POST", "scheme": "http", "path": "/", "headers": raw, "client": client}
    return Request(scope, receive)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("public_url", "client", "is_private"),
    [(PUBLIC, PROXIED, True), (PUBLIC, DIRECT, False), ("", PROXIED, False), ("http://x", PROXIED, False)],
    ids=["proxy with TLS", "past the proxy", "proxy without public_url", "proxy without TLS"],
)
def test_a_password_may_come_through_a_trusted_proxy_with_tls(
    public_url: str, client: tuple[str, int], is_private: bool
) -> None:
    """Only a trusted proxy can have forwarded a request with TLS, and `public_url` tells that it has."""
    assert Guard(public_url).is_private(request(client)) == is_private


@pytest.mark.parametrize(("host", "is_secure"), [("console.example", True), ("10.0.0.1:8080", False)])
def test_the_cookie_behind_a_proxy_is_for_tls_alone(host: str, is_secure: bool) -> None:
    """At the public address the cookie has the prefix and the flag of TLS; at another address it would be lost."""
    response = Response()
    Guard(PUBLIC).set_cookie(request(PROXIED, host=host), response, SESSION, "key")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-sallyport=key" if is_secure else "sallyport=key")
    assert ("Secure" in cookie) == is_secure


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("https://console.example", "console.example", True),
        ("https://console.example", "127.0.0.1:8080", True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", True),
        ("https://evil.example", "console.example", False),
        ("https://console.example.evil.example", "console.example", False),
    ],
    ids=["same", "proxy that changes the host", "direct", "other", "longer name"],
)
async def test_a_form_comes_from_the_service(origin: str, host: str, is_own: bool) -> None:
    """The origin of a form is the address of the request, or the public address behind a proxy."""
    asked = request(PROXIED, f"{TOKEN}={form_token('key')}&name=ann", origin=origin, host=host)
    if is_own:
        assert (await Guard(PUBLIC).fields(asked, "key"))["name"] == "ann"
    else:
        with pytest.raises(Forbidden, match="another site"):
            await Guard(PUBLIC).fields(asked, "key")


@pytest.mark.parametrize(
    ("text", "path"),
    [("/logins?user=a&b=%20", "/logins?user=a&b=%20"), ("//evil", "/"), ("/\\evil", "/"), ("/a\nb", "/"), ("", "/")],
)
def test_a_next_page_is_a_local_path(text: str, path: str) -> None:
    """Anything but a path of this service becomes the home page."""
    assert local_path(text) == path
