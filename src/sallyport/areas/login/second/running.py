"""The conversations of this node, and the logins that were accepted or left to another node a moment ago."""

from collections.abc import Iterator
from typing import Final

import trio

from sallyport.areas.login.login import Login
from sallyport.areas.login.second.conversation import Conversation
from sallyport.areas.login.second.repo import HELD_US
from sallyport.areas.login.second.session import LoginKey
from sallyport.areas.mfa.circuit import Attached
from sallyport.base.bounded import ExpiringMap
from sallyport.base.clock import SECOND

LEFT_S: Final = 60.0
"""Time for which a request that was left to another node is remembered, in seconds. It exceeds the time for which
devices retransmit a request."""
MAX_LEFT: Final = 32_768
HELD_S: Final = HELD_US / SECOND
MAX_HELD: Final = 32_768

_Packet = tuple[int, int, bytes]
"""What a request has in common with its retransmissions only: the RADIUS client, the identifier, the authenticator."""


class Running:
    """The conversations by what their next request has: the key of the login, or the id of a challenge."""

    def __init__(self) -> None:
        self._by_login: dict[LoginKey, Conversation] = {}
        self._by_challenge: dict[str, Conversation] = {}
        self._left = ExpiringMap[_Packet, bool](MAX_LEFT, LEFT_S)
        self._accepted = ExpiringMap[LoginKey, Attached](MAX_HELD, HELD_S)

    def __iter__(self) -> Iterator[Conversation]:
        """Iterate over a copy, so that conversations may end meanwhile."""
        return iter(tuple(self._by_challenge.values()))

    def of_login(self, key: LoginKey | None, attached: Attached) -> Conversation | None:
        """Return the conversation with a provider that further requests of a login join, or None."""
        found = None if key is None else self._by_login.get(key)
        return found if found is not None and found.attached is attached else None

    def of_challenge(self, challenge_id: str) -> Conversation | None:
        """Return the conversation that the answer to a challenge continues, or None."""
        return self._by_challenge.get(challenge_id)

    def add(self, conversation: Conversation) -> None:
        """Add a conversation that begins."""
        if conversation.key is not None:
            self._by_login[conversation.key] = conversation
        self._by_challenge[conversation.session.id] = conversation

    def rename(self, conversation: Conversation, former_id: str) -> None:
        """Record that a conversation has joined that of another node, and has its id now."""
        self._by_challenge.pop(former_id, None)
        self._by_challenge[conversation.session.id] = conversation

    def let_go(self, conversation: Conversation) -> None:
        """Let no further request of the same login join a conversation."""
        if conversation.key is not None and self._by_login.get(conversation.key) is conversation:
            del self._by_login[conversation.key]

    def remove(self, conversation: Conversation) -> None:
        """Remove a conversation, so that no request can join or continue it."""
        self.let_go(conversation)
        if self._by_challenge.get(conversation.session.id) is conversation:
            del self._by_challenge[conversation.session.id]

    def end_challenge(self, challenge_id: str) -> None:
        """Let no answer to a challenge continue its conversation."""
        self._by_challenge.pop(challenge_id, None)

    def purge(self, now: int) -> None:
        """Remove the conversations that have ended, and whose challenge has expired."""
        for conversation in self:
            if conversation.result and conversation.session.expires_at <= now:
                self.end_challenge(conversation.session.id)

    def forget(self) -> None:
        """Forget all conversations, because the store was replaced."""
        self._by_challenge.clear()
        self._by_login.clear()
        self._accepted = ExpiringMap(MAX_HELD, HELD_S)

    # --- a moment ago -----------------------------------------------------------------------------------------

    def accepted(self, conversation: Conversation) -> None:
        """Record that the login of a conversation was accepted. For HELD_S, further requests of it were on their way
        already."""
        if conversation.key is not None:
            self._accepted.put(conversation.key, conversation.attached, conversation.tenant_id, now=trio.current_time())

    def was_accepted(self, key: LoginKey, attached: Attached) -> bool:
        """Return whether a login was accepted less than HELD_S ago."""
        return self._accepted.get(key, now=trio.current_time()) is attached

    def left(self, login: Login) -> None:
        """Remember a request that is dropped because another node answers its login.

        Its retransmission may join the login again while the prompt is pending. After the other node has answered, a
        retransmission that the device sent before it got the answer must not prompt the user again.
        """
        self._left.put(_packet(login), True, login.arrival.client.tenant_id, now=trio.current_time())

    def was_left(self, login: Login) -> bool:
        """Return whether the same request was left to another node."""
        return self._left.get(_packet(login), now=trio.current_time()) is not None


def _packet(login: Login) -> _Packet:
    return login.arrival.client.id, login.arrival.request.identifier, login.arrival.request.authenticator
