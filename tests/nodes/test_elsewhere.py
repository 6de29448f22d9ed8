"""Commands on a machine without a node: they open the database themselves, beside the running nodes."""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.nodes.cluster import DATABASE, MASTER_KEY, Cluster, running_cluster
from tests.peers.postgres import database_in, needs_postgres
from tests.ports import free_port
from tests.radius_client import RadiusClient
from tests.running_service import RunningService
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, needs_postgres]
ACCEPT, REJECT = 2, 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield one node with a RADIUS client."""
    with running_cluster(("one",), {"SALLYPORT_REJECT_DELAY_S": "0"}) as cluster:
        cluster.nodes[0].add_client("vpn", "127.0.0.1", "xyzzy5461")
        yield cluster


@pytest.fixture
def desk(cluster: Cluster, tmp_path: Path) -> RunningService:
    """Return a machine with the database's URL and the master key, on which no service runs."""
    own = {"SALLYPORT_DATABASE": cluster.server.url(DATABASE), "SALLYPORT_MASTER_KEY": MASTER_KEY}
    return RunningService(tmp_path, own)


def logs_in(client: RadiusClient, name: str) -> bool:
    """Return whether a user is accepted. While a node adopts a restore, it gives no answer."""
    with suppress(TimeoutError):
        return client.login(name, "hello") == ACCEPT
    return False


def names(service: RunningService) -> list[str]:
    """Return the names of the nodes that are alive."""
    return [each["name"] for each in json.loads(service.ok("node", "list", "--json")) if each["alive"]]


def test_changes_hold_on_the_running_node(cluster: Cluster, desk: RunningService) -> None:
    """A user that was added elsewhere logs in, and is refused after the removal. The command is no node."""
    desk.ok("user", "add", "ann", "--domain", "default", "--password", "-", input="hello")
    with cluster.nodes[0].radius("xyzzy5461") as client:
        eventually(lambda: client.login("ann", "hello") == ACCEPT)
        desk.ok("user", "remove", "ann", "--domain", "default")
        eventually(lambda: client.login("ann", "hello") == REJECT)
    assert names(desk) == ["one"]


def test_a_domain_ends_everywhere(cluster: Cluster, desk: RunningService) -> None:
    """The running node has no domain any more that was removed elsewhere."""
    desk.ok("domain", "add", "branch", "--org", "1", "--tenant", "1")
    eventually(lambda: "branch" in cluster.nodes[0].domains())
    desk.ok("domain", "remove", "branch", "--yes")
    eventually(lambda: "branch" not in cluster.nodes[0].domains())


def test_without_the_master_key_nothing_is_opened(cluster: Cluster, tmp_path: Path) -> None:
    """A machine without the key, or with another one, is refused with the next step."""
    url = cluster.server.url(DATABASE)
    without = RunningService(tmp_path, {"SALLYPORT_DATABASE": url}).cli("client", "list")
    assert without.returncode == 1
    assert "no Sallyport installation in" in without.stderr
    wrong = RunningService(tmp_path, {"SALLYPORT_DATABASE": url, "SALLYPORT_MASTER_KEY": "77" * 32})
    refused = wrong.cli("domain", "list")
    assert refused.returncode == 1
    assert "differs from the other nodes: copy master.key" in refused.stderr


def test_a_database_with_several_hosts(cluster: Cluster, desk: RunningService) -> None:
    """A URL with several hosts finds the one that takes writes."""
    port = cluster.server.port
    url = f"postgresql://sallyport@127.0.0.1:{free_port()},127.0.0.1:{port}/{DATABASE}?target_session_attrs=read-write"
    several = RunningService(desk.directory, {"SALLYPORT_DATABASE": url, "SALLYPORT_MASTER_KEY": MASTER_KEY})
    assert names(several) == ["one"]


def test_a_migration_beside_a_node_changes_nothing(cluster: Cluster, desk: RunningService) -> None:
    """`db migrate` of the same version finds nothing to do, and the node continues."""
    assert "the schema of this program" in desk.ok("db", "migrate")
    assert names(desk) == ["one"]


def test_a_key_that_other_nodes_do_not_have_is_refused(cluster: Cluster, desk: RunningService) -> None:
    """`db rotate-key` names the nodes and the steps, also with the new key in the environment of the command alone."""
    both = RunningService(
        desk.directory, {"SALLYPORT_DATABASE": desk.url, "SALLYPORT_MASTER_KEY": f"2:{'6b' * 32},1:{MASTER_KEY}"}
    )
    for each in (desk, both):
        refused = each.cli("db", "rotate-key")
        assert refused.returncode == 1
        assert "other nodes (one) do not have version 2 of the master key: on every node, add 2:NEW" in refused.stderr
    assert cluster.nodes[0].clients()["vpn"]["name"] == "vpn"


def test_a_copy_into_a_used_database_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """`db copy` from SQLite names the database that is not empty, and the node continues."""
    file = RunningService(tmp_path, {"SALLYPORT_DATABASE": None})
    file.ok("db", "migrate")
    refused = file.cli("db", "copy", cluster.server.url(DATABASE))
    assert "already contains a store: name an empty database" in refused.stderr
    assert "default" in cluster.nodes[0].domains()


@pytest.mark.parametrize("name", ["all.db", "all.dump"])
def test_a_restore_elsewhere_holds_on_the_running_node(cluster: Cluster, desk: RunningService, name: str) -> None:
    """The node forgets what came after the backup, and accepts the users of the backup, without a restart. Pending
    enrolments are void."""
    if name.endswith(".dump") and shutil.which("pg_dump") is None:
        pytest.skip("no pg_dump: apt-get install postgresql-client")
    node = cluster.nodes[0]
    node.add_user("eve", "hello")
    node.enrol_totp("eve")
    desk.ok("db", "backup", name)
    node.remove_user("eve")
    node.add_user("late", "hello")
    desk.ok("db", "restore", name, "--yes")
    with node.radius("xyzzy5461") as client:
        eventually(lambda: logs_in(client, "eve"))
        assert client.login("late", "hello") == REJECT
    assert node.rows("select count(*) from totp_enrolments") == [(0,)]
    assert names(desk) == ["one"]
    node.remove_user("eve")


def test_a_dump_with_another_key_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """A backup whose secrets do not open under this key changes nothing, and the error names the key."""
    if shutil.which("pg_dump") is None:
        pytest.skip("no pg_dump: apt-get install postgresql-client")
    cluster.nodes[0].ok("db", "backup", str(tmp_path / "all.dump"))
    (tmp_path / "database").mkdir()
    url = database_in(tmp_path / "database", is_empty=True)
    other = RunningService(tmp_path, {"SALLYPORT_DATABASE": url, "SALLYPORT_MASTER_KEY": "77" * 32})
    other.ok("db", "migrate")
    refused = other.cli("db", "restore", str(tmp_path / "all.dump"), "--yes")
    assert refused.returncode == 1
    assert "was made with another master key" in refused.stderr
