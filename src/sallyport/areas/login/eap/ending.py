"""The end of an EAP conversation with a correct password, and its answer.

A NAS that gets no answer sends the last response of the conversation again. Such a copy may have a new identifier, or
come from another port. Until the login is answered, its copies are dropped, or join the prompt of the second factor.
After that, a copy gets the same answer for the duplicate window. It causes no event, and does not extend the window. A
copy with another station, NAS or outer identity is refused, because the login was not decided for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sallyport.areas.login.login import Answered, Login
from sallyport.areas.login.second.session import device_key
from sallyport.base.bounded import ExpiringMap
from sallyport.base.errors import PacketError
from sallyport.base.mac import station_form
from sallyport.radius.attributes import CALLING_STATION_ID, USER_NAME
from sallyport.radius.eap.conversation import MOST
from sallyport.radius.eap.model import Done
from sallyport.radius.packet import ACCESS_ACCEPT

Sender = tuple[object, ...]


@dataclass(slots=True, eq=False, repr=False)
class Ending:
    """The end of one conversation.

    response: the client's last EAP packet. sender: see `sender_of`. done: the result of the EAP method. on_answer: a
    function that is called once, when the login is answered, with the answered request. request: the newest request
    with the response, or None if no request is being decided. asks: whether the login waits for its second factor.
    user: the user's name without its realm. sent: the encoded attributes of the Access-Accept, without `Found.keys`.
    """

    response: bytes
    sender: Sender
    done: Done
    on_answer: Callable[[Answered], None] | None
    request: Login | None = None
    asks: bool = False
    user: str = ""
    sent: bytes = b""

    def decide(self, login: Login) -> None:
        """Begin to decide a request with the last response. Raises PacketError if another request with this response is
        being decided, or has been decided and is being stored."""
        before = self.request
        if before is not None and (before.reply or not self.asks):
            raise PacketError("the server is still deciding the login of this EAP response", "duplicate")
        self.request, self.user, self.asks = login, login.user, False
        login.ending = self

    def end(self, answered: Answered) -> None:
        """End the conversation with its answer. This removes all reference cycles, because the garbage collector runs
        seldom."""
        end, self.on_answer, self.request = self.on_answer, None, None
        if end is not None:
            end(answered)

    def reopen(self) -> None:
        """Let the next copy of the response be decided, because the last one has got no answer."""
        self.request = None


def sender_of(login: Login) -> Sender:
    """Return the values of a request that its copies must have too: the RADIUS client, the NAS, the station, and the
    outer identity."""
    first = login.arrival.request.first
    station = first.get(CALLING_STATION_ID)
    name = first.get(USER_NAME)
    return login.arrival.client.id, *device_key(login), name, None if station is None else station_form(station)


class AcceptedEndings:
    """The conversations that have lately ended with Access-Accept, by State. window_s: for how many seconds copies of
    the last response get the same answer."""

    def __init__(self, window_s: float) -> None:
        self._endings = ExpiringMap[bytes, Ending](MOST, window_s)

    def add(self, state: bytes, ending: Ending, answered: Answered, *, now: float) -> None:
        """Store a conversation after its answer. An answer other than Access-Accept is not repeated."""
        if answered.reply[0] == ACCESS_ACCEPT and isinstance(answered, Login):
            ending.sent = answered.answer.attributes
            self._endings.put(state, ending, answered.arrival.client.tenant_id, answered.arrival.client.id, now=now)

    def find(self, login: Login, state: bytes, response: bytes, *, now: float) -> Ending | None:
        """Return the conversation whose last response a request repeats, or None. response: the EAP packet of the
        request. Raises PacketError if the conversation has ended with another response."""
        ending = self._endings.get(state, now=now)
        if ending is None:
            return None
        if ending.response != response:
            raise PacketError("the client has sent another EAP response after the end of the conversation")
        return ending if ending.sender == sender_of(login) else None
