"""Pending challenges, and the State that identifies one (RFC 2865 section 5.24).

State is sealed with the master key, so it is authenticated and secret. It contains the session's id and step. Each step
can be answered once. The session is bound to the RADIUS client, the user and the calling station.
"""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from secrets import token_hex

from sallyport.base.clock import SECOND
from sallyport.base.errors import SecretError
from sallyport.base.text import fold
from sallyport.domains.domain import Domain
from sallyport.login.login import Found, Login
from sallyport.mfa.circuit import Attached
from sallyport.mfa.provider import Question
from sallyport.policy.lockouts.stations import is_nas
from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    CALLING_STATION_ID,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
    NAS_PORT,
    NAS_PORT_ID,
)
from sallyport.store.model import Tx
from sallyport.store.vault import Vault

LIFETIME_US = 120 * SECOND
_STATE_OCTETS = 46
WRONG_CODES = 3
CHALLENGE_ID_OCTETS = 16
MOST_READ = 1000
"""Maximum number of sessions that one look-up of a user reads."""

LoginKey = tuple[object, ...]


class Kind(StrEnum):
    """The kind of answer that a challenge expects."""

    CODE = "code"
    APPROVAL = "approval"  # no text is expected, because the user approves on another device


@dataclass(frozen=True, slots=True)
class Asked:
    """The user that is asked for a second factor. user_id: the id of the endpoint user; 0 if another server checks the
    passwords. stamp: the stamp of the checked password, or of the first factor's configuration. factor: the first
    factor that checked the login."""

    user_id: int
    stamp: str = ""
    factor: str = ""


NOBODY = Asked(0)


@dataclass(frozen=True, slots=True)
class Session:
    """A sent challenge. Times in microseconds.

    provider: the stamp of the provider's configuration at the start. station: Calling-Station-Id in hexadecimal; empty
    if there is none. step: the number of sent challenges. wrong: the number of wrong codes. accept, groups, ous: the
    findings of the first factor; accept is in hexadecimal, without keys, which are valid in one answer only.
    user_stamp, factor: see `Asked`.
    """

    question: Question
    provider: str
    client_id: int
    user_id: int
    station: str
    kind: Kind
    handle: str
    step: int
    wrong: int
    expires_at: int
    accept: str = ""
    groups: tuple[str, ...] = ()
    ous: tuple[str, ...] = ()
    user_stamp: str = ""
    factor: str = ""

    @property
    def asked(self) -> Asked:
        """The user to which the challenge was sent."""
        return Asked(self.user_id, self.user_stamp, self.factor)

    @property
    def found(self) -> Found:
        """The findings of the first factor, for the answer to the login that continues."""
        return Found(accept=bytes.fromhex(self.accept), groups=frozenset(self.groups), ous=frozenset(self.ous))

    def is_of(self, login: Login) -> bool:
        """Return whether a request may answer the challenge. It must have the same RADIUS client, user and station."""
        asked = self.question
        return (
            login.client.id == self.client_id
            and (login.domain is not None and login.domain.id == asked.domain_id)
            and fold(login.principal) == fold(asked.user)
            and station_of(login) == self.station
        )

    @property
    def id(self) -> str:
        """Return the challenge id. It remains the same during the whole login."""
        return self.question.challenge_id


def new_session(login: Login, domain: Domain, attached: Attached, asked: Asked, accept: bytes) -> Session:
    """Return the session of a login before its first challenge. accept: the attributes that the first factor found,
    without keys."""
    expires_at = login.at + int(attached.timeout_s * SECOND)
    question = Question(
        challenge_id=token_hex(CHALLENGE_ID_OCTETS),
        domain_id=domain.id,
        domain=domain.name,
        user=login.principal,
        device=login.device.device_name,
        source=login.device.client_ip,
        station=login.station,
        expires_at=expires_at,
    )
    return Session(
        question,
        attached.stamp,
        login.client.id,
        asked.user_id,
        station_of(login),
        Kind.APPROVAL,
        handle="",
        step=0,
        wrong=0,
        expires_at=expires_at,
        accept=accept.hex(),
        groups=tuple(login.found.groups),
        ous=tuple(login.found.ous),
        user_stamp=asked.stamp,
        factor=asked.factor,
    )


def station_of(login: Login) -> str:
    """Return the station to which a session is bound, in addition to client and user."""
    return login.request.first.get(CALLING_STATION_ID, b"").hex()


