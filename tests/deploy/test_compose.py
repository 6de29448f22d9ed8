"""The compose file agrees with the project: the ports, the paths, the names, and the mounted files."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sallyport import __version__
from sallyport.settings.settings import Settings
from tests.deploy.test_container import environment, probe
from tests.peers.programs import needs

ROOT = Path(__file__).parents[2]
HERE = ROOT / "src" / "sallyport" / "deploy" / "compose"
FILE = yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = FILE["services"]


def mounts(service: str) -> dict[str, str]:
    """Return the mounts by their path in the container. A mount is a path of the source tree or the name of a
    volume.
    """
    return {there: here for here, there in (each.split(":")[:2] for each in SERVICES[service]["volumes"])}


def read(path: str) -> Any:
    """Read a YAML file. path: relative to the compose file."""
    return yaml.safe_load((HERE / path).read_text(encoding="utf-8"))


def test_each_mounted_path_exists() -> None:
    """Each mount is a named volume, or an existing path of the source tree that is mounted read-only."""
    for name in SERVICES:
        for mount in SERVICES[name]["volumes"]:
            here, _, options = mount.split(":") if mount.count(":") == 2 else (*mount.split(":"), "")
            if here.startswith("."):
                assert (HERE / here).exists(), mount
                assert options == "ro", mount
            else:
                assert here in FILE["volumes"], mount


def test_the_image_is_built_from_the_container_file() -> None:
    """The image is built from the source tree, with the project's name and version."""
    build = SERVICES["sallyport"]["build"]
    assert (HERE / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).name == "Containerfile"
    assert SERVICES["sallyport"]["image"] == f"sallyport-radius:{__version__}"


def test_images_have_a_version() -> None:
    """Each image has a fixed tag, so that the same file starts the same programs later."""
    for name, service in SERVICES.items():
        assert re.fullmatch(r"[a-z./-]+:v?\d+\.\d+\.\d+", service["image"]), name


def test_the_ports_are_those_of_the_service() -> None:
    """RADIUS is published on its standard ports at all addresses. The other ports are published on loopback."""
    settings = Settings()
    radius = {address.port for address in (*settings.radius_auth_bind, *settings.radius_acct_bind)}
    http = int(environment()["SALLYPORT_HTTP_BIND"].rpartition(":")[2])
    wanted = {f"{port}:{port}/udp" for port in radius} | {f"127.0.0.1:{http}:{http}/tcp"}
    assert set(SERVICES["sallyport"]["ports"]) == wanted
    assert SERVICES["prometheus"]["ports"] == ["127.0.0.1:9090:9090/tcp"]
    assert SERVICES["grafana"]["ports"] == ["127.0.0.1:3000:3000/tcp"]


def test_the_service_is_restricted_like_the_container_file() -> None:
    """Only the data volume is writable. The stop timeout is long enough to drain requests. There is a health check."""
    service = SERVICES["sallyport"]
    assert mounts("sallyport") == {environment()["SALLYPORT_DATA_DIR"]: "data"}
    assert service["read_only"] is True
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert int(service["stop_grace_period"].removesuffix("s")) > Settings().drain_s + 10
    assert service["healthcheck"]["test"] == ["CMD", *probe()]


@needs("promtool")
@pytest.mark.peer
def test_prometheus_accepts_its_files(tmp_path: Path) -> None:
    """promtool accepts the configuration and the rules at their paths in the container. The scrape target is the
    container of the service.
    """
    for there, here in mounts("prometheus").items():
        if here.startswith("."):
            place = tmp_path / there.removeprefix("/etc/prometheus/")
            place.symlink_to((HERE / here).resolve())
    done = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 rule files found" in done.stdout
    assert "--config.file=/etc/prometheus/prometheus.yml" in SERVICES["prometheus"]["command"]
    assert "--storage.tsdb.path=/prometheus" in SERVICES["prometheus"]["command"]
    own, plain = read("prometheus.yml"), yaml.safe_load((ROOT / "grafana/prometheus/prometheus.yml").read_text())
    (target,) = own["scrape_configs"][0]["static_configs"]
    assert target == {"targets": ["sallyport:8080"]}
    own["scrape_configs"][0]["static_configs"] = plain["scrape_configs"][0]["static_configs"]
    assert own == plain


def test_no_secret_is_a_variable() -> None:
    """Variables have only settings that everybody may read."""
    named = {name for service in SERVICES.values() for name in service.get("environment", {})}
    assert not [name for name in named if "PASSWORD" in name or "SECRET" in name or "KEY" in name]


def test_grafana_finds_its_data_source_and_dashboards() -> None:
    """The files are at the paths that Grafana reads. They name the container of Prometheus and the directory of the
    dashboards.
    """
    found = mounts("grafana")
    data_source = read(found["/etc/grafana/provisioning/datasources/sallyport.yaml"])
    plain = yaml.safe_load((ROOT / "grafana/provisioning/datasources/sallyport.yaml").read_text())
    plain["datasources"][0]["url"] = "http://prometheus:9090"
    assert data_source == plain
    (provider,) = read(found["/etc/grafana/provisioning/dashboards"] + "/sallyport.yaml")["providers"]
    assert list((HERE / found[provider["options"]["path"]]).glob("*.json"))
