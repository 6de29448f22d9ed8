"""The targets. Each takes any octets, and returns if the parser keeps its promises: it raises its documented errors
only, and what it accepts has the same meaning after it is written and read again.
"""

import contextlib
import errno
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import trio
from joserfc import jwt as signed
from joserfc.jwk import ECKey
from prometheus_client import CollectorRegistry

from sallyport.areas.clients import freeradius
from sallyport.areas.clients.client import ClientTable
from sallyport.areas.did.crypto import jws
from sallyport.areas.directory.entry import dn
from sallyport.areas.directory.entry.ldif import EntryContent, LdifError, LdifParser
from sallyport.areas.directory.reading import search
from sallyport.areas.login.listen.radsec import RadSec, decode_proven
from sallyport.areas.login.listen.radsec import _Connection as RadSecConnection
from sallyport.areas.login.listen.senders import Senders
from sallyport.areas.migration import freeradius_users, nps
from sallyport.areas.migration.translation import Options, Translation
from sallyport.base.errors import ClientsFileError, CredentialError, Invalid, PacketError
from sallyport.metrics import RadiusMetrics
from sallyport.outgoing.openid.id_token import TokenError, check_methods, check_time, identity, verified
from sallyport.radius import packet as radius
from sallyport.radius.attributes import PROXY_STATE, STATE, pull_attributes, push_attribute
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Done
from sallyport.radius.eap.packet import NAK, PEAP, RESPONSE, TLS, TTLS
from sallyport.web.http1 import Malformed, Parser, common_head
from tests.fuzz import admins, cloud, inside, others
from tests.fuzz.folders import only_file
from tests.fuzz.inputs import as_text, pieces
from tests.fuzz.properties import PROPERTIES
from tests.radius.eap.conftest import USER, Site
from tests.radius.eap.users import EVERYTHING

CPU_S: Final = 1.0
"""Maximum CPU time for one input. The largest valid input of a target needs less than a tenth."""
HEAD: Final = 8192
_DROPPED: Final = frozenset({STATE, PROXY_STATE})
SECRET: Final = radius.SharedSecret(b"a secret of the tests")
ISSUER, CLIENT, NONCE, NOW = "https://idp.example.com", "client", "nonce", 1_767_225_600


@dataclass(frozen=True)
class Target:
    """A target. run: the function. most: the maximum size of an input in octets. guides: the packages whose code guides
    the fuzzer."""

    run: Callable[[bytes], None]
    most: int
    guides: tuple[str, ...] = ()


def check(target: Target, octets: bytes, cpu_s: float = CPU_S) -> None:
    """Run a target, and limit its CPU time."""
    began = time.thread_time()
    target.run(octets)
    took = time.thread_time() - began
    assert took < cpu_s, f"{took:.1f} s for {len(octets)} octets"


# --- RADIUS -------------------------------------------------------------------------------------------------------


def packet(octets: bytes) -> None:
    """A datagram is a request, or PacketError. Its attributes are the same octets when they are written again. The
    attributes of the input are also read as those of authentic requests and of an authentic answer."""
    with contextlib.suppress(PacketError):
        radius.peek(octets)
    with contextlib.suppress(PacketError):
        _read(radius.decode(octets, SECRET))
    head, body = octets[:20].ljust(20, b"\0"), octets[20:]
    for code in (radius.ACCESS_REQUEST, radius.ACCOUNTING_REQUEST, radius.STATUS_SERVER):
        with contextlib.suppress(PacketError):
            _read(radius.decode(radius.encode_request(code, head[1], SECRET, body, authenticator=head[4:]), SECRET))
    with contextlib.suppress(PacketError):
        request = radius.decode(radius.encode_request(radius.ACCESS_REQUEST, head[1], SECRET, b""), SECRET)
        reply = radius.open_reply(radius.encode_reply(head[0], request, SECRET, body), request.data, SECRET)
        _check_attributes(reply)
        reply.without(_DROPPED)


