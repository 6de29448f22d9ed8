"""All expressions sent to Prometheus, and the metrics in them."""

from collections.abc import Iterator
from pathlib import Path

import promql_parser
import yaml
from grafana.boards import ALL

DIRECTORY = Path(__file__).parents[2] / "grafana"
RULES = sorted((DIRECTORY / "prometheus" / "rules").glob("*.yml"))
RULE_TESTS = sorted((DIRECTORY / "prometheus" / "tests").glob("*.yml"))


def filled(expression: str, *, rate: str = "1m", span: str = "1h") -> str:
    """Return an expression as Grafana sends it: its variables are replaced by values that select all instances."""
    return expression.replace("$__rate_interval", rate).replace("$__range", span).replace("$instance", ".*")


def of_panels() -> Iterator[tuple[str, str]]:
    """Yield (place, expression) of every query of every dashboard."""
    for board in ALL:
        for panel in board.panels():
            for query in panel.queries:
                yield f"{board.name}: {panel.title} {query.legend}".strip(), query.expression


def rules() -> list[dict[str, object]]:
    """Return the contents of all rule files."""
    groups = [group for file in RULES for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def of_rules() -> Iterator[tuple[str, str]]:
    """Yield (name, expression) of every rule."""
    for rule in rules():
        yield str(rule.get("alert") or rule.get("record")), str(rule["expr"])


def metrics_of(expression: str) -> set[str]:
    """Return the metrics of an expression."""
    found: set[str] = set()

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.add(str(node.name))

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found
