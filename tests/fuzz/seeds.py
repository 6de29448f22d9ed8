"""The first inputs of each target. The tests' own helpers make them; no file is stored."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from sallyport.areas.did.crypto import jws
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Outcome, Send
from sallyport.radius.eap.packet import PEAP, TLS, TTLS, decode
from tests.areas.did.crypto.signers import ISSUERS
from tests.areas.directory.entry.test_ldif import EXAMPLES
from tests.areas.migration import ALWAYS, STAFF, client, export, policy, profile
from tests.fuzz import bodies
from tests.fuzz.targets import CLIENT, ISSUER, NONCE, NOW, joined
from tests.packets import access_request, attributes, chap, mschap2, pap
from tests.radius.eap.conftest import USER, Site
from tests.radius.eap.supplicant import Md5Side, MsChapSide, Side, Supplicant, TlsSide, in_peap, in_ttls_pap, silent
from tests.radius.eap.users import EVERYTHING, Users

_STATION = attributes(CALLING_STATION_ID=b"02-00-00-00-00-01", NAS_IDENTIFIER=b"switch", STATE=b"state")
_HEADS = (
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /ad/x?y=z HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"GET http://a/b HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\r\n",
)
_NAMES = ("cn=Ann\\, B,ou=People,dc=example,dc=com", 'CN="a;b"+uid=x;o=#0403616263', "OID.2.5.4.3=\\E2\\82\\AC ,c=DE")
_FILTERS = ("(&(objectClass=person)(!(cn=a*b*))(|(x>=1)(y~=2)))", "cn:dn:2.4.6.8:=a\\2a", "(:caseExactMatch:=x)")
_CLIENTS = (
    "client a {\n  ipaddr = 192.0.2.0/24\n  secret = 'x y' # note\n  shortname = \"b\\\\n\"\n}\n",
    "modules {\n}\nclients c {\n client 2001:db8::1 {\n secret = ${x}\n nas_type = cisco\n}\n}\nx = $ENV{HOME}\n",
)
_USERS = (
    'ann Cleartext-Password := "hello"\n\tReply-Message = "Hi",\n\tFall-Through = Yes\n\nDEFAULT Auth-Type := Reject\n',
    '$INCLUDE other\nbob NAS-IP-Address == 192.0.2.1, Huntgroup-Name == "x"\n\tTunnel-Type:1 = VLAN\n',
)
_CLAIMS = {"iss": ISSUER, "aud": CLIENT, "nonce": NONCE, "sub": "1", "exp": NOW + 60, "iat": NOW, "auth_time": NOW}


def seeds(target: str) -> list[bytes]:
    """Return the seeds of a target."""
    return [each if isinstance(each, bytes) else each.encode() for each in _SEEDS[target]()]


def _packets() -> Iterator[bytes]:
    yield pap("ann", "hello", _STATION)
    yield pap("ann@corp", "hello", _STATION, signed=False)
    yield chap("ann", "hello", b"0123456789abcdef")
    yield mschap2("ann", "hello")
    yield access_request(attributes(EAP_MESSAGE=b"\x02\x00\x00\x08\x01ann"))


def _eap() -> Iterator[bytes]:
    with TemporaryDirectory() as folder:
        site = Site(Path(folder))
        for side in (Md5Side(b"x"), MsChapSide(b"x", b"x", b"x", b"x")):
            parts = _answers(site, side)
            yield from parts
            yield joined([part[4:] for part in parts if len(part) < 256])


def _tls() -> Iterator[bytes]:
    with TemporaryDirectory() as folder:
        site = Site(Path(folder))
        sides = {PEAP: in_peap(USER, MsChapSide(b"x", b"x", b"x", b"x")), TLS: silent, TTLS: in_ttls_pap(USER, b"x")}
        for number, (kind, inside) in enumerate(sides.items()):
            side = TlsSide(kind, inside, begins=kind == TTLS, fragment_size=200)
            yield bytes((number,)) + joined([part[5:] for part in _answers(site, side)[2 - (kind == PEAP) :]])


def _answers(site: Site, side: Side) -> list[bytes]:
    """Return the first EAP packets of a client."""
    conversation, supplicant = Conversation(offers(Terms(site.server, EVERYTHING)), now=0), Supplicant(USER, side)
    outcome: Outcome = conversation.begin()
    found: list[bytes] = []
    while isinstance(outcome, Send) and len(found) < 8:
        found.append(supplicant.respond(outcome.octets))
        assert decode(found[-1])
        outcome = Users({USER: b"y"}).settle(conversation, conversation.receive(found[-1]))
    return found


def _nps() -> Iterator[str]:
    yield export([client("switch", "192.0.2.7"), client("all", "192.0.2.0/24", Require_Signature=1)])
    conditions = [ALWAYS, f'USERNTGROUPS("{STAFF}")', 'MATCH("NAS-Port-Type=^19$")']
    yield export([client("a", "192.0.2.7")], [policy("p", 1, conditions)], [profile("p", msRADIUSFramedProtocol=1)])


def _tokens() -> Iterator[str]:
    yield from (jws.sign({"a": 1}, issuer) for issuer in ISSUERS.values())
    yield json.dumps(_CLAIMS)
    yield json.dumps({**_CLAIMS, "amr": ["mfa"], "acr": "high", "groups": ["a"], "name": "Ann", "azp": CLIENT})


_SEEDS: dict[str, Callable[[], Iterator[bytes] | Iterator[str] | tuple[str, ...] | tuple[bytes, ...] | list[bytes]]] = {
    "packet": _packets,
    "eap": _eap,
    "tls": _tls,
    "http": lambda: _HEADS,
    "ldif": lambda: (EXAMPLES, b"dn:: Y249YQ==\r\ncn:< file:///x\r\n\r\n", b"version: 1\n\n# x\n y\n"),
    "dn": lambda: _NAMES,
    "filter": lambda: _FILTERS,
    "nps": _nps,
    "clients": lambda: _CLIENTS,
    "users": lambda: _USERS,
    "token": _tokens,
    "body": bodies.seeds,
}