def _read(request: radius.Request) -> None:
    """Read a request, answer it, and read the answer."""
    _check_attributes(request)
    request.vendor_values()
    for kind in request.first:
        request.integers((kind, 4))
        assert request.integer(kind) is None or request.text(kind)
    kept = b"".join(push_attribute(kind, value) for kind, value in _pairs(request) if kind not in _DROPPED)
    assert request.without(_DROPPED) == kept
    answer = radius.encode_reply(radius.ACCESS_REJECT, request, SECRET)
    radius.decode_reply(answer, request.data, SECRET)


def _pairs(data: radius.Request | radius.Reply) -> list[tuple[int, bytes]]:
    return list(pull_attributes(data.data[20:]))


def _check_attributes(found: radius.Request | radius.Reply) -> None:
    """Check that the attributes are written as they were read, and that each type has its values in order."""
    pairs = _pairs(found)
    assert b"".join(push_attribute(kind, value) for kind, value in pairs) == found.data[20:]
    for kind in found.first:
        assert found.values(kind) == [value for each, value in pairs if each == kind]


def eap_packet(octets: bytes) -> None:
    """An EAP packet is written as it was read; a conversation with any packets raises PacketError only."""
    with contextlib.suppress(PacketError):
        # octets after the length of the packet are ignored (RFC 3748 section 4.1)
        assert eap.encode(eap.decode(octets)) == octets[: int.from_bytes(octets[2:4])]
    conversation = Conversation(offers(Terms(None, EVERYTHING)), now=0)
    for piece in pieces(octets):
        with contextlib.suppress(PacketError):
            conversation.receive(_response(conversation, piece))


@cache
def _site() -> Site:
    return Site(Path(tempfile.mkdtemp(prefix="fuzz")))


def tls(octets: bytes) -> None:
    """TLS records inside EAP end a conversation or raise PacketError. No client without a certificate or password is
    accepted. The first octet chooses the method."""
    site, parts = _site(), pieces(octets[1:])
    kind = (PEAP, TLS, TTLS)[octets[0] % 3] if octets else PEAP
    conversation = Conversation(offers(Terms(site.server, EVERYTHING)), now=0)
    conversation.receive(eap.encode(eap.Packet(RESPONSE, 0, eap.IDENTITY, USER)))
    if kind != PEAP:
        conversation.receive(eap.encode(eap.Packet(RESPONSE, conversation.identifier, NAK, bytes((kind,)))))
    for piece in parts:
        with contextlib.suppress(PacketError):
            outcome = conversation.receive(eap.encode(eap.Packet(RESPONSE, conversation.identifier, kind, piece)))
            outcome = site.users.settle(conversation, outcome)
            assert not (isinstance(outcome, Done) and outcome.success)


def _response(conversation: Conversation, piece: bytes) -> bytes:
    """Return a response to the last request. The first octet of the piece is its type."""
    return eap.encode(eap.Packet(RESPONSE, conversation.identifier, piece[0] if piece else 0, piece[1:]))


@cache
def _radsec() -> RadSec:
    metrics = RadiusMetrics(CollectorRegistry())
    return RadSec(lambda: None, lambda: ClientTable(()), lambda: None, metrics, Senders())


def radsec(octets: bytes) -> None:
    """The octets of a RadSec connection are packets one after the other, until a malformed head closes the connection.
    The size of the pieces in which they arrive makes no difference."""
    whole, rest = trio.run(_framed, octets, max(len(octets), 1))
    assert trio.run(_framed, octets, 5) == (whole, rest)
    assert b"".join(whole) + rest == octets
    for each in whole:
        assert int.from_bytes(each[2:4]) == len(each)
        with contextlib.suppress(PacketError):
            assert decode_proven(each, SECRET).signed


async def _framed(octets: bytes, step: int) -> tuple[list[bytes], bytes]:
    """Return the packets in the octets of a connection, and the octets that are left."""
    server, connection, found = _radsec(), RadSecConnection(("192.0.2.1", 2083, bytes(8))), list[bytes]()
    for at in range(0, len(octets), step):
        connection.pending += octets[at : at + step]
        while (packet := server._pull(connection)) is not None:
            found.append(packet)
        if connection.scope.cancel_called:
            return found, octets[sum(map(len, found)) :]
    return found, bytes(connection.pending)


