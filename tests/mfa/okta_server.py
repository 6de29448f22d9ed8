"""A simulated Okta Factors API."""

from typing import ClassVar
from urllib.parse import unquote

from sallyport.mfa.contract import Behaviour
from tests.mfa.host import USER
from tests.mfa.web import Call, Reply, WebServer

TOKEN = "00QCjAl4MlV-WPXM_ApiTokenOfTheTests"
CODE = "123456"
PUSH = {"id": "opf3hkfocI4JTLAju0g4", "factorType": "push", "status": "ACTIVE"}
TOTP = {"id": "ostf1fmaMGJLMNGNLIVG", "factorType": "token:software:totp", "status": "ACTIVE"}
PENDING = {"id": "xyz", "factorType": "push", "status": "PENDING_ACTIVATION"}
SMS = {"id": "smsgl1", "factorType": "sms", "status": "ACTIVE"}
USER_PATH = "/api/v1/users/00u15s1KDETTQMQYABRL"


class OktaServer:
    """One user with factors."""

    everything: ClassVar = [PENDING, SMS, PUSH, TOTP]

    def __init__(self) -> None:
        self.web: WebServer
        self.prompts = 0
        self.factors: list[dict[str, str]] = list(self.everything)
        self.status = "ACTIVE"
        self.token_allowed = True
        self.cancelled: list[str] = []
        self.poll_origin: str | None = None

    async def __call__(self, call: Call) -> Reply:
        """Answer a request."""
        assert call.headers["user-agent"].startswith("Sallyport/")
        if call.headers.get("authorization") != f"SSWS {TOKEN}":
            return Reply(401, {"errorCode": "E0000011"})
        if call.path == f"{USER_PATH}/factors/{PUSH['id']}/transactions/v2mst.1":
            return self._transaction(call)
        if call.path.endswith("/verify"):
            return self._verify(call)
        if call.path == f"{USER_PATH}/factors":
            return Reply(200, self.factors)
        prefix, _, login = call.path.rpartition("/")
        assert prefix == "/api/v1/users"
        if unquote(login) != USER or self.web.behaviour is Behaviour.UNKNOWN_USER:
            is_name = bool(unquote(login).strip())
            return Reply(404, {"errorCode": "E0000007"}) if is_name else Reply(400, {"errorCode": "E0000001"})
        return Reply(200, {"id": USER_PATH.rpartition("/")[2], "status": self.status})

    def _transaction(self, call: Call) -> Reply:
        if call.method == "DELETE":
            self.cancelled.append(call.path)
            return Reply(200, {})
        if self.web.behaviour is Behaviour.WAIT:
            return Reply(200, self._waiting())
        return Reply(200, {"factorResult": "SUCCESS" if self.web.behaviour is Behaviour.APPROVE else "REJECTED"})

    def _verify(self, call: Call) -> Reply:
        assert call.method == "POST"
        if call.path == f"{USER_PATH}/factors/{TOTP['id']}/verify":
            return self._code(call)
        assert call.path == f"{USER_PATH}/factors/{PUSH['id']}/verify"
        self.prompts += 1
        return Reply(201, self._waiting())

    def _code(self, call: Call) -> Reply:
        if not self.token_allowed:
            return Reply(403, {"errorCode": "E0000006"})
        right = call.json() == {"passCode": CODE} and self.web.behaviour in {Behaviour.APPROVE, Behaviour.WAIT}
        return Reply(200, {"factorResult": "SUCCESS"}) if right else Reply(403, {"errorCode": "E0000068"})

    def _waiting(self) -> dict[str, object]:
        origin = self.poll_origin or f"http://127.0.0.1:{self.web.port}"
        link = f"{origin}{USER_PATH}/factors/{PUSH['id']}/transactions/v2mst.1"
        links = {"poll": {"href": link, "hints": {"allow": ["GET"]}}, "cancel": {"href": link}}
        return {"factorResult": "WAITING", "_links": links}
