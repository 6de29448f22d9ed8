"""Tests of dashboards and rules: their expressions are valid, and their metrics exist."""

import json
import re

import promql_parser
import pytest
from grafana.board import Board, build
from grafana.boards import ALL

from tests.grafana.expressions import DIRECTORY, filled, metrics_of, of_panels, of_rules, rules
from tests.metrics.everything import collected

PANELS = list(of_panels())
EXPRESSIONS = [(where, filled(text)) for where, text in PANELS] + list(of_rules())
SEEN_ELSEWHERE = {"sallyport_process_virtual_memory_bytes"}
"""Metrics that need no panel, because the resident memory is more useful."""


def series_names() -> set[str]:
    """Return every name that a scrape or a recording rule produces."""
    names = {"up"} | {str(rule["record"]) for rule in rules() if "record" in rule}
    for metric in collected():
        if metric.type == "histogram":
            names |= {f"{metric.name}_{part}" for part in ("bucket", "count", "sum")}
        else:
            names.add(metric.name + ("_total" if metric.type == "counter" else ""))
    return names


@pytest.mark.parametrize("board", ALL, ids=lambda board: board.name)
def test_the_json_is_the_output_of_the_generator(board: Board) -> None:
    """The dashboards in the repository are those that `python -m grafana` generates."""
    assert (DIRECTORY / "dashboards" / f"{board.name}.json").read_text(encoding="utf-8") == build(board)


def test_each_json_file_belongs_to_a_board() -> None:
    assert {path.stem for path in (DIRECTORY / "dashboards").iterdir()} == {board.name for board in ALL}


@pytest.mark.parametrize("board", ALL, ids=lambda board: board.name)
def test_a_dashboard_is_complete(board: Board) -> None:
    """Every panel uses the variable for the data source, and has a description and a number of its own."""
    made = json.loads(build(board))
    assert [each["name"] for each in made["templating"]["list"]] == ["datasource", "instance"]
    panels = made["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in (each for each in panels if each["type"] != "row"):
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert all(target["expr"] for target in panel["targets"])


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
def test_every_expression_is_valid(where: str, expression: str) -> None:
    """A PromQL parser accepts each expression. Each metric in an expression comes from the service or from a rule."""
    assert promql_parser.parse(expression) is not None
    asked = metrics_of(expression)
    assert asked
    assert asked <= series_names(), where


@pytest.mark.parametrize(("where", "text"), PANELS, ids=[where for where, _ in PANELS])
def test_every_panel_selects_the_chosen_instances(where: str, text: str) -> None:
    """Each selector of a panel is limited to the selected instances."""
    assert text.count('{instance=~"$instance"') == len(re.findall(r"sallyport_\w+", text)), where


def test_every_metric_is_on_a_panel() -> None:
    shown = {name for _, text in PANELS for name in metrics_of(filled(text))}
    families = {re.sub(r"_(bucket|count|sum|total)$", "", name) for name in shown}
    assert {metric.name for metric in collected()} - SEEN_ELSEWHERE <= families


@pytest.mark.parametrize("rule", [each for each in rules() if "alert" in each], ids=lambda rule: rule["alert"])
def test_every_alert_has_a_severity_and_a_runbook(rule: dict[str, dict[str, str]]) -> None:
    """An alert has one of three severities, a summary, a description and a runbook."""
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert len(rule["annotations"]["summary"]) < 100
    assert rule["annotations"]["description"].endswith((".", "}}"))
    assert len(rule["annotations"]["runbook"]) > 40
