"""EAP conversations and TLS sessions of one node, at another."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from OpenSSL import SSL
from structlog.testing import capture_logs

from sallyport.areas.login.login import Reason
from sallyport.certs.credentials import Credentials
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.packet import IDENTITY, RESPONSE, Packet, encode
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.eap.sides import ANN, peap
from tests.areas.login.listen.conftest import Wire
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres
from tests.radius.eap.certificates import Authority
from tests.radius.eap.supplicant import MsChapSide, Supplicant, TlsSide, in_peap

pytestmark = needs_postgres


@pytest.fixture
async def nodes(pair: Pair, tmp_path: Path) -> AsyncIterator[tuple[Nas, Nas]]:
    """Yield a NAS at each of two nodes, which have the same certificate and the user ann."""
    one, two = pair.one, pair.two
    await one.add_user(one.domain, "ann", b"hello")
    await one.client(name="nas")
    await two.configuration.reload()
    authority = Authority(tmp_path)
    server = authority.certificate("radius.example.com")
    async with trio.open_nursery() as nursery:
        for areas in (one, two):
            areas.credentials = Credentials(server.file, server.file, authority.file)
        yield Nas(Wire(one, nursery), authority), Nas(Wire(two, nursery), authority)
        nursery.cancel_scope.cancel()


async def test_a_conversation_of_another_node(nodes: tuple[Nas, Nas]) -> None:
    """A State of one node gets Access-Reject with EAP-Failure at another. The conversation continues at its node, and
    the client can begin anew at the other."""
    one, two = nodes
    supplicant = Supplicant(ANN, peap(b"hello"))
    datagram = one.request(encode(Packet(RESPONSE, 0, IDENTITY, ANN)), ANN)
    one.wire.put(datagram)
    ended, state = await one.answer(datagram)
    assert (ended.code, int.from_bytes(state[:4])) == (ACCESS_CHALLENGE, one.wire.areas.cluster.id)
    response = supplicant.respond(ended.eap)
    datagram = two.request(response, ANN, state)
    with capture_logs() as logged:
        two.wire.put(datagram)
        ended, _ = await two.answer(datagram)
    assert (ended.code, ended.eap[0]) == (ACCESS_REJECT, eap.FAILURE)
    assert [(each["event"], each["node"]) for each in logged if "node" in each] == [
        ("eap_conversation_of_another_node", one.wire.areas.cluster.id)
    ]
    assert [reason for reason, *_ in await two.outcomes()] == [Reason.CHALLENGE_OVER]
    datagram = one.request(response, ANN, state)
    one.wire.put(datagram)
    assert (await one.answer(datagram))[0].code == ACCESS_CHALLENGE
    assert (await two.log_in(peap(b"hello"))).code == ACCESS_ACCEPT


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
async def test_a_session_of_another_node(nodes: tuple[Nas, Nas], version: int) -> None:
    """A client with a TLS session of one node logs in with its password at another, in one conversation. It then
    resumes the new session there."""

    def side(password: bytes, before: TlsSide | None = None) -> TlsSide:
        return TlsSide(eap.PEAP, in_peap(ANN, MsChapSide(ANN, password)), version=version, before=before)

    one, two = nodes
    first = side(b"hello")
    assert (await one.log_in(first)).code == ACCESS_ACCEPT
    moved = side(b"hello", first)
    assert ((await two.log_in(moved)).code, moved.is_new) == (ACCESS_ACCEPT, True)
    resumed = side(b"not asked for", moved)
    assert ((await two.log_in(resumed)).code, resumed.is_new) == (ACCESS_ACCEPT, False)


async def test_nodes_share_the_server_certificates_of_domains(nodes: tuple[Nas, Nas], tmp_path: Path) -> None:
    """A certificate that is set at one node is shown by the other."""
    one, two = nodes
    (tmp_path / "tenant").mkdir()
    own = Authority(tmp_path / "tenant").certificate("radius.example")
    text, areas = own.file.read_text(), one.wire.areas
    await areas.app.server_certificates.service.set(areas.domains.table.by_id[areas.domain], "", text, text)
    await two.wire.areas.configuration.reload()
    side = peap(b"hello")
    assert (await two.log_in(side)).code == ACCESS_ACCEPT
    assert side.connection.get_peer_certificate(as_cryptography=True) == own.certificate
