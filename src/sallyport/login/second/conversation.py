"""A conversation with a provider about one login, and the requests that wait for its result."""

from dataclasses import dataclass
from typing import Final

import trio

from sallyport.base.errors import PacketError
from sallyport.login.login import NOTHING, Found, Login, Reason
from sallyport.login.second.repo import Prompt
from sallyport.login.second.session import NOBODY, Asked, LoginKey, Session
from sallyport.mfa.circuit import Attached
from sallyport.radius.password import TYPED, Method

OTHER_NODE: Final = "other_node"
"""The reason with which a request is discarded because another node answers it."""


class AnsweredElsewhere(PacketError):
    """This node must not answer the login. A newer request of the login waits at another node, or this node stops and
    leaves the login to the other nodes."""

    def __init__(self) -> None:
        super().__init__("another node answers the login", OTHER_NODE)


@dataclass(frozen=True, slots=True)
class SecondFactorResult:
    """The result of a second factor.

    reason: the result; NONE if it was approved. text, session: the text and the session of the challenge to send, if
    the result is ASKED. over: the id of the challenge that the result ends. asked: the user that was asked. found: the
    findings of the first factor, if an earlier request checked it. wrong_code: whether the code was wrong, and the user
    is asked once more. prompt: the row that all nodes share; None on the embedded database, and if no user was asked.
    """

    reason: Reason
    text: str = ""
    session: Session | None = None
    over: str = ""
    asked: Asked = NOBODY
    found: Found = NOTHING
    wrong_code: bool = False
    prompt: Prompt | None = None


class Waiter:
    """One request that waits for a conversation's result. superseded: whether a newer request of the same login has
    replaced it. elsewhere: whether the newer request waits at another node."""

    __slots__ = ("done", "elsewhere", "login", "superseded")

    def __init__(self, login: Login) -> None:
        self.login = login
        self.done = trio.Event()
        self.superseded = False
        self.elsewhere = False


class Conversation:
    """One login's second factor. Only the newest request waits for its result, which is taken once.

    session: the RADIUS client, the user and the number of sent challenges, which is 0 at first. key: requests with the
    same key join the conversation; if None, no request can join. deadline: the end of the conversation by trio's clock.
    takes_codes: whether the user can type a code with this authentication method. checks_code: whether the conversation
    begins with a typed code. handle, text: the handle and the text in the provider's last WAITING answer. error: a
    failure of the store or of the service, after which no request is answered.
    is_signed: whether the first request was signed. prompt: the row that all nodes share, as it was last read; None on
    the embedded database. owns: whether this node asks the provider. elsewhere: whether the newest request waits at
    another node.
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
        self.prompt: Prompt | None = None
        self.is_signed = login.request.signed
        self.owns = True
        self.elsewhere = False
        self._newest: Waiter | None = None

    def admits(self, login: Login) -> bool:
        """Return whether a request may replace the newest one. An unsigned request must not replace a signed
        request."""
        newest = self._newest
        is_signed = self.is_signed and self.elsewhere if newest is None else newest.login.request.signed
        return login.request.signed or not is_signed

    def attach(self, login: Login) -> Waiter:
        """Replace the newest request by this one. Return the waiter of this request."""
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
        provider, a device that shows challenges, and PAP or CHAP, because EAP conversations are only in memory."""
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

    def move_away(self) -> None:
        """Record that a newer request of the login waits at another node."""
        self.elsewhere = True
        if self._newest is not None:
            self._newest.elsewhere = True
            self._newest.done.set()
            self._newest = None

    def take(self) -> SecondFactorResult | None:
        """Return the result to the one request that may use it, and None to all others."""
        if self.taken:
            return None
        self.taken = True
        return self.result
