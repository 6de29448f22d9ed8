"""DIDs and their documents."""

import json

import pytest

from sallyport.base.errors import CredentialError
from sallyport.did.crypto.documents import (
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
from sallyport.did.crypto.encoding import to_base64url
from tests.did.crypto.signers import HOLDER, ISSUERS

KEY = HOLDER.key.public


@pytest.mark.parametrize("name", ISSUERS)
def test_a_did_key_is_its_document(name: str) -> None:
    """The method's id is the DID and the multikey; it may do everything but encrypt."""
    key = ISSUERS[name].key.public
    document = resolve(key_did(key))
    method_id = f"did:key:{key.multikey}#{key.multikey}"
    assert document.key(method_id, ASSERTION) == key
    assert document.content["id"] == f"did:key:{key.multikey}"
    assert all(document.content[purpose] == [method_id] for purpose in PURPOSES)
    assert "keyAgreement" not in document.content


@pytest.mark.parametrize("name", ISSUERS)
def test_a_did_jwk_is_its_document(name: str) -> None:
    """The method's id is the DID and #0."""
    key = ISSUERS[name].key.public
    did = jwk_did(key)
    assert resolve(did).key(f"{did}#0", AUTHENTICATION) == key


def test_the_example_of_did_jwk() -> None:
    """The specification's example is read as it stands: the given text is kept, whatever the order of its members."""
    did = (
        "did:jwk:eyJjcnYiOiJQLTI1NiIsImt0eSI6IkVDIiwieCI6ImFjYklRaXVNczNpOF91c3pFakoydHBUdFJNNEVVM3l6OTFQSDZDZEgyVjAi"
        "LCJ5IjoiX0tjeUxqOXZXTXB0bm1LdG00NkdxRHo4d2Y3NEk1TEtncmwyR3pIM25TRSJ9"
    )
    document = resolve(did)
    assert document.did == did
    assert document.methods[0].key.jwk["x"] == "acbIQiuMs3i8_uszEjJ2tpTtRM4EU3yz91PH6CdH2V0"


def test_a_key_for_encryption_proves_nothing() -> None:
    """A did:jwk whose use is `enc` has no key for assertions."""
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
def test_what_is_no_did(did: str) -> None:
    """DID URLs and malformed texts are refused."""
    with pytest.raises(CredentialError):
        split(did)


def test_methods_that_are_not_known() -> None:
    """Another method is not resolved here."""
    with pytest.raises(CredentialError) as refused:
        resolve("did:example:123")
    assert refused.value.reason == "unresolved"


def test_a_method_names_its_did() -> None:
    """A verification method is a DID with a fragment."""
    assert did_of("did:web:a.test#1") == "did:web:a.test"


@pytest.mark.parametrize("method_id", ["did:web:a.test", "did:web:a.test#", "#1", "a.test#1"])
def test_a_method_without_a_did_or_a_fragment(method_id: str) -> None:
    """A DID alone, an empty fragment and a fragment without a DID are refused."""
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
def test_where_a_did_web_is(did: str, address: str) -> None:
    """The examples of did:web section 3.2."""
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
def test_a_did_web_cannot_lead_elsewhere(did: str) -> None:
    """User names, slashes, dots and other ports than numbers are refused."""
    with pytest.raises(CredentialError):
        web_address(did)


def test_our_own_did_web() -> None:
    """A place under the service's address, with its port, comes back as that address."""
    did = web_did("https://id.example.test:8443/base", "did", "7")
    assert did == "did:web:id.example.test%3A8443:base:did:7"
    assert web_address(did) == "https://id.example.test:8443/base/did/7/did.json"


def test_a_document_that_was_fetched() -> None:
    """Keys are read in both forms, written out or named; their purposes are those of the document."""
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


def test_our_documents_are_read_back() -> None:
    """What we publish is what `parse` reads, also of a method that is only kept."""
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
def test_documents_that_are_refused(content: object) -> None:
    """Another DID's document or methods, and malformed ones, are refused."""
    with pytest.raises(CredentialError):
        parse("did:web:a.test", json.dumps(content).encode())


def test_a_method_of_another_controller_is_not_taken() -> None:
    """A key that another DID controls speaks for that one."""
    method = {"id": "#1", "controller": "did:web:b.test", "publicKeyJwk": KEY.jwk}
    content = {"id": "did:web:a.test", "verificationMethod": [method], "authentication": ["#1"]}
    with pytest.raises(CredentialError):
        parse("did:web:a.test", json.dumps(content).encode()).key("did:web:a.test#1", AUTHENTICATION)
