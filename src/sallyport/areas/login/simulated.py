"""Logins that no device has sent. They run the steps of a real login, without storing or counting anything."""

from secrets import token_bytes

from sallyport.areas.clients.client import Client, Signatures
from sallyport.areas.directory.principals import CloudState
from sallyport.areas.domains.domain import LOCAL, WEB, Domain
from sallyport.areas.login.first import cloud
from sallyport.areas.login.login import PASSED, Answered, Login, Reason
from sallyport.areas.policy.attempt import Arrival
from sallyport.areas.policy.rules import repo as rules
from sallyport.areas.users.user import name_key
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import ACCESS_REQUEST, decode, encode_request
from sallyport.store.model import Tx


class NoExchange:
    """An exchange without a socket, for logins that no device has sent."""

    number = 0

    def committed(self, entry: Answered, now: int) -> None:
        """Send nothing."""

    def abandoned(self, entry: Answered) -> None:
        """Do nothing."""

    def lost(self, entry: Answered) -> None:
        """Do nothing, because no request waits."""


def client_of(domain: Domain, name: str = "") -> Client:
    """Return a RADIUS client with a random secret that belongs to one domain."""
    return Client(
        id=0, tenant_id=domain.tenant_id, name=name, network="127.0.0.1/32", secret=token_bytes(16), all_domains=0,
        domain_ids=(domain.id,), product="", require_message_authenticator=Signatures.YES,
        limit_proxy_state=Signatures.AUTO, password_verified=0, signed_since=None, proxy_state_limited_since=None,
        coa_port=0,
    )  # fmt: skip


def simulated(client: Client, source: str, attributes: bytes, authenticator: bytes, method: str, at: int) -> Login:
    """Return a signed login that no device has sent. attributes: the encoded attributes of the request. at: the time of
    arrival, in microseconds."""
    packet = encode_request(ACCESS_REQUEST, 0, client.secret, attributes, authenticator=authenticator)
    request, sender = decode(packet, client.secret), (source, 0)
    login = Login(Arrival(request, client, sender, at), NoExchange(), Entry((sender, 0), authenticator))
    login.method = method
    return login


def refusal_of_user(tx: Tx, domain: Domain, user: str, state: CloudState | None) -> Reason:
    """Return why a user of a domain may no longer log in, or PASSED. Only a domain without a directory of its own knows
    all its users: endpoint users, and accounts of cloud directories. state: that of the user's account there, or
    None."""
    if domain.first_factor is WEB:
        return Reason.UNKNOWN_USER if state is None else cloud.reason_of_status(state)
    if domain.first_factor is not LOCAL or rules.has_endpoint_user(tx, domain.id, name_key(user)):
        return PASSED
    return Reason.UNKNOWN_USER if state is None else cloud.reason_of_status(state)
