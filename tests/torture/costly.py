"""Values that are costly to read, compare, match or use. They have the maximum size of their fields."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec

from tests.areas.users import keys
from tests.outgoing import costly_keys

_CLASSES: Final = "\u0345\u0301\u0327\u05b0\u0591\u0323"
"""Combining marks of different classes, which Unicode normalization has to sort."""
MARKS: Final = "a" + _CLASSES * 100_000


def texts(most: int) -> Iterator[tuple[str, str]]:
    """Yield costly texts of at most the given number of octets, each with the name of its kind."""
    yield "marks", MARKS[: max(most // 2, 1)] if most > 4096 else MARKS[:most]
    if most < 256:
        return
    yield "brackets", "(" * most
    if most > 4096:
        yield "letters", "a" * most
        yield "digits", "9" * most
        yield "spaces", "a" + " " * (most - 2) + "a"
        yield "wide", "\ufdfa" * (most // 3)
        yield "escapes", "\\" * (most // 2)


def objects(room: int) -> Iterator[tuple[str, Any]]:
    """Yield objects with many names, deeply nested objects, and a long text."""
    yield "names", {f"n{number}": 1 for number in range(room // 13)}
    yield "long names", {f"{number}{MARKS[:400]}": "" for number in range(room // 820)}
    deep: Any = 1
    for _ in range(100):
        deep = {"a": [deep]}
    yield "deep", deep
    yield "long text", {"a": MARKS[: room // 2]}
    yield "many lists", {"a": [[]] * 49_000}


def _jwk(number: int) -> str:
    return urlsafe_b64encode(number.to_bytes(512)).decode().rstrip("=")


def _numbered(form: str, most: int) -> list[str]:
    return [form.format(number) for number in range(most)]


_RSA: Final = costly_keys.COMPOSITE_RSA.public_key()
_P521: Final = ec.generate_private_key(ec.SECP521R1())
_CERTIFICATES: Final = {
    "16 of RSA": costly_keys.certificate(_RSA) * 16,
    "16 of P-521": costly_keys.certificate(_P521.public_key()) * 16,
    "long exponent": costly_keys.certificate(costly_keys.LONG_EXPONENT_RSA),
}
_KEYS: Final = {
    "RSA of 4096 bits": costly_keys.pem(costly_keys.COMPOSITE_RSA),
    "RSA of 6144 bits": costly_keys.pem(costly_keys.LONG_RSA),
    "P-521": costly_keys.pem(_P521),
    "encrypted": costly_keys.ENCRYPTED["PKCS#8"],
}
_DIDS: Final = {
    "long did:key": "did:key:z" + "z" * 2000,
    "did:jwk": "did:jwk:"
    + urlsafe_b64encode(json.dumps({"kty": "RSA", "e": "AQAB", "n": _jwk((1 << 4096) - 1)}).encode()).decode(),
    "long did:web": "did:web:127.0.0.1" + ":a" * 900,
}
_FILTERS: Final = {
    "nested filter": "(!" * 1300 + "(a=b)" + ")" * 1300,
    "wide filter": "(|" + "(a=*b*)" * 580 + ")",
    "name in it": "(|" + "(uid={user})" * 160 + ")",
}
_PATTERNS: Final = {f"^(a?){{{number}}}a*$": {} for number in range(1, 60)}
_TIME: Final = "2099-01-01T00:00:00." + "0" * 900_000 + "Z"
_IDS: Final = ("instanceIds", "instanceId", "userIds", "groupId", "deviceId", "id", "epmUserId", "ruleId")
_STATIONS: Final = [f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(1000)]
_BRANCHES: Final = [{"properties": {f"p{number}": {"type": "integer"}}} for number in range(200)]
_ACCOUNT: Final = {"uid": 1, "gid": 1, "groups": ["g"] * 12, "sudo": ["ALL" * 100], "home": "/home/" + "a" * 100}

BY_NAME: Final[Mapping[str, Mapping[str, Any]]] = {
    **dict.fromkeys(("caCertificate", "clientCertificate"), _CERTIFICATES),
    "clientKey": _KEYS,
    "publicKeyJwk": {"RSA": {"kty": "RSA", "e": "AQAB", "n": _jwk((1 << 4096) - 1)}},
    "sshKey": {"256 of RSA": "\n".join([keys.line(_RSA)] * 80)},
    **dict.fromkeys(("issuerDid", "holderDid", "author", "did"), _DIDS),
    **dict.fromkeys(("filter", "userFilter"), _FILTERS),
    "schema": {
        "patterns": {"$schema": "https://json-schema.org/draft/2020-12/schema", "patternProperties": _PATTERNS},
        "branches": {"anyOf": _BRANCHES, "additionalProperties": False},
        "references": {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}] * 300}}, "$ref": "#/$defs/a"},
    },
    "metadata": {"claims": {"epmUsername": "ann", **{f"{n}{'a' * 40}": "a" * 20 for n in range(400)}}},
    "presentation": {"long token": f"{'e' * 300_000}.{'e' * 300_000}.{'e' * 300_000}", "dots": "." * 900_000},
    **{name: {"fraction": _TIME} for name in ("expiry", "expiresAt", "from", "to")},
    **{name: {"path": "../" * 20} for name in ("timeZone", "timezone")},
    **{name: {"addresses": _STATIONS} for name in ("station", "stations")},
    "serviceTypes": {"names": ["Framed-User"] * 1000},
    "replyAttributes": {"of RADIUS": [{"name": "Reply-Message", "value": "a" * 240}] * 15},
    "realms": {"names": _numbered("r{}.example", 64)},
    **{name: {"200 of the crowd": list(range(2, 202))} for name in _IDS},
    "epmUsers": {"200 of the crowd": [{"epmUserId": number} for number in range(2, 202)]},
    "kinds": {"all": ["user", "machine", "station"]},
    "servers": {"8 of LDAP": _numbered("ldaps://127.0.0.1:{}", 8)},
    "entries": {
        "people": [
            {
                "kind": "person",
                "externalId": f"p{n}",
                "dn": f"uid=p{n},dc=a",
                "name": f"p{n}",
                "attributes": {"mail": [MARKS[:900]]},
            }
            for n in range(500)
        ],
        "memberships": [
            {
                "kind": "person",
                "externalId": "p",
                "dn": "uid=p,dc=a",
                "name": "p",
                "memberOf": _numbered("cn=g{},dc=\u00e9", 10_000),
            }
        ],
        "members": [
            {
                "kind": "group",
                "externalId": "g",
                "dn": "cn=g,dc=a",
                "name": "g",
                "members": _numbered("uid=p{},dc=\u00e9", 10_000),
            }
        ],
        "a long name": [{"kind": "unit", "externalId": "u", "dn": "ou=" + MARKS[:8000], "name": "u"}],
    },
    "discovery": {"accounts": {"at": 1, "accounts": [{**_ACCOUNT, "name": f"a{n}"} for n in range(1100)]}},
    "managed": {"accounts": [{"name": f"a{n}", "uid": n, "made": True} for n in range(2000)]},
    "drift": {"accounts": [{"kind": "account", "name": f"a{n}", "detail": "a" * 400} for n in range(1000)]},
    "privileged": {"accounts": [{"name": f"a{n}", "via": ["sudo"] * 4} for n in range(2000)]},
}
"""Values for fields whose text has a meaning that makes some values costly."""
_PERSON: Final = "dn: uid={0},dc=a\nobjectClass: person\nuid: {0}\nmail: {0}@a.example\n\n"
LDIF: Final[Mapping[str, bytes]] = {
    "people": "".join(_PERSON.format(f"p{number}") for number in range(20_000)).encode(),
    "members": "\n".join(
        ["dn: cn=g,dc=a", "objectClass: groupOfNames", *_numbered("member: uid=p{},dc=a", 50_000)]
    ).encode(),
    "a long line": b"dn: uid=a,dc=a\nobjectClass: person\nuid: a\ncn:: " + b"zIHM" * 1_000_000 + b"\n",
    "folded lines": b"dn: uid=a,dc=a\nobjectClass: person\nuid: a" + b"\n a" * 1_000_000 + b"\n",
}
"""Directory files (RFC 2849)."""
GOOD: Final[Mapping[str, Any]] = {
    "servers": "ldaps://127.0.0.1:9",
    "baseDN": "dc=example",
    "host": "127.0.0.1",
    "clientCertificate": costly_keys.certificate(_P521.public_key()),
    "clientKey": costly_keys.pem(_P521),
    "url": "http://127.0.0.1:9/",
    "domain": "127.0.0.1:9",
    "issuerDid": "did:web:a.example",
}
"""Valid texts that are put around a costly text in a field."""
