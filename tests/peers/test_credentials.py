"""Tests with verifiers from npm, which accept the service's credentials and refuse altered ones.

Each file of answers is made by one run of node, because loading the verifiers takes a second.
"""

import json
from pathlib import Path

import pytest

from sallyport.areas.did.credentials import repo
from sallyport.areas.did.crypto import jws, vc
from sallyport.areas.did.crypto.encoding import to_base64url
from sallyport.areas.did.presentations.definition import for_credential
from sallyport.base.clock import now_us
from sallyport.base.wire import JSON
from tests.areas import Areas, SetClock, areas
from tests.areas.did.crypto.signers import HOLDER, ISSUERS, credential, did
from tests.areas.did.world import identity
from tests.peers.npm_verifiers import ask, needs_npm

__all__ = ["areas", "clock"]
pytestmark = [pytest.mark.peer, pytest.mark.system, needs_npm]


@pytest.fixture
def clock() -> SetClock:
    """Return the current time, which the verifiers also use."""
    return SetClock(now_us())


def tampered(jwt: str) -> str:
    """Return the token with another user in its payload but with the old signature."""
    header, _, signature = jwt.split(".")
    payload = json.loads(json.dumps(jws.parse(jwt).payload).replace("alice", "mallory"))
    return f"{header}.{to_base64url(json.dumps(payload).encode())}.{signature}"


async def documents(areas: Areas, *dids: str) -> dict[str, JSON]:
    """Return the documents of the DIDs."""
    return {each: (await areas.did.resolver.resolve(each)).content for each in dids}


@pytest.mark.parametrize("method", ["key", "jwk", "web"])
@pytest.mark.parametrize("curve", ISSUERS)
async def test_did_jwt_vc_verifies_credentials(areas: Areas, tmp_path: Path, method: str, curve: str) -> None:
    """did-jwt-vc accepts a token of each method and curve, and refuses it if a claim was changed."""
    some = await identity(areas, method, curve)
    issued = await some.issue()
    jwt = await areas.store.read(lambda tx: repo.token(tx, issued.id))
    known = await documents(areas, some.issuer.did)
    good, bad = ask(tmp_path, [{"ask": "didJwtVc", "jwt": each, "documents": known} for each in (jwt, tampered(jwt))])
    assert good is True
    assert "signature" in str(bad).lower()


async def test_did_jwt_vc_verifies_after_a_rotation(areas: Areas, tmp_path: Path) -> None:
    """After the key of a did:web was rotated, did-jwt-vc accepts tokens of both keys."""
    some = await identity(areas, "web")
    tokens = []
    for _ in range(2):
        issued = await some.issue()
        tokens.append(await areas.store.read(lambda tx, number=issued.id: repo.token(tx, number)))
        await areas.did.dids.rotate(areas.domain, some.issuer.did)
    known = await documents(areas, some.issuer.did)
    assert ask(tmp_path, [{"ask": "didJwtVc", "jwt": each, "documents": known} for each in tokens]) == [True, True]


def test_did_jwt_vc_verifies_presentations(tmp_path: Path) -> None:
    """A presentation is valid only for its audience and its nonce."""
    held = vc.sign(credential(ISSUERS["Ed25519"]), ISSUERS["Ed25519"])
    jwt = vc.present([held], HOLDER, audience="did:web:v.test", nonce="n-1", id="urn:uuid:1", now=now_us())
    question = {"ask": "didJwtVp", "jwt": jwt, "audience": "did:web:v.test", "nonce": "n-1"}
    good, *bad = ask(tmp_path, [question, {**question, "audience": "did:web:other.test"}, {**question, "nonce": "n-2"}])
    assert good is True
    assert True not in bad


def test_jose_verifies_tokens(tmp_path: Path) -> None:
    """jose verifies EdDSA and ES256 with the service's JWK. It refuses altered tokens and another key."""
    questions: list[dict[str, object]] = []
    for issuer in (ISSUERS["Ed25519"], ISSUERS["P-256"]):
        jwt = vc.sign(credential(issuer), issuer)
        question = {"ask": "jose", "jwk": issuer.key.public.jwk, "algorithm": issuer.key.curve.algorithm}
        questions += [{**question, "jwt": jwt}, {**question, "jwt": tampered(jwt)}]
    questions.append({**questions[0], "jwk": HOLDER.key.public.jwk})
    answers = ask(tmp_path, questions)
    assert [each is True for each in answers] == [True, False, True, False, False]


