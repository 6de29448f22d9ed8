"""What EAP and the login path say to each other: what one lends a conversation, and what the other hears of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sallyport.login.eap.verifiers import Verifier
from sallyport.login.model import NOTHING, Decision, Reason
from sallyport.login.second.session import Session
from sallyport.mfa.model import Code
from sallyport.radius.eap.certificate import NamedBy
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.model import Check


@dataclass(frozen=True, slots=True)
class Second:
    """What a second factor inside EAP came to. reason: None: none was asked for. refusal: the login is refused.
    session: a code is asked for by a prompt."""

    reason: Reason | None = None
    refusal: Decision | None = None
    session: Session | None = None
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What a login by EAP comes to. first: what the first factor says. second: what became of the second one, where it
    was asked for inside; refusal: which was refused for it. by_address: whether a station has shown its address. stamp:
    of the password that was right."""

    first: Reason
    second: Reason | None = None
    refusal: Decision | None = None
    by_address: bool = False
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """What the login path lends a conversation for one request.

    principal: a name without its realm, empty where it is none of the domain's; given the name, and where a certificate
    has it, if one does. recalled: know from memory what the directories say of the login's user, who is
    another now, or that it has to be looked up; recall: look it up. ask:
    the second factor of whoever has passed the first, given the challenge that is answered, if any, and the code;
    None: a newer request of the same login took its place.
    """

    principal: Callable[[bytes, NamedBy | None], str]
    recalled: Callable[[], bool]
    recall: Callable[[], Awaitable[None]]
    ask: Callable[[Session | None, Code], Awaitable[Second | None]]


class Talk:
    """A conversation and what is known of its login. scope: whose users it is about. client: who passes it on. refused:
    why, once it is. told: that was decided, and what follows until EAP-Failure is no news. named_by: as `Login` has it.
    found, code, stamp: what the first factor found. session: of the challenge that the user answers next; second: what
    became of it."""

    __slots__ = (
        "client",
        "code",
        "conversation",
        "found",
        "named_by",
        "refused",
        "scope",
        "second",
        "session",
        "stamp",
        "told",
        "user",
        "verifier",
    )  # fmt: skip

    def __init__(self, conversation: Conversation, scope: str, verifier: Verifier, client: str) -> None:
        self.client = client
        self.conversation = conversation
        self.scope = scope
        self.verifier = verifier
        self.user = ""
        self.named_by: NamedBy | None = None
        self.found = NOTHING
        self.code: Code | None = None
        self.stamp = ""
        self.session: Session | None = None
        self.second: Reason | None = None
        self.refused: Result | None = None
        self.told = False


@dataclass(frozen=True, slots=True)
class Open:
    """A question that has to be looked up, and whose. state: names the conversation."""

    talk: Talk
    state: bytes
    check: Check
