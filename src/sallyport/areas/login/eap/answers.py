"""The end of an EAP conversation, as attributes of the answer and as a reason."""

from collections.abc import Mapping
from typing import Final

from sallyport.areas.login.identity import in_full
from sallyport.areas.login.login import Login, Reason
from sallyport.radius.attributes import PROXY_STATE, USER_NAME, push_attribute
from sallyport.radius.eap.conversation import MAX_NAME
from sallyport.radius.eap.model import NO_SERVER, UNCHECKED, Done, Failure
from sallyport.radius.eap.packet import push_eap_message
from sallyport.radius.mschap_reply import push_mppe_keys
from sallyport.radius.salted import Hiding

_UNTRUSTED: Final = ("unknown ca", "bad certificate", "certificate unknown", "certificate expired")
_REASONS: Final[Mapping[Failure | None, Reason]] = {
    Failure.CERTIFICATE: Reason.CERTIFICATE_REFUSED,
}


def accepting_attributes(login: Login, done: Done) -> bytes:
    """Return the attributes of an Access-Accept that end the conversation: EAP-Success and the keys."""
    attributes = push_eap_message(done.octets)
    if done.msk:
        half = len(done.msk) // 2
        hiding = Hiding(login.arrival.client.secret, login.arrival.request.authenticator)
        attributes += push_mppe_keys(done.msk[:half], done.msk[half:], hiding)
    return attributes


def user_name_attribute(login: Login, done: Done) -> bytes:
    """Return the attribute with the user's name for an Access-Accept. Return nothing if a proxy has forwarded the
    login, because the user has disclosed only the outer identity to the proxy."""
    name = in_full(login, done.user)
    if PROXY_STATE in login.arrival.request.first or len(name) > MAX_NAME:
        return b""
    return push_attribute(USER_NAME, name)


def failure_reason(done: Done) -> Reason:
    """Return the reason of an event for a conversation that has failed."""
    if done.failure is Failure.NOT_OFFERED:
        if NO_SERVER in done.reason:
            return Reason.NO_SERVER_CERTIFICATE
        return Reason.METHOD_UNFIT if UNCHECKED in done.reason else Reason.METHOD_NOT_OFFERED
    if done.failure is Failure.TLS:
        untrusted = any(each in done.reason for each in _UNTRUSTED)
        return Reason.SERVER_UNTRUSTED if untrusted else Reason.TLS_FAILED
    return _REASONS.get(done.failure, Reason.EAP_BROKEN)
