"""What a dashboard is made of, and how it becomes Grafana's JSON."""

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
    """One expression. `$here` in it: the instances that were chosen. legend: with labels as `{{client}}`."""

    text: str
    legend: str = ""

    @property
    def expression(self) -> str:
        """In Prometheus' language, but for Grafana's variables."""
        return self.text.replace("$here", HERE)


@dataclass(frozen=True, slots=True)
class Row:
    """A heading over the panels behind it."""

    title: str


@dataclass(frozen=True, slots=True)
class Number:
    """What is so now. told: what it means and what to do about it. unit: Grafana's name for it. is_text: its legend is
    what it says."""

    title: str
    told: str
    query: Query
    unit: str = "short"
    width: int = 4
    height: int = 4
    is_text: bool = False

    @property
    def queries(self) -> tuple[Query, ...]:
        """Its one query."""
        return (self.query,)


@dataclass(frozen=True, slots=True)
class Graph:
    """How it went. stacked: the lines are parts of a whole. told, unit: as a Number's."""

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
    """A dashboard. name: of its file, and in its address."""

    name: str
    title: str
    told: str
    parts: tuple[Part, ...]

    def panels(self) -> Iterator[Number | Graph]:
        """All that ask for something."""
        return (part for part in self.parts if not isinstance(part, Row))


def named(expression: str) -> str:
    """An expression over domains with the domains' names as a label, where they have one."""
    return (
        f"sum by (instance, domain) ({expression}) "
        "* on (instance, domain) group_left (name) sallyport_domain_info{$here}"
    )


def quantiles(metric: str, by: str, *shares: float, where: str = "$here", legend: str = "") -> tuple[Query, ...]:
    """A histogram's quantiles over the time that a pixel stands for."""
    groups = f"le, {by}" if by else "le"
    rate = f"sum by ({groups}) (rate({metric}_bucket{{{where}}}[$__rate_interval]))"
    return tuple(
        Query(f"histogram_quantile({share:g}, {rate})", f"{legend} p{share * 100:g}".strip()) for share in shares
    )


def build(board: Board) -> str:
    """The dashboard as Grafana's classic JSON, in an order that stays the same."""
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
