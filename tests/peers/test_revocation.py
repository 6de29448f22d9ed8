"""Revocation lists and OCSP responses that openssl and certomancer have made and serve."""

from collections.abc import AsyncIterator
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.areas.authorities.revocation.state import RevocationState, RevocationStatus
from sallyport.base.clock import SECOND, now_us
from tests.areas import SetClock, running_engine
from tests.areas.authorities.revocation.bench import Bench, running
from tests.areas.authorities.revocation.issuer import Issuer
from tests.peers.pki import OpensslAuthority, certomancer, run
from tests.peers.programs import needs

pytestmark = [pytest.mark.peer, needs("openssl")]

GOOD, REVOKED, UNKNOWN = RevocationStatus.GOOD, RevocationStatus.REVOKED, RevocationStatus.UNKNOWN
CA = Issuer.new()
ALICE, BOB, STRANGER = CA.issue("alice"), CA.issue("bob"), CA.issue("stranger")


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A bench with the time of this machine."""
    (tmp_path / "store").mkdir()
    async with running_engine(tmp_path / "store") as store, running(store, SetClock(now_us())) as made:
        yield made


@pytest.fixture
def authority(tmp_path: Path) -> OpensslAuthority:
    """An authority of openssl that knows alice, and bob, whose certificate is revoked."""
    made = OpensslAuthority(tmp_path, CA, [ALICE, BOB])
    made.revoked.add(BOB.serial_number)
    return made


async def asked(bench: Bench, certificate: x509.Certificate, responder: str, **given: object) -> RevocationState:
    """Return the state of a certificate by a responder."""
    rules = bench.rules(bundle=CA.pem, responder=responder, **given)
    with trio.fail_after(30):
        return await bench.checks.state([certificate, CA.certificate], rules)


async def test_openssl_answers_good_revoked_and_unknown(bench: Bench, authority: OpensslAuthority) -> None:
    """The states that the database of openssl has, with and without a nonce, which openssl sends back."""
    with authority.responding() as address:
        for nonce in (False, True):
            states = [await asked(bench, each, address, uses_nonce=nonce) for each in (ALICE, BOB, STRANGER)]
            assert [each.status for each in states] == [GOOD, REVOKED, UNKNOWN], states
        assert "keyCompromise" in states[1].text and states[2].text.endswith(": unknown")


async def test_a_responder_of_the_authority_and_a_foreign_one(bench: Bench, authority: OpensslAuthority) -> None:
    """A responder with a certificate of the authority for OCSP counts; one of another authority does not."""
    with authority.responding(signer=CA.responder(until=ALICE.not_valid_after_utc)) as address:
        assert (await asked(bench, ALICE, address)).status is GOOD
    with authority.responding(signer=Issuer.new("Other CA")) as address:
        state = await asked(bench, ALICE, address)
        assert state.status is UNKNOWN and "the responder is neither the issuer" in state.text


async def test_an_expired_response(bench: Bench, authority: OpensslAuthority) -> None:
    """A response whose nextUpdate has passed on this machine does not count."""
    with authority.responding("-nmin", "1") as address:
        bench.clock.pass_by(120)
        state = await asked(bench, ALICE, address)
    assert state.status is UNKNOWN and "the response has expired" in state.text


async def test_a_response_with_the_nonce_of_another_request(bench: Bench, authority: OpensslAuthority) -> None:
    """A recorded response with a nonce is refused, because its nonce is that of its own request."""
    files = {name: str(authority.directory / name) for name in ("alice.pem", "request", "response")}
    Path(files["alice.pem"]).write_bytes(ALICE.public_bytes(Encoding.PEM))
    ca, key = str(authority.certificate), str(authority.key)
    run("ocsp", "-issuer", ca, "-cert", files["alice.pem"], "-nonce", "-reqout", files["request"])
    run(
        "ocsp", "-index", str(authority.write_index()), "-CA", ca, "-rsigner", ca, "-rkey", key, "-rmd", "sha256",
        "-reqin", files["request"], "-respout", files["response"], "-nmin", "60",
    )  # fmt: skip
    bench.published["/ocsp"] = Path(files["response"]).read_bytes()
    assert (await asked(bench, ALICE, bench.url("/ocsp"))).status is GOOD
    state = await asked(bench, ALICE, bench.url("/ocsp"), uses_nonce=True)
    assert state.status is UNKNOWN and "the nonce of another request" in state.text


async def test_a_list_of_openssl(bench: Bench, authority: OpensslAuthority) -> None:
    """A list that `openssl ca` has signed revokes bob; a later one revokes alice too."""
    bench.published["/ca.crl"] = authority.crl()
    rules = bench.rules(bundle=CA.pem, lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    states = [(await bench.checks.state([each, CA.certificate], rules)).status for each in (ALICE, BOB)]
    assert states == [GOOD, REVOKED]
    authority.revoked.add(ALICE.serial_number)
    bench.published["/ca.crl"] = authority.crl()
    await bench.fetched_again("/ca.crl")
    assert (await bench.checks.state([ALICE, CA.certificate], rules)).status is REVOKED


async def test_a_late_list_of_openssl(bench: Bench, authority: OpensslAuthority) -> None:
    """A list of openssl for an hour, two hours later: bob is still revoked, the state of alice is unknown."""
    bench.published["/ca.crl"] = authority.crl("-crlhours", "1")
    rules = bench.rules(bundle=CA.pem, lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    bench.clock.pass_by(timedelta(hours=2).total_seconds())
    states = [(await bench.checks.state([each, CA.certificate], rules)).status for each in (ALICE, BOB)]
    assert states == [UNKNOWN, REVOKED]
    assert bench.clock.now > now_us() + 3600 * SECOND


@pytest.mark.skipif(find_spec("certomancer") is None, reason="certomancer is not installed")
async def test_certomancer_publishes_lists_and_answers(bench: Bench, tmp_path: Path) -> None:
    """Addresses in the certificates of certomancer: its list and its responder say the same."""
    folder = tmp_path / "certomancer"
    folder.mkdir()
    with certomancer(folder) as (certificates, address):
        ca = certificates["ca"]
        bundle = ca.public_bytes(Encoding.PEM).decode()
        bench.rules(bundle=bundle, lists=(f"{address}/corp/crls/ca/latest.crl",), uses_certificates=False)
        by_list = [(await waited(bench, [certificates[each], ca])).status for each in ("alice", "bob")]
        assert by_list == [GOOD, REVOKED]
        both = bench.rules(authority_id=2, bundle=bundle, uses_nonce=True)
        states = [await bench.checks.state([certificates[each], ca], both) for each in ("alice", "bob")]
        assert [each.status for each in states] == [GOOD, REVOKED], states
        assert "OCSP" in states[0].text


async def waited(bench: Bench, chain: list[x509.Certificate]) -> RevocationState:
    """Return the state of a chain after the list was fetched."""
    with trio.fail_after(30):
        while not bench.lists.of(1) or not all(each.row.checked_at for each in bench.lists.of(1).values()):
            await bench.lists.changed.wait()
        return await bench.checks.state(chain, bench.authorities[1])
