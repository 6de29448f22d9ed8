"""RADIUS in detail: requests, answers, latency, and discards with their reasons."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row, quantiles

DURATION = "sallyport_radius_request_duration_seconds"
BAD_SIGNATURE = 'outcome=~"bad_authenticator|bad_message_authenticator"'

RADIUS: Final = Board(
    "radius",
    "RADIUS",
    "Requests, answers, latency, duplicates and discards of the listeners, and the upstream servers.",
    (
        Row("Traffic"),
        Graph(
            "Requests",
            "Accepted requests by listener and type, without duplicates and discards.",
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
            "Sent answers by type, including those repeated for a duplicate.",
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
            "Time from request to answer, with the write to disk, without the time of users and the delay of rejects. "
            "Exemplars name the event of a login.",
            quantiles(DURATION, "", 0.5, 0.9, 0.99, exemplars=True),
            unit="s",
        ),
        Graph(
            "Latency by type, p99",
            "An Access-Accept includes the time of the directory or the upstream server.",
            quantiles(DURATION, "type", 0.99, legend="{{type}}"),
            unit="s",
        ),
        Row("Requests without an answer"),
        Graph(
            "Discards",
            "Discarded requests by reason. For unknown_client, `sallyport client unknown` lists the senders.",
            (Query("sum by (reason) (rate(sallyport_radius_discards_total{$here}[$__rate_interval]))", "{{reason}}"),),
            unit="reqps",
            stacked=True,
            width=8,
        ),
        Graph(
            "Wrong secrets",
            "Requests of a known client with an invalid authenticator: the device has a different secret.",
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
            "Share of retransmissions. If it is high, the timeout of a device is too short for a second factor.",
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
            "Pending requests, which wait for users, directories or the disk.",
            (Query("sum by (listener) (sallyport_radius_inflight_requests{$here})", "{{listener}}"),),
            width=8,
        ),
        Graph(
            "Overload and errors",
            "Requests dropped because of overload, or of an internal error that is in the log. Should be 0.",
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
            "Datagrams dropped because the socket's buffer was full. Should be 0.",
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
            "Stored records by Acct-Status-Type.",
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
            "Answers of the devices. timeout: the device did not answer, but may have obeyed.",
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
            "Open RadSec connections, and rounds of EAP and upstream challenges per second.",
            (
                Query("sum(sallyport_radsec_connections{$here})", "connections"),
                Query("sum(rate(sallyport_radius_rounds_total{$here}[$__rate_interval]))", "rounds/s"),
            ),
            width=8,
        ),
        Row("Upstream servers (first factor radius)"),
        Graph(
            "Forwarded logins",
            "Answers of the upstream servers. none: no answer in time.",
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
            "Upstream servers by state.",
            (Query("sum by (state) (sallyport_upstream_servers{$here}) or on () vector(0)", "{{state}}"),),
            width=8,
        ),
        Graph(
            "Repeated",
            "again: repeated to the same server. moved: sent to another server because the first did not answer.",
            (
                Query(
                    "sum by (kind) (increase(sallyport_upstream_repeats_total{$here}[1h])) or on () vector(0)",
                    "{{kind}}",
                ),
            ),
            width=8,
        ),
        Number(
            "Dropped upstream answers",
            "Invalid datagrams of upstream servers in the selected time range, often due to a wrong secret.",
            Query("sum(increase(sallyport_upstream_discards_total{$here}[$__range])) or on () vector(0)"),
            height=8,
        ),
    ),
)