# --- HTTP ---------------------------------------------------------------------------------------------------------


def http(octets: bytes) -> None:
    """Requests are read, or Malformed. The size of the pieces in which they arrive makes no difference. The fast reader
    of heads agrees with h11."""
    whole = _read_http(octets, max(len(octets), 1))
    assert _read_http(octets, 7) == whole
    end = octets.find(b"\r\n\r\n") + 4
    if 4 <= end <= HEAD and (quick := common_head(octets[:end])) is not None:
        assert quick == Parser(HEAD)._begin(octets[:end])


def _read_http(octets: bytes, step: int) -> list[object]:
    parser, found = Parser(HEAD), list[object]()
    body, head = bytearray(), None
    try:
        for at in range(0, len(octets), step):
            parser.feed(octets[at : at + step])
            while True:
                if parser.body_due:
                    taken = parser.take_body()
                    body += taken
                    if parser.body_due and not taken:
                        break
                elif head is not None and not head.keeps_alive:
                    return [*found, bytes(body)]  # the connection ends, so the rest of its octets is not read
                elif (head := parser.head()) is not None:
                    found.append(head)
                else:
                    break
    except Malformed as error:
        found.append(error.status)
    return [*found, bytes(body)] if not found or not isinstance(found[-1], int) else found[-1:]


# --- directories --------------------------------------------------------------------------------------------------


def ldif(octets: bytes) -> None:
    """A file has records, or LdifError; the size of the pieces in which it arrives makes no difference."""
    assert _read_ldif(octets, max(len(octets), 1)) == _read_ldif(octets, 5)


def _read_ldif(octets: bytes, step: int) -> list[object]:
    parser, found = LdifParser(), list[object]()
    try:
        for at in range(0, len(octets), step):
            found += parser.feed(octets[at : at + step])
        found += parser.close()
    except LdifError as error:
        found.append(str(error))
    for each in found:
        assert not isinstance(each, EntryContent) or each.line > 0
    return found


def name(octets: bytes) -> None:
    """A distinguished name is parsed, or Invalid. Its written form is the same name, and the normalized form does not
    change any more."""
    text = as_text(octets)
    with contextlib.suppress(Invalid):
        once = dn.normalized(text)
        parsed = dn.parsed(text)
        assert dn.parsed(dn.written(parsed)) == parsed
        assert dn.normalized(dn.written(parsed)) == once
        if len(once.encode()) <= dn.MAX_SIZE:
            assert dn.normalized(once) == once


def pattern(octets: bytes) -> None:
    """A filter is accepted, or Invalid. It stays one filter inside another filter."""
    text = as_text(octets)
    with contextlib.suppress(Invalid):
        once = search.checked(text)
        assert search.checked(once) == once
        if len(once) < search.MAX_LENGTH // 4:
            with contextlib.suppress(Invalid):  # one level more
                assert search.checked(search.all_of(once, "(a=b)")) == f"(&{once}(a=b))"
    if len(text) < search.MAX_LENGTH // 4:
        value = f"(cn={search.escaped(text)})"
        assert search.checked(value) == value


# --- files of other servers ---------------------------------------------------------------------------------------


def nps_export(octets: bytes) -> None:
    """An export of NPS is translated, or Invalid. The translation passes the pipe between two processes unchanged."""
    with only_file(octets, "nps.xml") as path, contextlib.suppress(Invalid):
        found = nps.translate(path, Options("corp", timezone="Europe/Berlin"))
        sent = found.as_json()
        assert Translation.parse(json.loads(json.dumps(sent))).as_json() == json.loads(json.dumps(sent))


def clients_conf(octets: bytes) -> None:
    """A clients.conf has clients, or ClientsFileError. Nothing outside its folder is read."""
    with only_file(octets, "clients.conf") as path, contextlib.suppress(ClientsFileError):
        freeradius.findings(freeradius.read(path, within=path.parent))


