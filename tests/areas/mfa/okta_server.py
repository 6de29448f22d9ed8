"""A simulated Okta Factors API."""

from typing import ClassVar
from urllib.parse import unquote

from sallyport.areas.mfa.contract import Behaviour
from tests.areas.mfa.host import USER
from tests.areas.mfa.web import Call, Reply, WebServer

TOKEN = "00QCjAl4MlV-WPXM_ApiTokenOfTheTests"
CODE, SECOND_CODE = "123456", "654321"
PUSH = {"id": "opf3hkfocI4JTLAju0g4", "factorType": "push", "status": "ACTIVE"}
TOTP = {"id": "ostf1fmaMGJLMNGNLIVG", "factorType": "token:software:totp", "status": "ACTIVE"}
SECOND_PUSH = {"id": "opf-second-phone", "factorType": "push", "status": "ACTIVE"}
SECOND_TOTP = {"id": "ost-second-app", "factorType": "token:software:totp", "status": "ACTIVE", "provider": "GOOGLE"}
PENDING = {"id": "xyz", "factorType": "push", "status": "PENDING_ACTIVATION"}
SMS = {"id": "smsgl1", "factorType": "sms", "status": "ACTIVE"}
USER_PATH = "/api/v1/users/00u15s1KDETTQMQYABRL"


class OktaServer:
    """One user with factors. codes: the right code of each app. results: the result of the push to each phone, if it is
    not the result of the behaviour. numbers: the number to choose on each phone. tried: the apps with which codes were
    checked, in order.
    """

    everything: ClassVar = [PENDING, SMS, PUSH, TOTP]

    def __init__(self) -> None:
        self.web: WebServer
        self.prompts = 0
        self.factors: list[dict[str, str]] = list(self.everything)
        self.status = "ACTIVE"
        self.token_allowed = True
        self.cancelled: list[str] = []
        self.poll_origin: str | None = None
        self.codes = {TOTP["id"]: CODE, SECOND_TOTP["id"]: SECOND_CODE}
        self.results: dict[str, str] = {}
        self.numbers: dict[str, object] = {}
        self.tried: list[str] = []

    async def __call__(self, call: Call) -> Reply:
        """Answer a request."""
        assert call.headers["user-agent"].startswith("Sallyport/")
        if call.headers.get("authorization") != f"SSWS {TOKEN}":
            return Reply(401, {"errorCode": "E0000011"})
        if call.path.endswith("/transactions/v2mst.1"):
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
        phone = call.path.split("/")[-3]
        result = "SUCCESS" if self.web.behaviour is Behaviour.APPROVE else "REJECTED"
        result = self.results.get(phone, "WAITING" if self.web.behaviour is Behaviour.WAIT else result)
        return Reply(200, self._waiting(phone) if result == "WAITING" else {"factorResult": result})

    def _verify(self, call: Call) -> Reply:
        assert call.method == "POST"
        factor = call.path.split("/")[-2]
        if factor in self.codes:
            return self._code(call, factor)
        assert factor in (PUSH["id"], SECOND_PUSH["id"])
        self.prompts += 1
        if self.results.get(factor) == "FAILED":
            return Reply(500, {"errorCode": "E0000009"})
        return Reply(201, self._waiting(factor))

    def _code(self, call: Call, factor: str) -> Reply:
        if not self.token_allowed:
            return Reply(403, {"errorCode": "E0000006"})
        self.tried.append(factor)
        is_right = call.json() == {"passCode": self.codes[factor]}
        right = is_right and self.web.behaviour in {Behaviour.APPROVE, Behaviour.WAIT}
        return Reply(200, {"factorResult": "SUCCESS"}) if right else Reply(403, {"errorCode": "E0000068"})

    def _waiting(self, phone: str) -> dict[str, object]:
        origin = self.poll_origin or f"http://127.0.0.1:{self.web.port}"
        link = f"{origin}{USER_PATH}/factors/{phone}/transactions/v2mst.1"
        links = {"poll": {"href": link, "hints": {"allow": ["GET"]}}, "cancel": {"href": link}}
        number = {"_embedded": {"challenge": {"correctAnswer": self.numbers[phone]}}} if phone in self.numbers else {}
        return {"factorResult": "WAITING", "_links": links, **number}