def test_pex_reads_definitions(tmp_path: Path) -> None:
    """A presentation definition of the service matches only the credential that it asks for."""
    jwt = vc.sign(credential(ISSUERS["Ed25519"]), ISSUERS["Ed25519"])
    questions = [
        {
            "ask": "pex",
            "definition": json.loads(for_credential("Badge", "to log in", wanted).text),
            "jwt": jwt,
        }
        for wanted in (
            {"$.credentialSubject.epmUsername": "alice", "$.issuer": did(ISSUERS["Ed25519"])},
            {"$.credentialSubject.epmUsername": "mallory"},
            {"$.credentialSubject.holderId": None},
        )
    ]
    good, *bad = ask(tmp_path, questions)
    assert good is True
    assert True not in bad


def test_resolvers_read_dids(tmp_path: Path) -> None:
    """key-did-resolver finds the same verification method for each curve. did-method-key finds the same key for
    Ed25519."""
    questions: list[dict[str, object]] = [
        {"ask": "keyDidResolver", "did": did(issuer), "method": issuer.method_id} for issuer in ISSUERS.values()
    ]
    issuer = ISSUERS["Ed25519"]
    question = {
        "ask": "didMethodKey", "did": did(issuer), "method": issuer.method_id, "multikey": issuer.key.public.multikey,
    }  # fmt: skip
    answers = ask(tmp_path, [*questions, question, {**question, "multikey": "z6Mk"}])
    assert answers == [True, True, True, True, False]


@pytest.mark.parametrize("method", ["key", "web"])
async def test_data_integrity_verifies_proofs(areas: Areas, tmp_path: Path, method: str) -> None:
    """The proofs of a credential, of a schema and of a status list are valid.

    If a claim or a proof is changed, they are not.
    """
    some = await identity(areas, method)
    issued = await some.issue()
    document = await areas.store.read(lambda tx: repo.document(tx, issued.id))
    schema = json.loads(some.schema.content)
    ((name,),) = await areas.store.read(lambda tx: tx.rows("select uuid from status_lists"))
    listed = json.loads((await areas.did.lists.published(str(name))).document)
    known = await documents(areas, some.issuer.did)
    wrong = [
        {**document, "credentialSubject": {"id": some.holder.did, "epmUsername": "mallory"}},
        {**document, "proof": {**document["proof"], "created": "2026-01-01T00:00:00Z"}},  # type: ignore[dict-item]
        {**document, "more": 1},
    ]
    questions = [{"ask": "dataIntegrity", "document": each, "documents": known} for each in (document, listed, *wrong)]
    answers = ask(tmp_path, [*questions, {"ask": "dataIntegrity", "document": schema, "documents": known}])
    assert answers[:2] == [True, True]
    assert True not in answers[2:5]
    assert answers[5] is True


async def test_vc_status_list_reads_lists(areas: Areas, tmp_path: Path) -> None:
    """A credential is valid until it is revoked, and the credentials beside it in the list stay valid.

    A list of another issuer is refused.
    """
    some = await identity(areas)
    kept, revoked = await some.issue(), await some.issue()
    shown = [await areas.store.read(lambda tx, number=each.id: repo.document(tx, number)) for each in (kept, revoked)]
    entry = shown[0]["credentialStatus"]
    assert isinstance(entry, dict)
    url = str(entry["statusListCredential"])

    async def published() -> dict[str, JSON]:
        found: dict[str, JSON] = json.loads((await areas.did.lists.published(url.rpartition("/")[2])).document)
        return found

    before = await published()
    await areas.did.credentials.revoke(areas.domain, revoked.id)
    after = await published()
    forged = {**before, "issuer": did(ISSUERS["P-256"])}
    questions = [
        {"ask": "statusList", "credential": each, "documents": {url: listed}}
        for listed in (before, after, forged)
        for each in shown
    ]
    answers = ask(tmp_path, questions)
    assert answers[:2] == [True, True]
    assert answers[2:4] == [True, False]
    assert True not in answers[4:]