_SESSION_ATTRIBUTES = (CALLING_STATION_ID, ACCT_SESSION_ID, NAS_PORT, NAS_PORT_ID)
_DEVICE_ATTRIBUTES = (NAS_IP_ADDRESS, NAS_IPV6_ADDRESS, NAS_IDENTIFIER)


def same_login(login: Login, asked: Asked) -> LoginKey | None:
    """Return the values that identify a login, equal in all its requests; None if the device sends none by which logins
    can be distinguished.

    These are the RADIUS client, the device, the verified user, the code appended to the password, and every attribute
    that identifies a session or a port. The client alone is not sufficient, because it may be a range or a proxy of
    many devices, which all have a port 1. Packets and credentials are not compared, because a CHAP response differs
    each time. A signed and an unsigned request are never one login: a spoofed copy without the signature would take the
    answer.
    """
    request, first = login.request, login.request.first
    if not _identifies_login(login) or login.domain is None:
        return None
    telling = tuple(first.get(kind) for kind in _SESSION_ATTRIBUTES)
    device = (login.source[0], *map(first.get, _DEVICE_ATTRIBUTES))
    user = (login.domain.id, fold(login.principal), asked, login.code)
    return request.signed, login.client.id, *device, *user, *telling


def _identifies_login(login: Login) -> bool:
    """Return whether the request identifies its session, or the port or station from which it comes. Port 0, and a
    station that is the device itself, are equal in all logins of a device. If only these were compared, an attacker's
    login could join that of another person."""
    first = login.request.first
    if first.get(ACCT_SESSION_ID) or first.get(NAS_PORT_ID) or any(first.get(NAS_PORT, b"")):
        return True
    return not is_nas(login)


def _identity(domain_id: int) -> str:
    return f"radius/state/{domain_id}"


def seal_state(vault: Vault, session: Session) -> bytes:
    """Return the State that identifies the present step of a session, `_STATE_OCTETS` long."""
    return vault.seal(bytes.fromhex(session.id) + bytes((session.step,)), _identity(session.question.domain_id))


def open_state(vault: Vault, state: bytes, domain_id: int) -> tuple[str, int] | None:
    """Return the challenge id and step in a State; None if the State does not belong to this domain. If a domain
    forwards logins to this service itself, as another domain, the requests contain a State of that other domain."""
    # A State of another length belongs to EAP; an attempt to open it would cost more than the rest of the round.
    if len(state) != _STATE_OCTETS:
        return None
    try:
        clear = vault.open(state, _identity(domain_id))
    except SecretError:
        return None
    return clear[:16].hex(), clear[16]


def write(tx: Tx, session: Session) -> None:
    """Store a session. It replaces the previous step of the session."""
    tx.execute(
        "insert into challenges (id, domain_id, expires_at, session) values (:id, :domain_id, :expires_at, :session) "
        "on conflict (id) do update set expires_at = excluded.expires_at, session = excluded.session",
        id=session.id,
        domain_id=session.question.domain_id,
        expires_at=session.expires_at,
        session=json.dumps(asdict(session)),
    )


def delete(tx: Tx, challenge_id: str) -> None:
    """Delete a session, so that its State is no longer valid."""
    tx.execute("delete from challenges where id = :id", id=challenge_id)


def read(tx: Tx, challenge_id: str) -> Session | None:
    """Return a session from the store, where another process may have stored it. Return None if there is none."""
    return tx.one(_session, "select session from challenges where id = :id", id=challenge_id)


def of_user(tx: Tx, domain_id: int, user: str, now: int) -> list[Session]:
    """Return the pending sessions of a user, ordered by their end. user: the name in upper or lower case."""
    found = tx.all(
        _session,
        "select session from challenges where domain_id = :domain_id and expires_at > :now "
        "and instr(lower(session), :user) > 0 order by expires_at limit :limit",
        domain_id=domain_id,
        now=now,
        user=json.dumps(user)[1:-1].lower() if user.isascii() else "",  # JSON escapes other letters, in one case
        limit=MOST_READ,
    )
    return [each for each in found if fold(each.question.user) == fold(user)]


def purge(tx: Tx, now: int) -> int:
    """Delete expired sessions."""
    return tx.execute("delete from challenges where expires_at < :now", now=now)


def _session(*, session: str) -> Session:
    values = json.loads(session)
    return Session(**{**values, "question": Question(**values["question"]), "kind": Kind(values["kind"])})


def void(tx: Tx) -> None:
    """Delete all pending challenges after a restore. Otherwise challenges that were answered after the backup would be
    pending again."""
    tx.execute("delete from challenges")
