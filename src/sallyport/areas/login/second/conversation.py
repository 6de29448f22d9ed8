"""A conversation with a provider about one login, and the requests that wait for the result."""

from dataclasses import dataclass, replace
from typing import Final

import trio

from sallyport.areas.login.login import NOTHING, Found, Login, Reason
from sallyport.areas.login.second.prompts import UserKey
from sallyport.areas.login.second.repo import Prompt
from sallyport.areas.login.second.session import NOBODY, Asked, LoginKey, Session
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.provider import Strength
from sallyport.base.errors import PacketError
from sallyport.base.text import fold_name
from sallyport.base.trace import follow
from sallyport.metrics import LoginPlace
from sallyport.radius.attributes import EAP_MESSAGE
from sallyport.radius.password import TYPED, Method

OTHER_NODE: Final = "other_node"
"""The label value in metrics for requests that are dropped because another node answers the login."""
DUPLICATE: Final = "duplicate"
"""The label value in metrics for requests that are dropped because another request of the login gets the answer."""


class AnsweredElsewhere(PacketError):
    """Raised if this node must not answer a login. Either a newer request of the login waits at another node, or this
    node stops and leaves the login to the other nodes."""

    def __init__(self) -> None:
        super().__init__("another node answers the login", OTHER_NODE)


class NotAsked(PacketError):
    """Raised if the time limit of a login was reached before a node could ask the provider. The provider has not
    failed, so the fallback must not decide the login. The request gets no answer."""

    def __init__(self) -> None:
        super().__init__("too many logins wait for the provider", "overload")


@dataclass(frozen=True, slots=True)
class Proof:
    """The second factor that a user has proved. provider: the name of the provider; empty if none was asked.
    remembered: if the user has proved it earlier at the same station (`login.remembered`), a text that says when.
    detail: what the provider says about the proof, for admins."""

    provider: str = ""
    strength: Strength = Strength.ANY
    remembered: str = ""
    detail: str = ""


NO_PROOF: Final = Proof()


@dataclass(eq=False, slots=True, weakref_slot=True)
class Approval:
    """An approval on a single node, whose Accept may not be stored yet. is_denied: whether the user has denied a login
    as not theirs in the meantime."""

    user: UserKey
    is_denied: bool = False


@dataclass(frozen=True, slots=True)
class SecondFactorResult:
    """The result of asking for a second factor.

    reason: the result; NONE if the user has approved. text, session: the text and the session of the challenge to send,
    if the reason is ASKED or ASKED_AGAIN. over: the id of the challenge that this result ends. asked: the user that was
    asked. found: what the first factor found for an earlier request of the login. detail: what the provider says about
    the outcome, for admins. prompt: the prompt's row in the store; None if the embedded database is used, or if the
    user was not asked. approval: the user's approval, if the embedded database is used. proof: the second factor that
    was proved, if the user has approved.
    """

    reason: Reason
    text: str = ""
    session: Session | None = None
    over: str = ""
    asked: Asked = NOBODY
    found: Found = NOTHING
    detail: str = ""
    prompt: Prompt | None = None
    approval: Approval | None = None
    proof: Proof = NO_PROOF


DENIED: Final = SecondFactorResult(Reason.NOT_ME)
NOT_ANSWERED: Final = SecondFactorResult(Reason.NOT_ANSWERED)


class Waiter:
    """A request that waits for a conversation's result. superseded: whether a newer request of the same login has
    replaced this request. elsewhere: whether the newer request waits at another node."""

    __slots__ = ("done", "elsewhere", "login", "superseded")

    def __init__(self, login: Login) -> None:
        self.login = login
        self.done = trio.Event()
        self.superseded = False
        self.elsewhere = False


