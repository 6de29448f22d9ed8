"""Revocation lists of an authority at two services over one database, with eapol_test."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.areas.authorities.revocation.issuer import Issuer
from tests.nodes.cluster import running_cluster
from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.postgres import needs_postgres
from tests.peers.programs import needs
from tests.peers.published import by_certificate, serving
from tests.running_service import RunningService
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_postgres, needs("eapol_test")]

SECRET = "between NAS and server"
LIST = "/ca.crl"
HOUR = timedelta(hours=1)


def is_accepted(node: RunningService, directory: Path, client: Issuer, authority: Path) -> bool:
    """Return whether a node accepts a client's certificate. authority: the file of the server's authority."""
    network = by_certificate(directory, client, authority)
    return SUCCESS in eapol_test(directory, node.ports.auth, SECRET, network)


def test_one_node_fetches_for_both(tmp_path: Path) -> None:
    """A list is requested once, and both nodes refuse the certificate on it in the mode hard. A list that an admin
    fetches at one node counts at the other one. The second node still has the lists after the first one has died.

    A list is not fetched again within 30 seconds."""
    now, issuer = datetime.now(UTC).replace(microsecond=0), Issuer.new()
    good, first, second = (issuer.client("ann") for _ in range(3))
    bundle = tmp_path / "issuer.pem"
    bundle.write_text(issuer.pem)

    def publish(number: int, *revoked: Issuer) -> None:
        serials = [each.certificate.serial_number for each in revoked]
        web.bodies[LIST] = issuer.crl(*serials, number=number, since=now - HOUR, until=now + HOUR)

    def number(node: RunningService) -> str:
        (found,) = json.loads(node.ok("authority", "lists", "corp", "--json"))
        return str(found["crlNumber"])

    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_EGRESS": "default,127.0.0.0/8"}
    with serving() as web, running_cluster(settings=settings) as cluster:
        one, two = cluster.nodes
        publish(1, first)
        one.ok("cert", "init", "--host", "radius.example.com")
        one.add_client("nas", "127.0.0.1", SECRET)
        one.add_user("ann", "correct horse")
        options = ("--crl-address", f"{web.url}{LIST}", "--revocation", "hard")
        one.ok("authority", "add", "corp", "--domain", "default", "--file", str(bundle), *options)
        authority = one.data_dir / "certs" / "ca.pem"
        for node in (one, two):
            eventually(lambda node=node: is_accepted(node, tmp_path, good, authority))
            assert not is_accepted(node, tmp_path, first, authority)
            assert is_accepted(node, tmp_path, second, authority)
        assert web.requests[LIST] == 1
        publish(2, first, second)
        two.ok("authority", "lists", "corp", "--fetch")
        for node in (one, two):
            eventually(lambda node=node: number(node) == "2", seconds=120)
            eventually(lambda node=node: not is_accepted(node, tmp_path, second, authority))
        assert web.requests[LIST] == 2
        cluster.nodes.remove(one)
        one.kill()
        assert is_accepted(two, tmp_path, good, authority)
        assert not is_accepted(two, tmp_path, second, authority)
