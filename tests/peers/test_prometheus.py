"""Prometheus scrapes the service during the demo's traffic: every panel has data, and every rule is evaluated."""

import re
import time
from collections.abc import Iterator

import pytest

from tests.grafana.expressions import filled, of_panels, rules
from tests.peers.programs import needs
from tests.peers.watched import Watched, watched_service
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, needs("prometheus", "eapol_test")]

PANELS = list(of_panels())
LEGENDS = re.compile(r"{{(\w+)}}")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Yield the service and its Prometheus."""
    with watched_service(tmp_path_factory.mktemp("watched")) as watched:
        yield watched


@pytest.mark.parametrize(("where", "text"), PANELS, ids=[where for where, _ in PANELS])
def test_every_panel_shows_something(watched: Watched, where: str, text: str) -> None:
    """Each expression has series if it is sent as Grafana sends it.

    If there are several series, they have the labels that the legend uses.
    """
    series = watched.prometheus.wait_for(filled(text, rate="30s", span="5m"))
    legend = LEGENDS.findall(where)
    labelled = [each for each in series if each["metric"]]
    assert all(label in each["metric"] for each in labelled for label in legend if label != "instance"), where


def test_every_rule_is_evaluated(watched: Watched) -> None:
    """Prometheus has loaded each rule and evaluated it without an error."""
    watched.prometheus.wait_for("sallyport:radius_requests:rate5m")
    found = [rule for group in watched.prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in found} == {str(rule.get("alert") or rule.get("record")) for rule in rules()}
    assert not [(rule["name"], rule.get("lastError")) for rule in found if rule["health"] != "ok"]


def test_the_wrong_secret_is_an_alert(watched: Watched) -> None:
    """The alert for a wrong secret names the client."""
    found = watched.prometheus.wait_for('ALERTS{alertname="SallyportWrongSecret", alertstate="firing"}')
    assert [each["metric"]["client"] for each in found] == ["forgetful"]


@pytest.mark.parametrize("of", ["radius_request", "mfa_challenge"])
def test_an_exemplar_names_the_event_of_a_login(watched: Watched, of: str) -> None:
    """Prometheus takes the exemplars of a scrape in OpenMetrics. The event that one names is a login of its domain."""
    prometheus, now = watched.prometheus, time.time()
    query = {
        "query": f"sallyport_{of}_duration_seconds_bucket", "start": f"{now - 3600}", "end": f"{now + 3600}"
    }  # fmt: skip
    eventually(lambda: bool(prometheus.get("query_exemplars", **query)))
    (found, *_) = prometheus.get("query_exemplars", **query)
    labels, rows = found["exemplars"][-1]["labels"], watched.service.rows("select id, domain_id from events")
    assert (int(labels["event_id"]), int(labels["domain"])) in rows


def test_a_scrape_is_cheap(watched: Watched) -> None:
    """The demo's metrics are a few hundred series."""
    (series,) = watched.prometheus.query('scrape_samples_scraped{job="sallyport"}')
    assert 100 < float(series["value"][1]) < 3000
