"""Sessions of the second factor. A session is the state of a login between two challenges.

The State of an Access-Challenge identifies the session and its step (RFC 2865 section 5.24). It is encrypted and
authenticated with the master key. Each step can be answered once, and only through the same RADIUS client, by the same
user, from the same calling station.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from secrets import token_hex
from typing import Final

from sallyport.areas.domains.domain import WEB, Domain
from sallyport.areas.login.facts import address_of_endpoint
from sallyport.areas.login.login import Found, Login
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.provider import Question
from sallyport.areas.policy.lockouts.stations import is_nas
from sallyport.base.clock import SECOND
from sallyport.base.errors import SecretError
from sallyport.base.mac import station_form
from sallyport.base.text import fold, fold_name
from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    CALLING_STATION_ID,
    EAP_MESSAGE,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
    NAS_PORT,
    NAS_PORT_ID,
    STATE,
)
from sallyport.radius.password import TYPED
from sallyport.store.model import Tx
from sallyport.store.vault import Vault

LIFETIME_US = 120 * SECOND
_STATE_OCTETS = 46
WRONG_CODES = 3
CHALLENGE_ID_OCTETS = 16
MAX_READ = 1000
"""Maximum number of sessions that one look-up of a user reads."""

MAX_DENIED: Final = 100_000
"""Maximum number of sessions that are read to refuse those of a user."""
MAX_PLACE = 200
"""Maximum length of the place of a device, in characters."""

LoginKey = tuple[object, ...]


class ChallengeKind(StrEnum):
    """The kind of answer that a challenge expects."""

    CODE = "code"
    APPROVAL = "approval"  # no text is expected, because the user approves on another device
    DENIED = "denied"  # any answer is refused, because the user has denied a login as not theirs


@dataclass(frozen=True, slots=True)
class Asked:
    """The user that is asked for a second factor, and the stamps that must not change until the answer.

    user_id: the id of the endpoint user, or 0 if another server checks passwords. stamp: the stamp of the checked
    password, or of the first factor's configuration. factor: the kind of first factor.
    """

    user_id: int
    stamp: str = ""
    factor: str = ""


NOBODY = Asked(0)


@dataclass(frozen=True, slots=True)
class Session:
    """The state of a login after a challenge. All times are in microseconds.

    provider: the stamp of the provider's configuration when the login began. station: the Calling-Station-Id in
    hexadecimal, or empty. step: the number of challenges that were sent. wrong: the number of wrong codes. accept,
    groups, ous: what the first factor has found. `accept` is in hexadecimal. It has no keys, because keys are valid in
    one answer only. user_stamp, factor: values of `Asked`. password_at: the value of `Found`.
    """

    question: Question
    provider: str
    client_id: int
    user_id: int
    station: str
    kind: ChallengeKind
    handle: str
    step: int
    wrong: int
    expires_at: int
    accept: str = ""
    groups: tuple[str, ...] = ()
    ous: tuple[str, ...] = ()
    user_stamp: str = ""
    factor: str = ""
    password_at: str = ""

    @property
    def provider_name(self) -> str:
        """The name of the provider that was asked."""
        return self.provider.rpartition("/")[0]

    @property
    def asked(self) -> Asked:
        """The user who got the challenge."""
        return Asked(self.user_id, self.user_stamp, self.factor)

    @property
    def found(self) -> Found:
        """What the first factor has found, for the answer at the end of the login."""
        return Found(
            accept=bytes.fromhex(self.accept),
            groups=frozenset(self.groups),
            ous=frozenset(self.ous),
            password_at=self.password_at,
        )

    def is_of(self, login: Login) -> bool:
        """Return whether a request may answer the challenge. It must have the same RADIUS client, user and station. A
        MAC address may be in another notation."""
        asked = self.question
        return (
            login.arrival.client.id == self.client_id
            and (login.domain is not None and login.domain.id == asked.domain_id)
            and fold(login.principal) == fold(asked.user)
            and station_form(_station(login)) == station_form(bytes.fromhex(self.station))
        )

    @property
    def id(self) -> str:
        """The id of the challenge. It remains the same during the whole login."""
        return self.question.challenge_id


def new_session(login: Login, domain: Domain, attached: Attached, asked: Asked, accept: bytes) -> Session:
    """Return a session for a login that has got no challenge yet. accept: the encoded attributes from the first factor,
    without keys."""
    expires_at = login.arrival.at + int(attached.timeout_s * SECOND)
    question = Question(
        challenge_id=token_hex(CHALLENGE_ID_OCTETS),
        domain_id=domain.id,
        domain=domain.name,
        user=login.principal,
        device=login.device.device_name,
        source=login.device.client_ip,
        station=login.station,
        expires_at=expires_at,
        signed=login.arrival.request.signed,
        address=address_of_endpoint(login.arrival.request, login.station) if login.arrival.request.signed else "",
        place=_place(login),
        takes_codes=login.method in TYPED,
        shows_challenges=login.device.posture.challenge_support(login.arrival.at) != "no",
        is_checked=domain.first_factor is not WEB,
    )
    return Session(
        question,
        attached.stamp,
        login.arrival.client.id,
        asked.user_id,
        _station(login).hex(),
        ChallengeKind.APPROVAL,
        handle="",
        step=0,
        wrong=0,
        expires_at=expires_at,
        accept=accept.hex(),
        groups=tuple(login.found.groups),
        ous=tuple(login.found.ous),
        user_stamp=asked.stamp,
        factor=asked.factor,
        password_at=login.found.password_at,
    )


def _place(login: Login) -> str:
    """Return the place of a device for people: its tags, or the name of its RADIUS client. A tag that depends on a name
    in an unsigned request is left out."""
    device, arrival = login.device, login.arrival
    if device.tags and (arrival.request.signed or not device.has_claimed_tags(device)):
        return ", ".join(device.tags)[:MAX_PLACE]
    return arrival.client.name


def _station(login: Login) -> bytes:
    return login.arrival.request.first.get(CALLING_STATION_ID, b"")


_SESSION_ATTRIBUTES = (CALLING_STATION_ID, ACCT_SESSION_ID, NAS_PORT, NAS_PORT_ID)
_DEVICE_ATTRIBUTES = (NAS_IP_ADDRESS, NAS_IPV6_ADDRESS, NAS_IDENTIFIER)


def same_login(login: Login, asked: Asked) -> LoginKey | None:
    """Return a key that all requests of one login share. Return None if the device sends no attribute that tells its
    logins apart.

    The key contains the RADIUS client, the device, the user, the code after the password, and every attribute that
    identifies a session or a port. The client alone is not enough, because it may be an address range, or a proxy for
    many devices that all have a port 1. Without such an attribute, the State of an EAP conversation identifies the
    login. Credentials are left out, because a CHAP response differs each time. Signed and unsigned requests have
    different keys. Otherwise a spoofed copy of a signed request, without a signature, would get the answer.
    """
    request, first = login.arrival.request, login.arrival.request.first
    if login.domain is None:
        return None
    telling = tuple(first.get(kind) for kind in _SESSION_ATTRIBUTES)
    if not _identifies_login(login):
        if EAP_MESSAGE not in first or STATE not in first:
            return None
        telling = (first[STATE],)
    user = (login.domain.id, fold(login.principal), asked, login.code)
    return request.signed, login.arrival.client.id, *device_key(login), *user, *telling


def device_key(login: Login) -> LoginKey:
    """Return the values that identify the device of a login at its RADIUS client: the address of the sender, and the
    names of the NAS."""
    return login.arrival.source[0], *map(login.arrival.request.first.get, _DEVICE_ATTRIBUTES)


def _identifies_login(login: Login) -> bool:
    """Return whether a request identifies its session, port or station.

    Port 0, and a station that is the device itself, identify nothing, because all logins of a device have these values
    in common. If they counted, an attacker's login could join the login of another person.
    """
    first = login.arrival.request.first
    if first.get(ACCT_SESSION_ID) or first.get(NAS_PORT_ID) or any(first.get(NAS_PORT, b"")):
        return True
    return not is_nas(login.arrival)


def _identity(domain_id: int) -> str:
    return f"radius/state/{domain_id}"


def seal_state(vault: Vault, session: Session) -> bytes:
    """Return the State for the current step of a session, `_STATE_OCTETS` long."""
    return vault.seal(bytes.fromhex(session.id) + bytes((session.step,)), _identity(session.question.domain_id))


def open_state(vault: Vault, state: bytes, domain_id: int) -> tuple[str, int] | None:
    """Return the challenge id and step in a State. Return None if the State is not from this domain.

    A domain may forward its logins to this same service, where another domain handles them. Requests to the first
    domain then contain a State that the second domain has created.
    """
    # A State of another length belongs to EAP; an attempt to open it would cost more than the rest of the round.
    if len(state) != _STATE_OCTETS:
        return None
    try:
        clear = vault.open(state, _identity(domain_id))
    except SecretError:
        return None
    return clear[:16].hex(), clear[16]


def write(tx: Tx, session: Session) -> None:
    """Store a session, in place of its previous step."""
    tx.execute(
        "insert into challenges (id, domain_id, expires_at, session) values (:id, :domain_id, :expires_at, :session) "
        "on conflict (id) do update set expires_at = excluded.expires_at, session = excluded.session",
        id=session.id,
        domain_id=session.question.domain_id,
        expires_at=session.expires_at,
        session=json.dumps(asdict(session)),
    )


def delete(tx: Tx, challenge_id: str) -> None:
    """Delete a session. Its State is then invalid."""
    tx.execute("delete from challenges where id = :id", id=challenge_id)


def read(tx: Tx, challenge_id: str) -> Session | None:
    """Return a session from the store, or None if it does not exist."""
    return tx.one(_session, "select session from challenges where id = :id", id=challenge_id)


def sessions_of_user(tx: Tx, domain_id: int, user: str, now: int, most: int = MAX_READ) -> list[Session]:
    """Return the pending sessions of a user, ordered by their end. user: the name in upper or lower case. most: the
    maximum number of sessions that are read."""
    name = json.dumps(user.strip())[1:-1].lower()
    found = tx.all(
        _session,
        "select session from challenges where domain_id = :domain_id and expires_at > :now "
        "and (instr(lower(session), :user) > 0 or instr(session, :before) > 0) order by expires_at limit :limit",
        domain_id=domain_id,
        now=now,
        user=f'"user": "{name}' if user.isascii() else "",  # JSON escapes other letters, in one case
        before='"user": " ',
        limit=most,
    )
    return [each for each in found if fold_name(each.question.user) == fold_name(user)]


def deny(tx: Tx, domain_id: int, user: str, now: int) -> None:
    """Refuse the answers to a user's pending challenges. user: the name in upper or lower case."""
    for session in sessions_of_user(tx, domain_id, user, now, MAX_DENIED):
        tx.execute(
            "update challenges set session = :session where id = :id",
            id=session.id,
            session=json.dumps(asdict(replace(session, kind=ChallengeKind.DENIED))),
        )


def purge(tx: Tx, now: int) -> int:
    """Delete expired sessions."""
    return tx.execute("delete from challenges where expires_at < :now", now=now)


def _session(*, session: str) -> Session:
    """Return a stored session. In a rolling upgrade, a newer node may have stored it, with fields that this version
    does not know."""
    values = json.loads(session)
    question = Question(**_known(Question, values["question"]))  # type: ignore[arg-type]
    kind = ChallengeKind(values["kind"])
    return Session(**_known(Session, {**values, "question": question, "kind": kind}))  # type: ignore[arg-type]


def _known(kind: type[Session | Question], values: Mapping[str, object]) -> dict[str, object]:
    """Return the values of the fields that a class has."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in values.items() if name in names}


def void(tx: Tx) -> None:
    """Delete all pending challenges after a restore. Otherwise a challenge that was answered after the backup could be
    answered again."""
    tx.execute("delete from challenges")
