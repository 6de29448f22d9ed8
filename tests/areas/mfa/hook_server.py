"""A simulated webhook of a customer. It checks the signature of every request."""

import hashlib
import hmac

from sallyport.areas.mfa.contract import Behaviour
from sallyport.base.clock import now_us
from tests.areas.mfa.host import USER
from tests.areas.mfa.web import Call, Reply, WebServer

SECRET = "the hook's secret: schön lang"
CODE = "472901"


class HookServer:
    """One user who answers in time.

    immediately: whether the hook approves or denies at once, without a poll_url. asks_for_code: whether the hook asks
    for the code that it has sent. text: the text for the user with which it does so.
    """

    def __init__(self) -> None:
        self.web: WebServer
        self.challenges: dict[str, dict[str, object]] = {}
        self.immediately = False
        self.asks_for_code = False
        self.text: object = "Code by SMS"
        self.codes: list[dict[str, object]] = []
        self.poll_url: str | None = None
        self.knows_enrolment = True
        self.secret = SECRET
        self.ping_status = 200

    @property
    def prompts(self) -> int:
        """The number of prompts. Each challenge_id counts once, because it is the idempotency key."""
        return len(self.challenges)

    async def __call__(self, call: Call) -> Reply:
        """Answer a request."""
        timestamp = call.headers["x-sallyport-timestamp"]
        signed = hmac.new(self.secret.encode(), f"{timestamp}.".encode() + call.body, hashlib.sha256).hexdigest()
        if self.secret != SECRET:
            return Reply(401, {})
        assert hmac.compare_digest(signed, call.headers["x-sallyport-signature"])
        assert abs(int(timestamp) - now_us() / 1e6) < 60
        assert call.headers["x-sallyport-id"]
        if call.method == "GET":
            assert call.path.startswith("/hook/poll/")
            return Reply(200, {"status": self._status()})
        assert (call.path, call.headers["content-type"]) == ("/hook", "application/json")
        asked = call.json()
        return Reply(self.ping_status, {}) if asked["type"] == "ping" else self._asked(call, asked)

    def _asked(self, call: Call, asked: dict[str, object]) -> Reply:
        known = asked["user"] == USER and self.web.behaviour is not Behaviour.UNKNOWN_USER
        if asked["type"] == "enrolment":
            assert set(asked) == {"type", "user"}
            status = 200 if self.knows_enrolment else 400
            return Reply(status, {"status": "enrolled" if known else "unknown_user"})
        if asked["type"] == "code":
            return self._checked(asked)
        assert set(asked) == {"type", "challenge_id", "user", "domain", "device", "source", "station", "expires_at"}
        assert call.headers["x-sallyport-id"] == asked["challenge_id"]
        if not known:
            return Reply(200, {"status": "unknown_user"})
        self.challenges[str(asked["challenge_id"])] = asked
        if self.asks_for_code:
            return Reply(200, {"status": "code", "text": self.text})
        if self.immediately:
            return Reply(200, {"status": self._status()})
        own = f"http://127.0.0.1:{self.web.port}/hook/poll/{asked['challenge_id']}"
        return Reply(202, {"poll_url": own if self.poll_url is None else self.poll_url}, {"Retry-After": "2"})

    def _checked(self, asked: dict[str, object]) -> Reply:
        """Check a code. The user has typed the right one, if the user approves."""
        assert set(asked) == {"type", "challenge_id", "user", "code"}
        assert asked["challenge_id"] in self.challenges
        self.codes.append(asked)
        if self.web.behaviour is Behaviour.DENY:
            return Reply(200, {"status": "denied"})
        return Reply(200, {"status": "approved"} if asked["code"] == CODE else {"status": "wrong_code", "text": "No"})

    def _status(self) -> str:
        return {Behaviour.APPROVE: "approved", Behaviour.DENY: "denied"}.get(self.web.behaviour, "waiting")
