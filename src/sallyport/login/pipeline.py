"""The steps of a login, each a small function; what they decide is one `Decision`.

`Pipeline.begin` decides what needs no I/O right away; where a user is not in memory it says so, and `finish` decides
in a task of its own. Both end in the same `decide`.
"""

from hmac import compare_digest

from sallyport.domains.model import Domain, DomainTable, FirstFactor, Mode
from sallyport.domains.service import Domains
from sallyport.endpoints.model import User
from sallyport.endpoints.service import EndpointUsers, Missing
from sallyport.inventory.clients.model import Client
from sallyport.login.model import Decision, Login, Method, Reason, Verdict
from sallyport.radius.attributes import (
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    EAP_MESSAGE,
    USER_NAME,
    USER_PASSWORD,
)
from sallyport.radius.packet import Request, as_text
from sallyport.radius.password import chap_holds, reveal_password


def decide(reason: Reason, mode: Mode) -> Decision:
    """The decision on a login whose checks ended in `reason`, in a domain of that mode.

    The verdict is the same in both modes; monitor notes it as what would have been. A wrong first factor is a reject
    in both. No second factor is asked yet, so that the two modes differ in the note only.
    """
    return _DECISIONS[reason][mode is Mode.MONITOR]


def _decision(reason: Reason, mode: Mode) -> Decision:
    verdict = Verdict.ACCEPT if reason is Reason.NONE else Verdict.REJECT
    return Decision(verdict, verdict, verdict.value if mode is Mode.MONITOR else "", reason, mode.value)


_DECISIONS = {reason.value: (_decision(reason, Mode.ENFORCE), _decision(reason, Mode.MONITOR)) for reason in Reason}


def default_domain(client: Client, domains: DomainTable) -> Domain | None:
    """The domain of a client's devices, and of names without a realm: its first, or its tenant's first."""
    if client.domain_ids:
        return domains.by_id.get(client.domain_ids[0])
    own = domains.by_tenant.get(client.tenant_id)
    return own[0] if own else None


def split_realm(name: str) -> tuple[str, str]:
    r"""A User-Name with a separator as (user, realm): `REALM\user`, or `user@realm`, where the last @ counts."""
    if "\\" in name:
        realm, _, user = name.partition("\\")
    else:
        user, _, realm = name.rpartition("@")
    return user, realm


def who(login: Login, domains: DomainTable) -> Reason:
    """Find a login's domain and principal. A realm chooses among the client's domains and is taken off the name."""
    octets = login.request.first.get(USER_NAME)
    login.home = login.domain = default_domain(login.client, domains)
    if login.home is None:
        return Reason.NO_DOMAIN
    if not octets:
        return Reason.NO_USER_NAME
    login.user = as_text(octets)
    if b"@" not in octets and b"\\" not in octets:
        return Reason.NONE
    user, realm = split_realm(login.user)
    domain = domains.by_realm(login.client.tenant_id, realm)
    if domain is None or not (login.client.all_domains or domain.id in login.client.domain_ids):
        return Reason.UNKNOWN_REALM
    login.domain, login.user = domain, user
    return Reason.NONE if user else Reason.NO_USER_NAME


def method_of(request: Request) -> str:
    """How the password came."""
    first = request.first
    if USER_PASSWORD in first:
        return Method.PAP
    if CHAP_PASSWORD in first:
        return Method.CHAP
    return Method.EAP if EAP_MESSAGE in first else Method.NONE


def check_password(login: Login, user: User | None) -> Reason:
    """The `local` first factor: PAP and CHAP against the user's password (RFC 2865 sections 5.2, 5.3).

    Raises PacketError: the password field is malformed.
    """
    request, first = login.request, login.request.first
    if login.method == Method.PAP:
        given = reveal_password(first[USER_PASSWORD], login.client.secret, request.authenticator)
        if user is None:
            return Reason.UNKNOWN_USER
        for password in user.passwords:
            if compare_digest(given, password):
                return Reason.NONE
        return Reason.WRONG_PASSWORD
    if login.method == Method.CHAP:
        if user is None:
            return Reason.UNKNOWN_USER
        value, challenge = first[CHAP_PASSWORD], first.get(CHAP_CHALLENGE, request.authenticator)
        right = len(value) == 17 and any(chap_holds(value, password, challenge) for password in user.passwords)
        return Reason.NONE if right else Reason.WRONG_PASSWORD
    return Reason.NO_CREDENTIALS


class Pipeline:
    """Decides logins."""

    def __init__(self, domains: Domains, users: EndpointUsers) -> None:
        self._domains = domains
        self._users = users

    def begin(self, login: Login) -> Decision | None:
        """Decide without waiting, or None: `finish` has to ask the store. PacketError: a malformed password."""
        reason = who(login, self._domains.table)
        login.method = method_of(login.request)
        domain = login.domain
        if domain is None:
            return decide(reason, Mode.MONITOR)
        if reason is Reason.NONE:
            if domain.first_factor is not FirstFactor.LOCAL:
                return decide(Reason.FIRST_FACTOR_UNAVAILABLE, domain.mode)
            user = self._users.cached(domain.id, login.user)
            if user is Missing.MISSING:
                return None
            reason = check_password(login, user)
        return decide(reason, domain.mode)

    async def finish(self, login: Login) -> Decision:
        """Decide a login whose user is not in memory. StoreError, SecretError, PacketError."""
        assert login.domain is not None  # noqa: S101  begin found it
        user = await self._users.load(login.domain.id, login.user)
        reason = check_password(login, user)
        domain = self._domains.table.by_id.get(login.domain.id, login.domain)  # a fresh look: it took a while
        return decide(reason, domain.mode)