def users_file(octets: bytes) -> None:
    """A users file of FreeRADIUS has entries, or Invalid. A file that it includes may not exist. Nothing outside its
    folder is read."""
    with only_file(octets, "users") as path, contextlib.suppress(Invalid):
        try:
            freeradius_users.entries(path, path.parent)
        except OSError as error:
            assert error.errno in _ABSENT, error


_ABSENT: Final = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


# --- tokens and bodies --------------------------------------------------------------------------------------------


@cache
def _key() -> ECKey:
    return ECKey.generate_key("P-256", {"kid": "k"})


def token(octets: bytes) -> None:
    """A credential is parsed, or CredentialError. An ID token is accepted, or TokenError: as any text, and as claims
    that the provider has signed."""
    text = octets.decode("utf-8", "replace")
    with contextlib.suppress(CredentialError):
        jws.parse(text)
    with contextlib.suppress(ValueError, RecursionError):
        claims = json.loads(text)
        if isinstance(claims, dict):
            text = signed.encode({"alg": "ES256", "kid": "k"}, claims, _key(), algorithms=["ES256"])
    with contextlib.suppress(TokenError):
        found = verified(text, (_key(),), issuer=ISSUER, client_id=CLIENT, nonce=NONCE, now=NOW)
        assert (found["iss"], found["nonce"]) == (ISSUER, NONCE)
        check_time(found, NOW - 60, is_required=False)
        check_methods(found, amr={"mfa"}, acr={"high"})
        identity(found, text, groups_claim="groups", name_claim="name")


def body(octets: bytes) -> None:
    """A body of any operation is read, or refused with an answer that can be sent."""
    from tests.fuzz import bodies  # it imports the whole service

    bodies.body(octets)


def _target(run: Callable[[bytes], None], most: int, packages: str) -> Target:
    """Return a target. packages: those of the service, or others, separated by spaces."""
    ours = ("agent", "agentwire", "areas", "base", "console", "outgoing", "radius", "shell", "web")
    names = packages.split()
    return Target(run, most, tuple(f"sallyport.{each}" if each.partition(".")[0] in ours else each for each in names))


TARGETS: Final = {
    "packet": _target(packet, 4096, "radius"),
    "radsec": _target(radsec, 8192, "radius areas.login.listen"),
    "eap": _target(eap_packet, 3000, "radius"),
    "tls": _target(tls, 3000, "radius"),
    "inner": _target(inside.inner, 3000, "radius"),
    "http": _target(http, 4096, "web.http1 h11"),
    "ldif": _target(ldif, 4096, "areas.directory.entry"),
    "dn": _target(name, 1024, "areas.directory.entry"),
    "filter": _target(pattern, 1024, "areas.directory.reading"),
    "ldap": _target(others.ldap, 8192, "areas.directory.reading"),
    "nps": _target(nps_export, 8192, "areas.migration"),
    "clients": _target(clients_conf, 4096, "areas.clients"),
    "users": _target(users_file, 4096, "areas.migration"),
    "archive": _target(others.archive, 8192, "areas.migration tarfile zipfile"),
    "tables": _target(others.tables, 4096, "areas.migration"),
    "bypass": _target(admins.bypass, 4096, "areas.policy.bypass shell base"),
    "logs": _target(others.logs, 4096, "areas.shadow"),
    "token": _target(token, 4096, "outgoing.openid areas.did.crypto joserfc"),
    "cloud": _target(cloud.cloud, 8192, "areas.mfa areas.directory outgoing"),
    "pem": _target(admins.pem, 8192, "outgoing"),
    "schema": _target(others.schema, 4096, "areas.did jsonschema referencing"),
    "did": _target(others.did, 4096, "areas.did"),
    "definition": _target(others.definition, 4096, "areas.did"),
    "envelope": _target(others.envelope, 4096, "agentwire base.wire"),
    "forms": _target(admins.forms, 8192, "console.guard web starlette urllib.parse"),
    "body": _target(body, 4096, "web base areas"),
    **{name: _target(run, 2048, packages) for name, (run, packages) in PROPERTIES.items()},
}
