"""DIDs and their documents."""

import json

import pytest

from sallyport.areas.did.crypto.documents import (
    ASSERTION,
    AUTHENTICATION,
    PURPOSES,
    Method,
    did_of,
    jwk_did,
    key_did,
    of_methods,
    parse,
    resolve,
    split,
    web_address,
    web_did,
)
from sallyport.areas.did.crypto.encoding import canonical, to_base58, to_base64url
from sallyport.base.errors import CredentialError
from tests.areas.did.crypto.signers import HOLDER, ISSUERS

KEY = HOLDER.key.public


@pytest.mark.parametrize("name", ISSUERS)
def test_a_did_key_is_resolved_by_itself(name: str) -> None:
    """In the document of a did:key, the id of the method is made of the DID and the multikey. The method is allowed for
    every purpose except key agreement.
    """
    key = ISSUERS[name].key.public
    document = resolve(key_did(key))
    method_id = f"did:key:{key.multikey}#{key.multikey}"
    assert document.key(method_id, ASSERTION) == key
    assert document.content["id"] == f"did:key:{key.multikey}"
    assert all(document.content[purpose] == [method_id] for purpose in PURPOSES)
    assert "keyAgreement" not in document.content


@pytest.mark.parametrize("name", ISSUERS)
def test_a_did_jwk_is_resolved_by_itself(name: str) -> None:
    """In the document of a did:jwk, the id of the method is the DID and #0."""
    key = ISSUERS[name].key.public
    did = jwk_did(key)
    assert resolve(did).key(f"{did}#0", AUTHENTICATION) == key


def test_the_example_of_did_jwk() -> None:
    """The example of the specification is resolved. The DID is kept as given, whatever the order of the members in the
    JWK.
    """
    did = (
        "did:jwk:eyJjcnYiOiJQLTI1NiIsImt0eSI6IkVDIiwieCI6ImFjYklRaXVNczNpOF91c3pFakoydHBUdFJNNEVVM3l6OTFQSDZDZEgyVjAi"
        "LCJ5IjoiX0tjeUxqOXZXTXB0bm1LdG00NkdxRHo4d2Y3NEk1TEtncmwyR3pIM25TRSJ9"
    )
    document = resolve(did)
    assert document.did == did
    assert document.methods[0].key.jwk["x"] == "acbIQiuMs3i8_uszEjJ2tpTtRM4EU3yz91PH6CdH2V0"


def jcs_did(octets: bytes) -> str:
    """Return the did:key of a public key as a canonical JWK (jwk_jcs-pub)."""
    return "did:key:z" + to_base58(b"\xd1\xd6\x03" + octets)


@pytest.mark.parametrize("name", ISSUERS)
def test_a_did_key_of_a_jwk_is_resolved_by_itself(name: str) -> None:
    """The key of a did:key may be a canonical JWK. The fragment of its method is the part after `did:key:`."""
    key = ISSUERS[name].key.public
    did = jcs_did(canonical(key.jwk))
    document = resolve(did)
    assert document.key(f"{did}#{did.removeprefix('did:key:')}", AUTHENTICATION) == key
    assert document.content["verificationMethod"] == [
        {"id": document.methods[0].id, "type": "JsonWebKey2020", "controller": did, "publicKeyJwk": key.jwk}
    ]


@pytest.mark.parametrize(
    "octets",
    [
        json.dumps(KEY.jwk).encode(), canonical({**KEY.jwk, "d": "x"}), canonical({**KEY.jwk, "crv": "P-521"}), b"{}",
        b"", b"[]", b"\xff", canonical(KEY.jwk) + b" ",
    ],
    ids=["spaces", "private", "curve", "empty", "nothing", "array", "no UTF-8", "blank"],
)  # fmt: skip
def test_a_malformed_jwk_in_a_did_key_is_refused(octets: bytes) -> None:
    """The JWK must be a canonical public key of a supported curve, so that each key has one DID of this form."""
    with pytest.raises(CredentialError):
        resolve(jcs_did(octets))


def test_the_example_of_ebsi() -> None:
    """A DID of a natural person at EBSI is resolved."""
    did = (
        "did:key:z2dmzD81cgPx8Vki7JbuuMmFYrWPgYoytykUZ3eyqht1j9KbsEYvdrjxMjQ4tpnje9BDBTzuNDP3knn6qLZErzd4bJ5go2CChoPjd5"
        "GAH3zpFJP5fuwSk66U5Pq6EhF4nKnHzDnznEP8fX99nZGgwbAh1o7Gj1X52Tdhf7U4KTk66xsA5r"
    )
    assert resolve(did).methods[0].key.curve.name == "P-256"


def test_an_encryption_key_has_no_assertion_method() -> None:
    """A did:jwk whose `use` is `enc` has no key for assertions."""
    did = "did:jwk:" + to_base64url(json.dumps({**KEY.jwk, "use": "enc"}).encode())
    with pytest.raises(CredentialError):
        resolve(did).key(f"{did}#0", ASSERTION)


@pytest.mark.parametrize(
    "did",
    [
        "",
        "did:key",
        "did:key:",
        "did:KEY:z6Mk",
        "did:key:z6Mk#z6Mk",
        "did:key:z6Mk/path",
        "did:web:a:",
        "did:web:%zz",
        "did:key:" + "z" * 2048,
        " did:key:z6Mk",
    ],
)
def test_a_malformed_did_is_refused(did: str) -> None:
    """A text is refused if it is a DID URL or not a valid DID."""
    with pytest.raises(CredentialError):
        split(did)


