"""A conversation with a provider about one login, and the requests that wait for its result."""

from dataclasses import dataclass

import trio

from sallyport.login.login import NOTHING, Found, Login, Reason
from sallyport.login.second.session import NOBODY, Asked, LoginKey, Session
from sallyport.mfa.circuit import Attached
from sallyport.radius.password import TYPED, Method


@dataclass(frozen=True, slots=True)
class SecondFactorResult:
    """The result of a second factor.

    reason: the result; NONE: approved. text, session: the text and the session of the challenge to send, for ASKED.
    over: the id of the challenge that the result ends. asked: the user that was asked. found: the findings of the first
    factor, if an earlier request checked it. wrong_code: whether the code was wrong, and the user is asked once more.
    """

    reason: Reason
    text: str = ""
    session: Session | None = None
    over: str = ""
    asked: Asked = NOBODY
    found: Found = NOTHING
    wrong_code: bool = False


class Waiter:
    """One request that waits for a conversation's result. superseded: a newer request of the same login replaced it."""

    __slots__ = ("done", "login", "superseded")

    def __init__(self, login: Login) -> None:
        self.login = login
        self.done = trio.Event()
        self.superseded = False


class Conversation:
    """One login's second factor. Only the newest request waits for its result, which is taken once.

    session: the RADIUS client, the user and the number of sent challenges (step 0: none). key: a request with the same
    key joins; None: no request can join. deadline: the end, by trio's clock. takes_codes: whether the user can type a
    code with this authentication method. checks_code: whether the conversation begins with a typed code. handle, text:
    the handle and the text in the provider's last WAITING answer. error: a failure of the store or of the service,
    after which no request is answered.
    """

    def __init__(
        self, attached: Attached, session: Session, key: LoginKey | None, deadline: float, login: Login
    ) -> None:
        self.takes_codes = login.method in TYPED
        self.checks_code = login.code is not None
        self.attached = attached
        self.tenant_id = login.client.tenant_id
        self.session = session
        self.key = key
        self.deadline = deadline
        self.handle = ""
        self.text = ""
        self.result: SecondFactorResult | None = None
        self.error: Exception | None = None
        self.taken = False
        self._newest: Waiter | None = None

    def admits(self, login: Login) -> bool:
        """Return whether a request may replace the newest one. An unsigned request must not replace a signed one."""
        newest = self._newest
        return login.request.signed or newest is None or not newest.login.request.signed

    def attach(self, login: Login) -> Waiter:
        """Replace the newest request by this one, and return its waiter."""
        before = self._newest
        if before is not None:
            login.known.follows(before.login.known)
            before.superseded = True
            before.done.set()
        self._newest = waiter = Waiter(login)
        if self.result is not None:
            waiter.done.set()
        return waiter

    def outlives(self, login: Login) -> bool:
        """Return whether a challenge could be answered after a restart of the service. This requires a handle from the
        provider, a device that shows challenges, and PAP or CHAP, since EAP conversations are only in memory."""
        shows = self.session.step > 0 or login.device.posture.takes_challenges
        return bool(self.handle) and shows and login.method in (Method.PAP, Method.CHAP)

    def leave(self, waiter: Waiter) -> None:
        """Remove a request that no longer waits."""
        if self._newest is waiter:
            self._newest = None

    def finish(self, result: SecondFactorResult) -> None:
        """Record the result of the conversation, and wake the request that waits."""
        self.result = result
        self.wake()

    def wake(self) -> None:
        """Wake the request that waits."""
        if self._newest is not None:
            self._newest.done.set()

    def take(self) -> SecondFactorResult | None:
        """Return the result for the one request that gets it; None for all others."""
        if self.taken:
            return None
        self.taken = True
        return self.result
