"""RADIUS in depth: what comes in, what is answered, how fast, and what is dropped and why."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row, quantiles

DURATION = "sallyport_radius_request_duration_seconds"
BAD_SIGNATURE = 'outcome=~"bad_authenticator|bad_message_authenticator"'

RADIUS: Final = Board(
    "radius",
    "RADIUS",
    "The listeners: requests, answers, latency, duplicates, discards, and the servers that logins are passed on to.",
    (
        Row("Traffic"),
        Graph(
            "Requests",
            "Taken, by listener and type; duplicates and discards are not among them.",
            (
                Query(
                    "sum by (listener, type) (rate(sallyport_radius_requests_total{$here}[$__rate_interval]))",
                    "{{listener}} {{type}}",
                ),
            ),
            unit="reqps",
            stacked=True,
        ),
        Graph(
            "Answers",
            "Sent, by type; those sent again to a duplicate count too.",
            (
                Query(
                    "sum by (type) (rate(sallyport_radius_responses_total{$here}[$__rate_interval]))",
                    "{{type}}",
                ),
            ),
            unit="reqps",
            stacked=True,
        ),
        Graph(
            "Latency",
            "From receipt to answer, on disk before it is sent; without people's time and the delay of rejects.",
            quantiles(DURATION, "", 0.5, 0.9, 0.99),
            unit="s",
        ),
        Graph(
            "Latency by type, p99",
            "An Access-Accept waits for the directory or the upstream server where there is one.",
            quantiles(DURATION, "type", 0.99, legend="{{type}}"),
            unit="s",
        ),
        Row("What is not answered"),
        Graph(
            "Discards",
            "By reason; unknown_client: `sallyport client unknown` lists who it is.",
            (Query("sum by (reason) (rate(sallyport_radius_discards_total{$here}[$__rate_interval]))", "{{reason}}"),),
            unit="reqps",
            stacked=True,
            width=8,
        ),
        Graph(
            "Wrong secrets",
            "Requests of a known client whose authenticator does not hold: its secret is another one there.",
            (
                Query(
                    "sum by (client) (rate(sallyport_client_requests_total{$here, "
                    f"{BAD_SIGNATURE}}}[$__rate_interval])) or on () vector(0)",
                    "{{client}}",
                ),
            ),
            unit="reqps",
            width=8,
        ),
        Graph(
            "Duplicates",
            "Share of requests that were retransmits. Many: a device's time-out is too short for a second factor.",
            (
                Query(
                    'sum(rate(sallyport_radius_discards_total{$here, reason="duplicate"}[$__rate_interval])) / '
                    "(sum(rate(sallyport_radius_requests_total{$here}[$__rate_interval])) + "
                    'sum(rate(sallyport_radius_discards_total{$here, reason="duplicate"}[$__rate_interval])))',
                    "share",
                ),
            ),
            unit="percentunit",
            width=8,
        ),
        Row("Load"),
        Graph(
            "Waiting",
            "Requests without an answer yet: people who reach for their phones, directories, the disk.",
            (Query("sum by (listener) (sallyport_radius_inflight_requests{$here})", "{{listener}}"),),
            width=8,
        ),
        Graph(
            "Overload and errors",
            "Dropped since too many wait (overload), or by an error of ours, which is in the log. Should be 0.",
            (
                Query(
                    "sum by (reason) (rate(sallyport_radius_discards_total"
                    '{$here, reason=~"overload|internal_error"}[$__rate_interval]))',
                    "{{reason}}",
                ),
            ),
            unit="reqps",
            width=8,
        ),
        Graph(
            "Dropped by the kernel",
            "Datagrams that found no room in the socket's buffer. Should be 0.",
            (
                Query(
                    "sum by (listener) (rate(sallyport_udp_receive_drops_total{$here}[$__rate_interval]))",
                    "{{listener}}",
                ),
            ),
            unit="reqps",
            width=8,
        ),
        Row("Accounting, sessions, RadSec"),
        Graph(
            "Accounting records",
            "Kept, by Acct-Status-Type.",
            (
                Query(
                    "sum by (status) (rate(sallyport_accounting_records_total{$here}[$__rate_interval]))", "{{status}}"
                ),
            ),
            unit="reqps",
            width=8,
        ),
        Graph(
            "Disconnect and CoA",
            "What devices answered; timeout: the device may have obeyed without saying so.",
            (
                Query(
                    "sum by (kind, outcome) (increase(sallyport_dynamic_requests_total{$here}[1h])) or on () vector(0)",
                    "{{kind}} {{outcome}}",
                ),
            ),
            width=8,
        ),
        Graph(
            "RadSec",
            "Open connections over TLS, and rounds of EAP and upstream challenges each second.",
            (
                Query("sum(sallyport_radsec_connections{$here})", "connections"),
                Query("sum(rate(sallyport_radius_rounds_total{$here}[$__rate_interval]))", "rounds/s"),
            ),
            width=8,
        ),
        Row("Upstream servers (first factor radius)"),
        Graph(
            "Passed on",
            "What home servers answered; none: nothing came in time.",
            (
                Query(
                    "sum by (outcome) (rate(sallyport_upstream_requests_total{$here}[$__rate_interval])) "
                    "or on () vector(0)",
                    "{{outcome}}",
                ),
            ),
            unit="reqps",
            width=24,
            height=6,
        ),
        Graph(
            "Servers",
            "Home servers by state.",
            (Query("sum by (state) (sallyport_upstream_servers{$here}) or on () vector(0)", "{{state}}"),),
            width=8,
        ),
        Graph(
            "Repeated",
            "again: sent once more to the same server; moved: to another, since the first did not answer.",
            (
                Query(
                    "sum by (kind) (increase(sallyport_upstream_repeats_total{$here}[1h])) or on () vector(0)",
                    "{{kind}}",
                ),
            ),
            width=8,
        ),
        Number(
            "Their answers dropped",
            "Datagrams of home servers that did not hold, in the time that is shown: often a wrong secret.",
            Query("sum(increase(sallyport_upstream_discards_total{$here}[$__range])) or on () vector(0)"),
            height=8,
        ),
    ),
)
