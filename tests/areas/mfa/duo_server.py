"""A simulated Duo Auth API v2.

It checks signatures of versions 2 and 5 as Duo does. The code that checks signatures does not come from the service;
test_duo.py tests it with the vendor's client. `python -m tests.areas.mfa.duo_server PORT USER` runs it for the commands
of the documentation.
"""

import hashlib
import hmac
import json
import sys
from base64 import b64decode
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import trio

from sallyport.areas.mfa.contract import Behaviour
from sallyport.base.clock import now_us
from tests.areas.mfa.host import USER
from tests.areas.mfa.web import Call, Reply, WebServer

IKEY, SKEY = "DIXYZV6YM8IFYVWBINCA", "yWHSMhWucAcp7qvuH3HWTaSaKABs8Gaddiv1NIRo"
CODE = "123456"


def _quoted(parameters: dict[str, str]) -> str:
    pairs = sorted((quote(name, safe="~"), quote(value, safe="~")) for name, value in parameters.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def _sha512(octets: bytes) -> str:
    return hashlib.sha512(octets).hexdigest()


def signature_holds(call: Call) -> bool:
    """Return whether Duo would accept the request.

    It must have a signature of version 2 or 5 that is at most five minutes old.
    """
    ikey, _, given = b64decode(call.headers["authorization"].removeprefix("Basic ")).decode().partition(":")
    date = call.headers["date"]
    if abs(parsedate_to_datetime(date).timestamp() - now_us() / 1e6) > 300:
        return False
    lines = [date, call.method, "127.0.0.1", call.path, _quoted(call.parameters)]
    version_5 = [*lines, _sha512(call.body), _sha512(b"")]
    candidates = ["\n".join(lines), "\n".join(version_5)]
    expected = [hmac.new(SKEY.encode(), text.encode(), hashlib.sha512).hexdigest() for text in candidates]
    return ikey == IKEY and given in expected


class DuoServer:
    """A user with a phone.

    user: the name of the user. status: the status in the answer of auth_status. capabilities: the capabilities of the
    phone. result: the result of preauth. denied_as: the status of a push that the user has not approved. skew_s:
    the error of the server's clock. txid: the id of each push, instead of a new one.
    """

    def __init__(self, user: str = USER) -> None:
        self.user = user
        self.web: WebServer
        self.prompts = 0
        self.calls: list[Call] = []
        self.result = "auth"
        self.capabilities = ["auto", "push", "mobile_otp"]
        self.passcode_status = "deny"
        self.denied_as = "deny"
        self.skew_s = 0
        self.txid: object = None

    async def __call__(self, call: Call) -> Reply:
        """Answer a request."""
        self.calls.append(call)
        if call.path == "/auth/v2/ping":
            return _ok({"time": now_us() // 1_000_000 + self.skew_s})
        if "authorization" not in call.headers or not signature_holds(call):
            return _fail(401, 40103, "Invalid signature in request credentials")
        is_json = call.headers.get("content-type") == "application/json"
        parameters = json.loads(call.body) if is_json else call.parameters
        answer = {
            ("GET", "/auth/v2/check"): self._check,
            ("POST", "/auth/v2/preauth"): self._preauth,
            ("POST", "/auth/v2/auth"): self._auth,
            ("GET", "/auth/v2/auth_status"): self._status,
        }[call.method, call.path]
        return await answer(parameters)

    async def _check(self, parameters: dict[str, str]) -> Reply:
        return _ok({"time": 1})

    async def _preauth(self, parameters: dict[str, str]) -> Reply:
        if self.web.behaviour is Behaviour.UNKNOWN_USER:
            return _ok({"result": "enroll", "enroll_portal_url": "https://x.invalid/"})
        if not parameters["username"].strip():
            return _fail(400, 40002, "Invalid request parameters")
        assert parameters["username"] == self.user
        return _ok({"result": self.result, "devices": [{"device": "DP1", "capabilities": self.capabilities}]})

    async def _auth(self, parameters: dict[str, str]) -> Reply:
        if parameters["factor"] == "passcode":
            right = parameters["passcode"] == CODE and self.web.behaviour in {Behaviour.APPROVE, Behaviour.WAIT}
            if not parameters["passcode"]:
                return _fail(400, 40002, "Invalid request parameters")
            status = "allow" if right else self.passcode_status
            return _ok({"result": "allow" if right else "deny", "status": status, "status_msg": "x"})
        assert (parameters["factor"], parameters["device"], parameters["async"]) == ("push", "auto", "1")
        self.prompts += 1
        return _ok({"txid": f"tx-{self.prompts}" if self.txid is None else self.txid})

    async def _status(self, parameters: dict[str, str]) -> Reply:
        assert parameters["txid"].startswith("tx-")
        if self.web.behaviour is Behaviour.WAIT:
            with trio.move_on_after(5):
                await self.web.changed.wait()
        result = {Behaviour.APPROVE: "allow", Behaviour.DENY: "deny"}.get(self.web.behaviour, "waiting")
        return _ok(
            {
                "result": result,
                "status": {"waiting": "pushed", "deny": self.denied_as}.get(result, result),
                "status_msg": "x",
            }
        )


def _ok(response: object) -> Reply:
    return Reply(200, {"stat": "OK", "response": response})


def _fail(status: int, code: int, message: str) -> Reply:
    return Reply(status, {"stat": "FAIL", "code": code, "message": message})


async def serve(port: int, user: str) -> None:
    """Serve the API on a port of 127.0.0.1 until cancelled. user: the name of the enrolled user."""
    duo = DuoServer(user)
    duo.web = WebServer(duo)
    await trio.serve_tcp(duo.web.serve, port, host="127.0.0.1")


if __name__ == "__main__":
    trio.run(serve, int(sys.argv[1]), sys.argv[2])
