"""Overview: the first dashboard for a network admin."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row, named


def _decided(decision: str) -> str:
    return f'sum(increase(sallyport_mfa_decisions_total{{$here, decision=~"{decision}"}}[$__range])) or on () vector(0)'


SILENT = (
    "count(sum by (instance, client) (increase(sallyport_client_requests_total{$here}[7d])) > 0 "
    "unless sum by (instance, client) (increase(sallyport_client_requests_total{$here}[1h])) > 0) or on () vector(0)"
)

OVERVIEW: Final = Board(
    "overview",
    "Overview",
    "Logins, devices and modes of the whole installation.",
    (
        Row("Now"),
        Number("Accepted", "Logins accepted in the selected time range.", Query(_decided("allow|bypass"))),
        Number("Refused", "Logins refused in the selected time range, in both modes.", Query(_decided("deny|error"))),
        Number(
            "Would be refused",
            "Logins accepted in monitor mode that enforce mode would refuse. Check these before you enforce.",
            Query(_decided("would_deny")),
        ),
        Number(
            "Domains that enforce",
            "The other domains are in monitor mode: a right password is enough there.",
            Query('sum(sallyport_enforcement_mode{$here, mode="enforce"}) or on () vector(0)'),
        ),
        Number(
            "Devices", "Network devices in the inventory.", Query("sum(sallyport_devices{$here}) or on () vector(0)")
        ),
        Number(
            "Silent clients",
            "RADIUS clients that sent requests in the last week, but none in the last hour.",
            Query(SILENT),
        ),
        Row("Logins"),
        Graph(
            "Decisions",
            "Login decisions per second. bypass: accepted by the fallback action of the domain.",
            (
                Query(
                    "sum by (decision) (rate(sallyport_mfa_decisions_total{$here}[$__rate_interval]))", "{{decision}}"
                ),
            ),
            unit="reqps",
            stacked=True,
        ),
        Graph(
            "Share of rejects",
            "Share of rejects in all answers. Causes of a jump: directory failure, wrong secret or password guessing.",
            (
                Query(
                    'sum(rate(sallyport_radius_responses_total{$here, type="Access-Reject"}[$__rate_interval])) / '
                    'sum(rate(sallyport_radius_responses_total{$here, type=~"Access-(Accept|Reject)"}'
                    "[$__rate_interval]))",
                    "now",
                ),
            ),
            unit="percentunit",
        ),
        Graph(
            "Busiest RADIUS clients",
            "Requests per second of the ten busiest clients, answered or not.",
            (
                Query(
                    "topk(10, sum by (client) (rate(sallyport_client_requests_total{$here}[$__rate_interval])))",
                    "{{client}}",
                ),
            ),
            unit="reqps",
        ),
        Graph(
            "Mode of each domain",
            "1: enforce mode, 0: monitor mode.",
            (Query(named('sallyport_enforcement_mode{$here, mode="enforce"}'), "{{name}} ({{domain}})"),),
        ),
        Row("Inventory"),
        Graph(
            "Devices",
            "Devices in the inventory of each domain.",
            (Query(named("sallyport_devices{$here}"), "{{name}} ({{domain}})"),),
            width=8,
        ),
        Graph(
            "New and returned devices",
            "Registered: new devices. Registered again: deleted devices that sent another request. "
            "Refused: requests of devices and stations above the limit of their tenant.",
            (
                Query("sum(increase(sallyport_devices_registered_total{$here}[1h])) or on () vector(0)", "registered"),
                Query(
                    "sum(increase(sallyport_devices_reregistered_total{$here}[1h])) or on () vector(0)",
                    "registered again",
                ),
                Query("sum(increase(sallyport_devices_deleted_total{$here}[1h])) or on () vector(0)", "deleted"),
                Query("sum(increase(sallyport_inventory_refused_total{$here}[1h])) or on () vector(0)", "refused"),
            ),
            width=8,
        ),
        Graph(
            "Sessions",
            "Live sessions, according to the accounting of the devices.",
            (Query("sum(sallyport_sessions_live{$here}) or on () vector(0)", "live"),),
            width=8,
        ),
    ),
)
