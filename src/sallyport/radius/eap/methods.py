"""The methods that a conversation offers, and the reasons why other methods are not offered.

Each method asks a kind of question, such as `Password` or `MsChap`. A method is offered if the domain's first factor
can answer its questions. A first factor with the passwords in memory can answer all kinds of questions. A directory
without winbind can answer only `Password`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sallyport.radius.eap.model import (
    NO_AUTHORITY,
    NO_SERVER,
    UNCHECKED,
    Chap,
    Method,
    MsChap,
    Offer,
    Offers,
    Password,
    Question,
)
from sallyport.radius.eap.packet import GTC, MD5, MSCHAPV2, PEAP, TLS, TTLS
from sallyport.radius.eap.password_methods import Gtc, Md5, MsChapV2
from sallyport.radius.eap.peap import PeapPhase
from sallyport.radius.eap.server import TlsServer, TrustingServer
from sallyport.radius.eap.tls import TlsPhase
from sallyport.radius.eap.ttls import TtlsPhase
from sallyport.radius.eap.tunnel import Tunnel
from sallyport.radius.eap.tunnelled import Phase, Tunnelled

ORDER: Final = (PEAP, TTLS, TLS, MSCHAPV2, MD5)
"""The methods in the order in which they are offered. A client may ask for any of them. GTC is offered only inside a
tunnel, because it sends the password in clear."""
IN_PEAP: Final = (MSCHAPV2, GTC)
IN_TTLS: Final = (MSCHAPV2, GTC, MD5)
_TUNNELLED: Final = (PEAP, TTLS, TLS)
_INSIDE: Final[Mapping[int, tuple[int, ...]]] = {PEAP: IN_PEAP, TTLS: IN_TTLS, TLS: ()}
_NEEDS: Final[Mapping[int, type[Question]]] = {MD5: Chap, MSCHAPV2: MsChap, GTC: Password}
_MAKERS: Final[Mapping[int, Callable[[bytes], Method]]] = {MD5: Md5, MSCHAPV2: MsChapV2, GTC: Gtc}


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions that decide which methods are offered. The object is hashable, because it is the key of a cache.

    server: the TLS server; None without a certificate. checkable: the kinds of questions that the first factor can
    answer. order: the order of the methods (see ORDER). fragment_size: the maximum length of an EAP packet in octets; 0
    for the configured length. scope: the name space of the user names (a domain and its first factor). A session can be
    resumed only in the scope in which it was established. owner: a tenant. New sessions are stored in this tenant's
    share of the session table. has_own: whether the domain has trust anchors of its own, and does not trust those of
    the installation. trusting: the server of EAP-TLS with these anchors; None if they cannot be used.
    """

    server: TlsServer | None
    checkable: frozenset[type[Question]]
    order: tuple[int, ...] = ORDER
    fragment_size: int = 0
    scope: str = ""
    owner: int = 0
    has_own: bool = False
    trusting: TrustingServer | None = None


def offers(terms: Terms) -> Offers:
    """Return the methods that can be offered, and for each other method the reason why it cannot be offered."""
    found: list[Offer] = []
    left_out: dict[int, str] = {}
    for kind in terms.order:
        why = _why_not(kind, terms)
        if why:
            left_out[kind] = why
        else:
            found.append(_tunnelled(kind, terms) if kind in _TUNNELLED else _plain(kind))
    return Offers(found, left_out)


def _why_not(kind: int, terms: Terms) -> str:
    if kind not in _TUNNELLED:
        return "" if _NEEDS[kind] in terms.checkable else UNCHECKED
    if terms.server is None:
        return NO_SERVER
    if kind == TLS:
        takes = terms.trusting is not None if terms.has_own else terms.server.takes_certificates
        return "" if takes else NO_AUTHORITY
    inside = {Password, Chap, MsChap} if kind == TTLS else {_NEEDS[each] for each in IN_PEAP}
    return UNCHECKED if inside.isdisjoint(terms.checkable) else ""


def _plain(kind: int) -> Offer:
    return Offer(kind, lambda user, _now: _MAKERS[kind](user))


def _tunnelled(kind: int, terms: Terms) -> Offer:
    server = terms.server
    assert server is not None  # noqa: S101  or it would not be offered
    size = terms.fragment_size or server.configuration.fragment_size
    inside = offers(Terms(None, terms.checkable, _INSIDE[kind]))

    trusting = terms.trusting if kind == TLS else None
    resumptions = server.resumptions[kind] if trusting is None else trusting.resumptions

    def make(_identity: bytes, now: float) -> Method:
        tunnel = server.tunnel(kind, terms.scope) if trusting is None else trusting.tunnel(terms.scope)
        phase = _phase(kind, tunnel, server, terms, inside, now)
        return Tunnelled(kind, tunnel, phase, resumptions, size, now=now, owner=terms.owner)

    return Offer(kind, make)


def _phase(kind: int, tunnel: Tunnel, server: TlsServer, terms: Terms, inside: Offers, now: float) -> Phase:
    if kind == TLS:
        trust = None if terms.trusting is None else terms.trusting.trust
        return TlsPhase(tunnel, server.configuration.user_names, trust)
    return PeapPhase(inside, now=now) if kind == PEAP else TtlsPhase(tunnel, inside, terms.checkable, now=now)
