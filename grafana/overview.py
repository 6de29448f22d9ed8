"""Overview: what a network admin looks at first."""

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
        Number("Let in", "Logins that were let in, in the time that is shown.", Query(_decided("allow|bypass"))),
        Number("Refused", "Logins that were refused, in both modes.", Query(_decided("deny|error"))),
        Number(
            "Would be refused",
            "Let in since their domain monitors; enforcing would have refused them. Look at these before you enforce.",
            Query(_decided("would_deny")),
        ),
        Number(
            "Domains that enforce",
            "The others monitor: nobody whose password is right is stopped there.",
            Query('sum(sallyport_enforcement_mode{$here, mode="enforce"}) or on () vector(0)'),
        ),
        Number(
            "Devices", "Network devices in the inventory.", Query("sum(sallyport_devices{$here}) or on () vector(0)")
        ),
        Number(
            "Silent clients",
            "RADIUS clients heard in the last week, and not in the last hour.",
            Query(SILENT),
        ),
        Row("Logins"),
        Graph(
            "Decisions",
            "What was decided on logins each second; bypass: let in by the domain's fallback.",
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
            "Of all Accepts and Rejects. A jump: the directory, a wrong secret, or somebody who tries passwords.",
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
            "Requests each second of the ten that ask most, answered or not.",
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
            "1: enforces, 0: monitors.",
            (Query(named('sallyport_enforcement_mode{$here, mode="enforce"}'), "{{name}} ({{domain}})"),),
        ),
        Row("Inventory"),
        Graph(
            "Devices",
            "In each domain's inventory.",
            (Query(named("sallyport_devices{$here}"), "{{name}} ({{domain}})"),),
            width=8,
        ),
        Graph(
            "New and returned devices",
            "Registered: never seen before. Registered again: an admin had deleted it, and it still asks. "
            "Refused: requests of devices and stations beyond their tenant's limit.",
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
            "That go on, by the devices' accounting.",
            (Query("sum(sallyport_sessions_live{$here}) or on () vector(0)", "live"),),
            width=8,
        ),
    ),
)
