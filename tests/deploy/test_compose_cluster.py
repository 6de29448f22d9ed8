"""The compose file of a cluster: two nodes with the same database and master key, each with ports of its own."""

import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sallyport.settings.settings import Settings, load, unknown_environment
from sallyport.store.vault import load_master_keys, parse_keys
from tests.deploy.test_compose import SERVICES as SINGLE
from tests.deploy.test_container import environment

HERE = Path(__file__).parents[2] / "src" / "sallyport" / "deploy" / "compose"
TEXT = (HERE / "cluster.yaml").read_text(encoding="utf-8")
FILE = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = FILE["services"]
NODES = ("one", "two")
SECRETS = {
    "database_url": "postgresql://sallyport:s3cret@postgres/sallyport",
    "master.key": "5a" * 32,
    "postgres_password": "s3cret",
}


def mounted(name: str, directory: Path) -> dict[str, str]:
    """Return the variables of a service, whose secrets are files in a directory, with sample values."""
    for each in SERVICES[name]["secrets"]:
        assert FILE["secrets"][each] == {"file": f"./secrets/{each}"}
        (directory / each).write_text(f"{SECRETS[each]}\n", encoding="utf-8")
    given = SERVICES[name]["environment"].items()
    return {key: value.replace("/run/secrets", str(directory)) for key, value in given}


@pytest.mark.parametrize("name", NODES)
def test_a_node_is_restricted_like_the_single_service(name: str) -> None:
    """Image, health check and limits are those of compose.yaml."""
    for key in ("build", "image", "restart", "read_only", "tmpfs", "cap_drop", "security_opt", "stop_grace_period"):
        assert SERVICES[name][key] == SINGLE["sallyport"][key], key
    assert SERVICES[name]["healthcheck"] == SINGLE["sallyport"]["healthcheck"]
    assert SERVICES[name]["volumes"] == [f"{name}:{environment()['SALLYPORT_DATA_DIR']}"]


def test_the_nodes_share_the_database_and_the_key_alone(tmp_path: Path) -> None:
    """Both have the same valid database and master key, a name of their own, and ports that are published once."""
    variables = [mounted(name, tmp_path) for name in NODES]
    assert [unknown_environment(each) for each in variables] == [[], []]
    one, two = (load(Path("/dev/null"), {**environment(), **each}) for each in variables)
    assert one.database_url == two.database_url == SECRETS["database_url"]
    assert (one.node, two.node) == NODES
    keys = [load_master_keys(tmp_path, each, may_make=False) for each in variables]
    assert keys[0] == keys[1]
    assert keys[0].keys[1].reveal().hex() == SECRETS["master.key"]
    published = [port.rpartition(":")[0] for name in NODES for port in SERVICES[name]["ports"]]
    assert len(set(published)) == len(published) == 6
    settings = Settings()
    radius = {str(each.port) for each in (*settings.radius_auth_bind, *settings.radius_acct_bind)}
    for name in NODES:
        inside = {port.rpartition(":")[2] for port in SERVICES[name]["ports"]}
        assert inside == {f"{port}/udp" for port in radius} | {"8080/tcp"}


def test_the_database_is_that_of_the_url(tmp_path: Path) -> None:
    """PostgreSQL has the user of the URL, its password in a file, and no published port."""
    given = mounted("postgres", tmp_path)
    assert given == {"POSTGRES_USER": "sallyport", "POSTGRES_PASSWORD_FILE": str(tmp_path / "postgres_password")}
    assert "ports" not in SERVICES["postgres"]
    assert re.fullmatch(r"docker\.io/library/postgres:1[5-9]\.\d+", SERVICES["postgres"]["image"])


def test_the_head_makes_the_secrets(tmp_path: Path) -> None:
    """The commands in the head of the file make each secret in a directory that other users cannot enter."""
    head = [line[6:] for line in TEXT.splitlines() if line.startswith("#     ")]
    script = "\n".join(line for line in head if not line.startswith(("cd ", "docker ")))
    subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, check=True)
    directory = tmp_path / "secrets"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    made = {path.name: path.read_text(encoding="utf-8").strip() for path in directory.iterdir()}
    assert made.keys() == FILE["secrets"].keys() == SECRETS.keys()
    assert f":{made['postgres_password']}@postgres/" in made["database_url"]
    assert parse_keys(made["master.key"]).keys() == {1}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o444 for path in directory.iterdir())


def test_the_second_node_waits_for_the_first() -> None:
    """One node makes the tables and the first access token."""
    assert SERVICES["one"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert SERVICES["two"]["depends_on"] == {"one": {"condition": "service_healthy"}}
    assert set(FILE["volumes"]) == {"postgres", *NODES}
