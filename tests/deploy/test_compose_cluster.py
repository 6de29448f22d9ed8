"""The compose file of a cluster: two nodes with the same database and master key, each with ports of its own."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sallyport.settings.settings import Settings, load, unknown_environment
from sallyport.settings.values import MASTER_KEY
from sallyport.store.vault import parse_keys
from tests.deploy.test_compose import SERVICES as SINGLE
from tests.deploy.test_container import environment

HERE = Path(__file__).parents[2] / "src" / "sallyport" / "deploy" / "compose"
TEXT = (HERE / "cluster.yaml").read_text(encoding="utf-8")
FILE = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = FILE["services"]
NODES = ("one", "two")
SAMPLE = {"POSTGRES_PASSWORD": "s3cret", "SALLYPORT_MASTER_KEY": "5a" * 32}


def environment_of(name: str) -> dict[str, str]:
    """Return the variables of a service, with the sample values of `.env`."""
    return {
        key: re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: SAMPLE[found[1]], value)
        for key, value in SERVICES[name]["environment"].items()
    }


@pytest.mark.parametrize("name", NODES)
def test_a_node_is_restricted_like_the_single_service(name: str) -> None:
    """Image, health check and limits are those of compose.yaml."""
    for key in ("build", "image", "restart", "read_only", "tmpfs", "cap_drop", "security_opt", "stop_grace_period"):
        assert SERVICES[name][key] == SINGLE["sallyport"][key], key
    assert SERVICES[name]["healthcheck"] == SINGLE["sallyport"]["healthcheck"]
    assert SERVICES[name]["volumes"] == [f"{name}:{environment()['SALLYPORT_DATA_DIR']}"]


def test_the_nodes_share_the_database_and_the_key_alone() -> None:
    """Both have the same valid database and master key, a name of their own, and ports that are published once."""
    variables = [environment_of(name) for name in NODES]
    assert [unknown_environment(each) for each in variables] == [[], []]
    one, two = (load(Path("/dev/null"), {**environment(), **each}) for each in variables)
    assert one.database_url == two.database_url == "postgresql://sallyport@postgres/sallyport"
    assert (one.node, two.node) == NODES
    assert len({str(parse_keys(each[MASTER_KEY])[1].reveal()) for each in variables}) == 1
    published = [port.rpartition(":")[0] for name in NODES for port in SERVICES[name]["ports"]]
    assert len(set(published)) == len(published) == 6
    settings = Settings()
    radius = {str(each.port) for each in (*settings.radius_auth_bind, *settings.radius_acct_bind)}
    for name in NODES:
        inside = {port.rpartition(":")[2] for port in SERVICES[name]["ports"]}
        assert inside == {f"{port}/udp" for port in radius} | {"8080/tcp"}


def test_the_database_is_that_of_the_url() -> None:
    """PostgreSQL has the user of the URL, the same password, and no published port."""
    given = environment_of("postgres")
    assert given == {"POSTGRES_USER": "sallyport", "POSTGRES_PASSWORD": environment_of("one")["PGPASSWORD"]}
    assert "ports" not in SERVICES["postgres"]
    assert re.fullmatch(r"docker\.io/library/postgres:1[5-9]\.\d+", SERVICES["postgres"]["image"])


def test_no_secret_is_in_the_file() -> None:
    """The password and the key come from `.env`, which the head of the file makes."""
    for name in SAMPLE:
        assert f"{name}=%s" in TEXT
        values = re.findall(rf"(?:{name}|PGPASSWORD): (.+)", TEXT)
        assert values and all(re.fullmatch(r"\$\{\w+:\?.+\}", each) for each in values)


def test_the_second_node_waits_for_the_first() -> None:
    """One node makes the tables and the first access token."""
    assert SERVICES["one"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert SERVICES["two"]["depends_on"] == {"one": {"condition": "service_healthy"}}
    assert set(FILE["volumes"]) == {"postgres", *NODES}
