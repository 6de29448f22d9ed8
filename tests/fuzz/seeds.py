"""The first inputs of each target. The tests' own helpers make them; no file is stored."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from joserfc.jwk import ECKey, RSAKey

from sallyport.agentwire.envelope import envelope
from sallyport.agentwire.report import Action, Drift, DriftKind, Phase, Poll, Report, Rotation
from sallyport.areas.did.crypto import documents, jws, vc
from sallyport.areas.did.presentations.definition import for_credential
from sallyport.base.clock import SECOND
from sallyport.base.wire import dumps
from sallyport.radius.attributes import CHAP_CHALLENGE, CHAP_PASSWORD, USER_NAME, USER_PASSWORD
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Outcome, Send
from sallyport.radius.eap.packet import PEAP, TLS, TTLS, decode
from sallyport.radius.eap.ttls import push_avp
from sallyport.radius.mschap import MICROSOFT, MS_CHAP2_RESPONSE, MS_CHAP_CHALLENGE
from tests.agentwire.test_envelope import WANTED
from tests.agentwire.test_messages import SHA512
from tests.areas.did.credentials.test_keywords import BOTH
from tests.areas.did.crypto.signers import HOLDER, ISSUERS, credential
from tests.areas.did.crypto.signers import NOW as SIGNED_AT
from tests.areas.did.crypto.signers import did as did_of
from tests.areas.directory.entry.test_ldif import EXAMPLES
from tests.areas.directory.reading.fake_directory import Person, control, entry_message, push, result_message
from tests.areas.migration import ALWAYS, STAFF, client, export, policy, profile
from tests.areas.migration.test_archives import tar, zipped
from tests.areas.migration.test_others import CLEARPASS, ISE
from tests.areas.shadow import test_logs
from tests.areas.shadow.files import Packet, ias
from tests.fuzz import bodies, cloud
from tests.fuzz.inputs import joined
from tests.fuzz.inside import CHALLENGE
from tests.fuzz.others import BOUND, DID_WEB, VERIFIER
from tests.fuzz.properties import PROPERTIES
from tests.fuzz.targets import CLIENT, ISSUER, NONCE, NOW
from tests.outgoing import costly_keys
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
_INCLUDES = ("$INCLUDE ../canary\n", "$INCLUDE link\n", "$INCLUDE ..\n")
_CLIENTS = (
    *_INCLUDES,
    "client a {\n  ipaddr = 192.0.2.0/24\n  secret = 'x y' # note\n  shortname = \"b\\\\n\"\n}\n",
    "modules {\n}\nclients c {\n client 2001:db8::1 {\n secret = ${x}\n nas_type = cisco\n}\n}\nx = $ENV{HOME}\n",
)
_USERS = (
    *_INCLUDES,
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


def _ldap() -> Iterator[bytes]:
    ann = Person("ann", attributes={"mail": ["ann@x", "a@x"], "empty": []})
    cookie = push(0x30, push(0x02, b"\0") + push(0x04, b"next"))
    yield entry_message(ann) * 2 + result_message(0x65, controls=control(b"1.2.840.113556.1.4.319", cookie))
    yield BOUND + result_message(0x65)


def _inner() -> Iterator[bytes]:
    yield b"\0" + joined([b"", b"\x01ann", b"\x03\x1a", b"\x02\x01\0\x3b" + bytes(55)])
    yield b"\0" + joined([b"", b"\x01ann", b"\x03\x06", b"\x06hello"])
    name = push_avp(USER_NAME, USER)
    yield b"\1" + joined([name + push_avp(USER_PASSWORD, b"hello".ljust(16, b"\0"))])
    hashed = push_avp(CHAP_CHALLENGE, CHALLENGE[:16]) + push_avp(CHAP_PASSWORD, CHALLENGE[16:] + bytes(16))
    yield b"\1" + joined([name + hashed])
    response = push_avp(MS_CHAP2_RESPONSE, CHALLENGE[16:] + bytes(49), MICROSOFT)
    yield b"\1" + joined([name + push_avp(MS_CHAP_CHALLENGE, CHALLENGE[:16], MICROSOFT) + response])
    yield b"\2" + joined([b"\x01" + USER, b"\x03\x1a", b"\x1a\x02\x01\0\x3a\x31" + bytes(49) + USER, b"\x1a\x04"])
    yield b"\2" + joined([b"\x01" + USER, b"\x03\x06", b"\x06hello"])


def _schemas() -> Iterator[str]:
    yield from (json.dumps([wanted, subject]) for wanted, subject, _ in BOTH)
    yield json.dumps([{"$defs": {"a": {"pattern": "^a+$"}}, "$ref": "#/$defs/a"}, "aaa"])


def _dids() -> Iterator[str]:
    holder = documents.resolve(did_of(HOLDER))
    yield did_of(HOLDER)
    yield json.dumps({**holder.content, "id": DID_WEB})
    for issuer in ISSUERS.values():
        yield documents.jwk_did(issuer.key.public)
        document = credential(issuer)
        token = vc.sign(document, issuer)
        yield json.dumps(document)
        yield json.dumps(jws.parse(token).payload)
        shown = {"@context": document["@context"], "type": ["VerifiablePresentation"], "holder": did_of(HOLDER)}
        yield json.dumps({**shown, "verifiableCredential": [token]})
        yield json.dumps({**shown, "verifiableCredential": [document]})
        claims = {"iss": did_of(HOLDER), "aud": VERIFIER, "nonce": NONCE, "exp": SIGNED_AT // SECOND + 60}
        yield json.dumps({**claims, "vp": {**shown, "verifiableCredential": [token]}})


def _envelopes() -> Iterator[bytes]:
    actions, drift = (Action("create", "ann"), Action("keys", "ann", error="x")), (Drift(DriftKind.ACCOUNT, "ann"),)
    yield dumps(Poll(7, 30))
    yield dumps(Report("report-1", 1, 7, "1.0", "Debian", "host", actions=actions, drift=drift))
    yield dumps(Rotation("rotation1", "ann", Phase.ESCROW, password="s3cret pass", password_hash=SHA512))
    yield json.dumps(envelope(lambda octets: octets[:64], WANTED)).encode()
    yield b'{"unchanged": true}'


def _archives() -> Iterator[bytes]:
    files, links = {"a/b": b"1", "a/c": b"2"}, {"a/d": "b", "e": "a/../../x"}
    yield tar(files, links, mode="w")
    yield tar(files, {"l": "a/b"}, hard=True, mode="w")
    yield tar(files, links)
    yield zipped(files, links)


def _stations() -> Iterator[str]:
    yield 'station,name,vlan,role,tags,until,psk\n02-00-00-00-00-01,printer,7,guest,"a,""b c""",,secret psk\n'
    station = {"station": "02:00:00:00:00:01", "name": "'=x", "tags": ["a"], "until": "2026-12-31"}
    yield json.dumps([station, {**station, "vlan": 4095}])


