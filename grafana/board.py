"""The parts of a dashboard, and their conversion to Grafana's JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    VariableRefresh,
    VariableSort,
)

TAG = "sallyport"
HERE = 'instance=~"$instance"'
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression. `$here` in it stands for the selector of the chosen instances. legend: the name of each
    line; a label is written as `{{client}}`. exemplars: whether the graph marks single logins, with their event."""

    text: str
    legend: str = ""
    exemplars: bool = False

    @property
    def expression(self) -> str:
        """Return the PromQL expression, with Grafana's variables."""
        return self.text.replace("$here", HERE)


@dataclass(frozen=True, slots=True)
class Row:
    """A heading above the panels that follow it."""

    title: str


@dataclass(frozen=True, slots=True)
class Number:
    """A panel with the present value. told: the description of the panel. unit: Grafana's name of the unit. is_text:
    the panel shows the legend in place of the value."""

    title: str
    told: str
    query: Query
    unit: str = "short"
    width: int = 4
    height: int = 4
    is_text: bool = False

    @property
    def queries(self) -> tuple[Query, ...]:
        """Return the query as a tuple, as in `Graph`."""
        return (self.query,)


@dataclass(frozen=True, slots=True)
class Graph:
    """A panel with values over time. stacked: the lines are added up. told, unit: see `Number`."""

    title: str
    told: str
    queries: tuple[Query, ...]
    unit: str = "short"
    stacked: bool = False
    width: int = 12
    height: int = 8


Part = Row | Number | Graph


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard. name: the name of its file, also in its URL. told: its description."""

    name: str
    title: str
    told: str
    parts: tuple[Part, ...]

    def panels(self) -> Iterator[Number | Graph]:
        """Yield the parts that have queries."""
        return (part for part in self.parts if not isinstance(part, Row))


def named(expression: str) -> str:
    """Return an expression with a label `name` for the name of each domain."""
    return (
        f"sum by (instance, domain) ({expression}) "
        "* on (instance, domain) group_left (name) sallyport_domain_info{$here}"
    )


def quantiles(
    metric: str, by: str, *shares: float, where: str = "$here", legend: str = "", exemplars: bool = False
) -> tuple[Query, ...]:
    """Return queries for quantiles of a histogram. by: a label to group by, or empty. shares: quantiles from 0 to 1.
    exemplars: see `Query`; only one of the queries has them."""
    groups = f"le, {by}" if by else "le"
    rate = f"sum by ({groups}) (rate({metric}_bucket{{{where}}}[$__rate_interval]))"
    return tuple(
        Query(
            f"histogram_quantile({share:g}, {rate})",
            f"{legend} p{share * 100:g}".strip(),
            exemplars and share == shares[-1],
        )
        for share in shares
    )


def build(board: Board) -> str:
    """Return the dashboard as Grafana's classic JSON. The keys are sorted, so that the output is stable."""
    made = (
        dashboard.Dashboard(f"Sallyport: {board.title}")
        .uid(f"sallyport-{board.name}")
        .description(board.told)
        .tags([TAG])
        .refresh("30s")
        .time("now-6h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("Sallyport")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(True)
            .keep_time(True)
            .include_vars(True)
        )
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("instance")
            .label("Instance")
            .query("label_values(sallyport_build_info, instance)")
            .datasource(SOURCE)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(VariableSort.ALPHABETICAL_ASC)
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    numbers = count(1)
    for part in board.parts:
        if isinstance(part, Row):
            made.with_row(dashboard.Row(part.title).id(next(numbers)))
        else:
            made.with_panel(_panel(part).id(next(numbers)))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def _panel(part: Number | Graph) -> stat.Panel | timeseries.Panel:
    panel = _number(part) if isinstance(part, Number) else _graph(part)
    panel.title(part.title).description(part.told).datasource(SOURCE).unit(part.unit)
    panel.span(part.width).height(part.height)
    for letter, query in zip("ABCDEFGH", part.queries, strict=False):
        target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(letter)
        if query.exemplars:
            target.exemplar(True)
        panel.with_target(target.instant() if isinstance(part, Number) else target.range())
    return panel


def _number(part: Number) -> stat.Panel:
    reduce = common.ReduceDataOptions().calcs(["lastNotNull"])
    panel = stat.Panel().reduce_options(reduce).graph_mode(kinds.BigValueGraphMode.NONE).no_value("none")
    if part.unit == "short":
        panel.decimals(0)  # a count; an increase is extrapolated, so that one event is 1.02
    return panel.text_mode(kinds.BigValueTextMode.NAME) if part.is_text else panel


def _graph(part: Graph) -> timeseries.Panel:
    legend = common.VizLegendOptions().show_legend(True).display_mode(kinds.LegendDisplayMode.LIST)
    legend.placement(kinds.LegendPlacement.BOTTOM)
    tooltip = common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING)
    panel = timeseries.Panel().legend(legend).tooltip(tooltip).min(0).show_points(kinds.VisibilityMode.NEVER)
    if part.stacked:
        panel.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL)).fill_opacity(40)
    return panel
