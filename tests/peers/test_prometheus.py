"""Prometheus scrapes the service while the demo's traffic runs: every panel shows something, every rule holds."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from sallyport.base.config import Address, load
from sallyport.cli.connection import Connection
from sallyport.cli.demo_story import Story
from sallyport.cli.line import Line
from sallyport.serve import Bound
from tests.grafana.expressions import filled, of_panels, rules
from tests.peers.programs import needs
from tests.peers.prometheus import Prometheus, scraping
from tests.service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("prometheus")]

PANELS = list(of_panels())
LEGENDS = re.compile(r"{{(\w+)}}")


@dataclass(frozen=True)
class Watched:
    """A service after the demo's traffic, and the Prometheus that has watched it."""

    service: RunningService
    prometheus: Prometheus


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Everything of the demo, a device with a wrong secret, and an upstream server that is away."""
    directory = tmp_path_factory.mktemp("watched")
    with running_service(directory) as service, scraping(directory, service.ports.http) as prometheus:
        prometheus.wait_for('up{job="sallyport"} == 1')
        tell_the_story(service)
        forget_the_secret(service, prometheus)
        pass_on(service)
        import_people(service, directory)
        service.ok("db", "backup", str(directory / "copy.db"))
        prometheus.wait_for("sum(sallyport_client_requests_total{client='forgetful'}) >= 12")
        prometheus.wait_for("sallyport_backup_last_success_timestamp_seconds > 0")
        yield Watched(service, prometheus)


def tell_the_story(service: RunningService) -> None:
    """The demo's own traffic, against this service; all of it must go as it should."""
    settings = load(None, service.environ)
    auth, acct, http = (
        [Address("127.0.0.1", port)] for port in (service.ports.auth, service.ports.acct, service.ports.http)
    )
    line = Line(lambda: Connection(settings=settings))
    with closing(line.connection):
        assert Story(line, settings, Bound(radius_auth=auth, radius_acct=acct, http=http)).tell() == 0


def forget_the_secret(service: RunningService, prometheus: Prometheus) -> None:
    """A client whose device has another secret."""
    client = {"name": "forgetful", "address": "127.77.0.1", "secret": b"the right secret".hex()}
    service.call("client.add", org=1, tenant=1, domains=[], clients=[client])
    prometheus.wait_for("sallyport_client_requests_total{client='forgetful', outcome='bad_message_authenticator'} == 0")
    with service.radius("the wrong secret", source="127.77.0.1") as device:
        for _ in range(12):
            device.send(device.packet("ann", "hello"))


def pass_on(service: RunningService) -> None:
    """A domain whose logins go to a server that is not there."""
    domain = service.call("domain.add", org=1, tenant=1, name="far", realms=["far"])
    client = {"name": "far", "address": "127.77.0.2", "secret": b"the right secret".hex()}
    service.call("client.add", org=1, tenant=1, domains=["far"], clients=[client])
    servers = [{"host": "127.0.0.1", "port": 9, "secret": "upstream secret"}]
    body = {"orgId": 1, "tenantId": 1, "domainId": domain, "firstFactor": "radius"}
    service.post("/ad/SetFirstFactor", {**body, "radius": {"servers": servers, "responseWindowSeconds": 1}})
    with service.radius("the right secret", source="127.77.0.2") as device:
        device.login("ann", "hello")


def import_people(service: RunningService, directory: Path) -> None:
    """A file with somebody in it, and one that is none."""
    path = directory / "people.ldif"
    path.write_text("dn: uid=ann,dc=x\nobjectClass: person\nuid: ann\ncn: Ann\nsn: Ann\n")
    command = ("directory", "import-ldif", str(path), "--domain", "far", "--wait")
    service.ok(*command)
    path.write_text("dn: uid=ann\nno line of LDIF\n")
    assert service.cli(*command).returncode == 1


@pytest.mark.parametrize(("where", "text"), PANELS, ids=[where for where, _ in PANELS])
def test_every_panel_shows_something(watched: Watched, where: str, text: str) -> None:
    """The expression as Grafana sends it has series, and where it has several they carry the legend's labels."""
    series = watched.prometheus.wait_for(filled(text, rate="30s", span="5m"), seconds=20)
    legend = LEGENDS.findall(where)
    labelled = [each for each in series if each["metric"]]
    assert all(label in each["metric"] for each in labelled for label in legend if label != "instance"), where


def test_every_rule_is_evaluated(watched: Watched) -> None:
    """Prometheus has loaded each rule and had no error with it."""
    watched.prometheus.wait_for("sallyport:radius_requests:rate5m")
    found = [rule for group in watched.prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in found} == {str(rule.get("alert") or rule.get("record")) for rule in rules()}
    assert not [(rule["name"], rule.get("lastError")) for rule in found if rule["health"] != "ok"]


def test_the_wrong_secret_is_an_alert(watched: Watched) -> None:
    """The client is named by the alert that an admin gets."""
    found = watched.prometheus.wait_for('ALERTS{alertname="SallyportWrongSecret", alertstate="firing"}')
    assert [each["metric"]["client"] for each in found] == ["forgetful"]


def test_a_scrape_is_cheap(watched: Watched) -> None:
    """The whole exposition of the demo is a few hundred series."""
    (series,) = watched.prometheus.query('scrape_samples_scraped{job="sallyport"}')
    assert 100 < float(series["value"][1]) < 3000