def _keys() -> Iterator[str]:
    key = ECKey.generate_key("P-256")
    yield key.as_pem(private=True).decode()
    yield json.dumps(key.as_dict(private=True))
    yield costly_keys.pem(costly_keys.RSA)
    yield json.dumps(RSAKey.import_key(costly_keys.RSA).as_dict(private=True))
    yield costly_keys.certificate(costly_keys.EC.public_key()) * 2
    yield from costly_keys.ENCRYPTED.values()


def _tokens() -> Iterator[str]:
    yield from (jws.sign({"a": 1}, issuer) for issuer in ISSUERS.values())
    yield json.dumps(_CLAIMS)
    yield json.dumps({**_CLAIMS, "amr": ["mfa"], "acr": "high", "groups": ["a"], "name": "Ann", "azp": CLIENT})


_SEEDS: dict[str, Callable[[], Iterator[bytes] | Iterator[str] | tuple[str, ...] | tuple[bytes, ...] | list[bytes]]] = {
    "packet": _packets,
    "radsec": lambda: (b"".join(_packets()), access_request(attributes(USER_NAME=b"ann")) + b"\1\1\0\x13"),
    "eap": _eap,
    "tls": _tls,
    "http": lambda: _HEADS,
    "ldif": lambda: (EXAMPLES, b"dn:: Y249YQ==\r\ncn:< file:///x\r\n\r\n", b"version: 1\n\n# x\n y\n"),
    "dn": lambda: _NAMES,
    "filter": lambda: _FILTERS,
    "nps": _nps,
    "clients": lambda: _CLIENTS,
    "users": lambda: _USERS,
    "bypass": _stations,
    "pem": _keys,
    "cloud": cloud.answers,
    "forms": lambda: ("name=a+b&vlan=7&tags=x%0Dy&empty=", "a=%FF&a=2&%C3%A9=%E2%82%AC", "&".join(["x"] * 20)),
    "token": _tokens,
    "ldap": _ldap,
    "inner": _inner,
    "schema": _schemas,
    "did": _dids,
    "definition": lambda: (for_credential("n", "p", {"$.issuer": "did:web:a", "$.id": None}).text,),
    "envelope": _envelopes,
    "logs": lambda: (test_logs.DETAIL, test_logs.RADIUS_LOG, test_logs.LINELOG, test_logs.ISE, ias(Packet("b"))),
    "archive": _archives,
    "tables": lambda: (ISE, CLEARPASS, "name;address;secret\na;192.0.2.1;xxxxxxxxxxxxxxxx\n"),
    **dict.fromkeys(PROPERTIES, lambda: (bytes(64), bytes(range(256)))),
    "body": bodies.seeds,
}
