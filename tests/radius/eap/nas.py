"""A RADIUS server that has only EAP conversations, without the rest of the service. Real supplicants log in to it."""

from sallyport.radius.attributes import STATE, USER_NAME, push_attribute
from sallyport.radius.eap.conversation import Conversation, Conversations
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Done, Outcome, Send
from sallyport.radius.eap.packet import pull_eap_message, push_eap_message
from sallyport.radius.mschap_reply import push_mppe_keys
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    ACCESS_REJECT,
    Request,
    SharedSecret,
    decode,
    encode_reply,
)
from sallyport.radius.salted import Hiding
from tests.radius.eap.users import Users

SECRET = b"between NAS and server"
_CLIENT = 1


class EapServer:
    """A RADIUS server for EAP.

    done: the conversations that have ended, in order. between_s: how far its clock advances after each conversation.
    """

    def __init__(self, terms: Terms, users: Users, *, between_s: float = 0) -> None:
        self._terms = terms
        self._users = users
        self._secret = SharedSecret(SECRET)
        self._conversations = Conversations[Conversation]()
        self.done: list[Done] = []
        self.clock = 0.0
        self._between_s = between_s

    def answer(self, datagram: bytes) -> bytes:
        """Return the reply to a datagram."""
        request = decode(datagram, self._secret)
        state = request.first.get(STATE)
        if state is None:
            conversation = Conversation(offers(self._terms), now=self.clock)
            state = self._conversations.add(1, _CLIENT, conversation, now=self.clock)
        else:
            found = self._conversations.find(_CLIENT, state, now=self.clock)
            assert found is not None
            conversation = found
        outcome = self._users.settle(conversation, conversation.receive(pull_eap_message(request)))
        return self._reply(request, state, outcome)

    def _reply(self, request: Request, state: bytes, outcome: Outcome) -> bytes:
        if isinstance(outcome, Send):
            attributes = push_eap_message(outcome.octets) + push_attribute(STATE, state)
            return encode_reply(ACCESS_CHALLENGE, request, self._secret, attributes)
        assert isinstance(outcome, Done)
        self._conversations.end(state)
        self.done.append(outcome)
        self.clock += self._between_s
        attributes = push_eap_message(outcome.octets)
        if outcome.success and outcome.msk:
            half = len(outcome.msk) // 2
            hiding = Hiding(self._secret, request.authenticator)
            attributes += push_mppe_keys(outcome.msk[:half], outcome.msk[half:], hiding)
        if outcome.success:
            attributes += push_attribute(USER_NAME, outcome.user)
        return encode_reply(ACCESS_ACCEPT if outcome.success else ACCESS_REJECT, request, self._secret, attributes)