class Conversation:
    """One login's second factor. Only the newest request of the login waits for the result, and the result is used
    once.

    session: the RADIUS client, the user, and the number of challenges that were sent. key: a value that all requests of
    the login have in common, or None if no other request can join the conversation. deadline: the end of the
    conversation by trio's clock. takes_codes: whether the authentication method can carry a typed code. checks_code:
    whether the conversation begins with a typed code. is_eap: whether the login is inside EAP. is_checked: whether the
    login has passed a first factor. handle, text: values from the provider's last WAITING answer. error: an error of
    the store or the service, after which no request gets an answer. is_signed: whether the first request was signed.
    prompt: the prompt's row in the store as it was last read, or None with the embedded database. owns: whether this
    node asks the provider. asked: whether this node has begun to ask the provider. elsewhere: whether the newest
    request waits at another node. only_joins: whether the conversation may join a pending prompt of other nodes, but
    must not begin a new prompt. began: the begin by trio's clock. is_denied: whether the user has denied this login or
    another one as not theirs. is_excused: whether the user has answered another prompt since the begin. has_count:
    whether the store may have prompts that the user has not answered. scope: the cancel scope of the calls to the
    provider, while they run.
    """

    def __init__(
        self, attached: Attached, session: Session, key: LoginKey | None, deadline: float, login: Login
    ) -> None:
        self.takes_codes = login.method in TYPED
        self.checks_code = login.code is not None
        self.is_eap = EAP_MESSAGE in login.arrival.request.first
        self.is_checked = session.question.is_checked
        self.attached = attached
        self.tenant_id = login.arrival.client.tenant_id
        self.arrived_at = login.arrival.at
        self.trace = login.trace
        self.session = session
        self.key = key
        self.deadline = deadline
        self.handle = ""
        self.text = ""
        self.result: SecondFactorResult | None = None
        self.error: Exception | None = None
        self.taken = False
        self.prompt: Prompt | None = None
        self.is_signed = login.arrival.request.signed
        self.owns = True
        self.asked = False
        self.elsewhere = False
        self.only_joins = False
        self.began = trio.current_time()
        self.is_denied = False
        self.is_excused = False
        self.has_count = False
        self.scope: trio.CancelScope | None = None
        self._newest: Waiter | None = None

    @property
    def waits(self) -> bool:
        """Whether a request waits for the result."""
        return self._newest is not None

    @property
    def is_asked(self) -> bool:
        """Whether a node has asked the provider, as far as this node knows: this node, or the prompt's owner, which
        has stored a handle."""
        return self.asked or bool(self.handle)

    @property
    def user(self) -> UserKey:
        """The key by which the prompts and the codes of the user are counted."""
        return self.session.question.domain_id, fold_name(self.session.question.user)

    @property
    def place(self) -> LoginPlace:
        """The domain and the time of the newest request, by which the event of the login is found."""
        return LoginPlace(self.session.question.domain_id, self.arrived_at)

    def admits(self, login: Login) -> bool:
        """Return whether a request may replace the request that waits now. An unsigned request must not replace a
        signed request."""
        newest = self._newest
        is_signed = self.is_signed and self.elsewhere if newest is None else newest.login.arrival.request.signed
        return login.arrival.request.signed or not is_signed

    def attach(self, login: Login) -> Waiter:
        """Let a request wait for the result, and return its waiter. The request that has waited until now gets no
        answer. The running task continues in the trace of the first request."""
        before = self._newest
        if self.trace is not None and login.trace is not None:
            # A request whose answer was a challenge has an event of its own, and its own span.
            login.trace = before.login.trace if before is not None else replace(login.trace, id=self.trace.id)
            follow(login.trace)
        if before is not None:
            login.known.follows(before.login.known)
            before.superseded = True
            before.done.set()
        self.arrived_at = login.arrival.at
        self._newest = waiter = Waiter(login)
        if self.result is not None:
            waiter.done.set()
        return waiter

    def outlives(self, login: Login) -> bool:
        """Return whether the user could still approve the prompt after a restart of the service.

        This requires a handle from the provider, and a device that shows challenges. It also requires PAP or CHAP,
        because EAP conversations exist only in memory.
        """
        shows = self.session.step > 0 or login.device.posture.challenge_support(login.arrival.at) == "yes"
        return bool(self.handle) and shows and login.method in (Method.PAP, Method.CHAP)

    def leave(self, waiter: Waiter) -> None:
        """Remove a request that has stopped waiting."""
        if self._newest is waiter:
            self._newest = None

    def finish(self, result: SecondFactorResult) -> None:
        """Record the result of the conversation, and wake the request that waits."""
        self.result = result
        self.wake()

    def wake(self) -> None:
        """Wake the request that waits, if there is one."""
        if self._newest is not None:
            self._newest.done.set()

    @property
    def prompts(self) -> bool:
        """Whether the provider may prompt the user, on the phone or by a message. A typed code needs no prompt."""
        return not (self.checks_code or self.attached.provider.only_codes)

    def deny(self) -> None:
        """End the conversation, because the user has denied a login as not theirs. If its result was taken, do
        nothing."""
        if self.taken:
            return
        self.is_denied = True
        if self.scope is not None:
            self.scope.cancel()
        self.finish(DENIED)

    def move_away(self) -> None:
        """Record that a newer request of the login waits at another node."""
        self.elsewhere = True
        if self._newest is not None:
            self._newest.elsewhere = True
            self._newest.done.set()
            self._newest = None

    def take(self) -> SecondFactorResult | None:
        """Return the result to the first caller, and None to every later caller."""
        if self.taken:
            return None
        self.taken = True
        return self.result