def test_an_unknown_did_method_is_refused() -> None:
    """A DID with an unknown method is not resolved."""
    with pytest.raises(CredentialError) as refused:
        resolve("did:example:123")
    assert refused.value.reason == "unresolved"


def test_a_verification_method_contains_its_did() -> None:
    """A verification method is a DID with a fragment, and `did_of` returns the DID."""
    assert did_of("did:web:a.test#1") == "did:web:a.test"


@pytest.mark.parametrize("method_id", ["did:web:a.test", "did:web:a.test#", "#1", "a.test#1"])
def test_a_method_without_a_did_or_a_fragment_is_refused(method_id: str) -> None:
    with pytest.raises(CredentialError):
        did_of(method_id)


@pytest.mark.parametrize(
    ("did", "address"),
    [
        ("did:web:w3c-ccg.github.io", "https://w3c-ccg.github.io/.well-known/did.json"),
        ("did:web:w3c-ccg.github.io:user:alice", "https://w3c-ccg.github.io/user/alice/did.json"),
        ("did:web:example.com%3A3000:user:alice", "https://example.com:3000/user/alice/did.json"),
    ],
)
def test_a_did_web_becomes_an_address(did: str, address: str) -> None:
    """The addresses of the examples in section 3.2 of did:web are right."""
    assert web_address(did) == address


@pytest.mark.parametrize(
    "did",
    [
        "did:web:user%40host.test",
        "did:web:host.test%2Fpath",
        "did:web:host.test:..:x",
        "did:web:host.test:%2e%2e",
        "did:web:host.test:a%2Fb",
        "did:web:host.test%3Aport",
        "did:web:-host",
        "did:key:z6Mk",
    ],
)
def test_an_unsafe_did_web_is_refused(did: str) -> None:
    """A did:web with a user name, a slash, dots, or a port that is not a number is refused."""
    with pytest.raises(CredentialError):
        web_address(did)


def test_a_did_web_of_this_service_is_its_address() -> None:
    """A path under the address of the service, including its port, is encoded as a did:web and decoded again."""
    did = web_did("https://id.example.test:8443/base", "did", "7")
    assert did == "did:web:id.example.test%3A8443:base:did:7"
    assert web_address(did) == "https://id.example.test:8443/base/did/7/did.json"


def test_a_fetched_document_is_parsed() -> None:
    """Keys of a document are read in both encodings, embedded or by reference, with the purposes that the document
    states.
    """
    did = "did:web:a.test"
    jwk = {"id": "#1", "type": "JsonWebKey2020", "controller": did, "publicKeyJwk": KEY.jwk}
    inline = {"id": f"{did}#2", "type": "Multikey", "publicKeyMultibase": ISSUERS["P-256"].key.public.multikey}
    unknown = {"id": "#3", "type": "Multikey", "publicKeyMultibase": "z11"}
    document = parse(
        did,
        json.dumps(
            {"id": did, "verificationMethod": [jwk, unknown], "authentication": ["#1"], "assertionMethod": [inline]}
        ).encode(),
    )
    assert document.key(f"{did}#1", AUTHENTICATION) == KEY
    assert document.key(f"{did}#2", ASSERTION).curve.name == "P-256"
    for method_id, purpose in ((f"{did}#1", ASSERTION), (f"{did}#2", AUTHENTICATION), (f"{did}#3", ASSERTION)):
        with pytest.raises(CredentialError):
            document.key(method_id, purpose)


def test_a_published_document_is_parsed() -> None:
    """`parse` reads published documents, even if a method has no purpose."""
    did = "did:web:a.test"
    methods = [Method(f"{did}#new", KEY), Method(f"{did}#old", ISSUERS["P-256"].key.public, frozenset({ASSERTION}))]
    document = of_methods(did, methods)
    assert parse(did, json.dumps(document.content).encode()) == document


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"id": "did:web:b.test"},
        {"id": "did:web:a.test", "verificationMethod": [{"id": "did:web:b.test#1"}]},
        {"id": "did:web:a.test", "authentication": ["did:web:b.test#1"]},
        {"id": "did:web:a.test", "verificationMethod": {}},
        {"id": "did:web:a.test", "verificationMethod": [{}]},
        {"id": "did:web:a.test", "authentication": ["#1"] * 65},
        {"id": "did:web:a.test", "verificationMethod": [{"id": "#1", "publicKeyJwk": KEY.jwk}] * 2},
        {"id": "did:web:a.test", "authentication": [7]},
    ],
)
def test_an_unsuitable_document_is_refused(content: object) -> None:
    """A document is refused if it is of another DID, has a method of another DID, or is malformed."""
    with pytest.raises(CredentialError):
        parse("did:web:a.test", json.dumps(content).encode())


def test_a_method_of_another_controller_is_ignored() -> None:
    """A key that another DID controls is not a key of this DID."""
    method = {"id": "#1", "controller": "did:web:b.test", "publicKeyJwk": KEY.jwk}
    content = {"id": "did:web:a.test", "verificationMethod": [method], "authentication": ["#1"]}
    with pytest.raises(CredentialError):
        parse("did:web:a.test", json.dumps(content).encode()).key("did:web:a.test#1", AUTHENTICATION)
