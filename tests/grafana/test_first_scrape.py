"""No alert fires for the metrics of a new installation, and each alert of single events starts with a metric at 0."""

import math
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from sallyport.areas.domains.domain import Mode
from tests.areas import Areas, areas, clock
from tests.grafana.expressions import RULES, of_rules
from tests.grafana.test_promtool import promtool
from tests.metrics.everything import collected

__all__ = ["areas", "clock"]
NOT_OF_THE_INSTALLATION = "SallyportAbsent|SallyportClockNotSynchronized"
"""Alerts about Prometheus and about the machine of the tests."""
MINUTES = 90


def series_of(registry: CollectorRegistry) -> list[dict[str, str]]:
    """Return each series of a scrape as promtool reads it. The values do not change."""
    samples = [each for metric in registry.collect() for each in metric.samples if not math.isnan(each.value)]
    found = []
    for each in samples:
        labels = ", ".join(f'{name}="{value}"' for name, value in {**each.labels, "instance": "new"}.items())
        found.append({"series": f"{each.name}{{{labels}}}", "values": f"{each.value}x{MINUTES}"})
    return found


@pytest.mark.peer
async def test_no_alert_fires_on_a_new_installation(areas: Areas, tmp_path: Path) -> None:
    """With one domain in monitor mode and one in enforce mode, no alert fires in the first hour and a half."""
    second = await areas.domains.add(areas.tenant, "branch")
    await areas.domains.set_mode([second], Mode.ENFORCE)
    expression = f'count by (alertname) (ALERTS{{alertname!~"{NOT_OF_THE_INSTALLATION}"}})'
    test = {
        "interval": "1m",
        "input_series": [
            {"series": 'up{job="sallyport", instance="new"}', "values": f"1x{MINUTES}"},
            *series_of(areas.registry),
        ],
        "promql_expr_test": [
            {"expr": expression, "eval_time": f"{minute}m", "exp_samples": []} for minute in (1, 5, 20, MINUTES - 1)
        ],
    }
    path = tmp_path / "new.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(each) for each in RULES], "tests": [test]}), encoding="utf-8")
    assert "SUCCESS" in await promtool("test", "rules", path)


async def test_counters_of_single_events_start_at_zero(areas: Areas) -> None:
    """If an alert fires for a single event, its counter is exported before the event, so that it is an increase."""
    second = await areas.domains.add(areas.tenant, "branch")
    await areas.domains.set_mode([second], Mode.ENFORCE)
    metrics = [*areas.registry.collect(), *collected()]  # the store of the areas has a registry of its own
    exported = {each.name for metric in metrics for each in metric.samples}
    single = {
        name for _, text in of_rules() for name in re.findall(r"increase\((sallyport_\w+_total)[^)]*\)+ > 0", text)
    }
    assert len(single) >= 5
    assert single - exported <= {"sallyport_udp_receive_drops_total", "sallyport_outlet_events_total"}
