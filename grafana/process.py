"""Store and process: what the service stands on."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row, quantiles

PROCESS: Final = Board(
    "process",
    "Store and process",
    "The database, the HTTP server, and the process.",
    (
        Row("Now"),
        Number("Version", "The running one.", Query("sallyport_build_info{$here}", "{{version}}"), is_text=True),
        Number(
            "Up for",
            "Since the process began.",
            Query("time() - max(sallyport_process_start_time_seconds{$here})"),
            unit="s",
        ),
        Number(
            "Last backup",
            "How long ago; more than fifty years: never.",
            Query("time() - min(sallyport_backup_last_success_timestamp_seconds{$here})"),
            unit="s",
        ),
        Number(
            "Settings read",
            "How long ago: at the start, or by SIGHUP.",
            Query("time() - min(sallyport_config_last_reload_success_timestamp_seconds{$here})"),
            unit="s",
        ),
        Number("Room left", "On the database's file system.", Query("min(sallyport_store_free_bytes{$here})"), "bytes"),
        Number(
            "Store errors",
            "Transactions that failed, in the time that is shown. Whoever was in one got no answer.",
            Query("sum(increase(sallyport_store_errors_total{$here}[$__range]))"),
        ),
        Row("Store"),
        Graph(
            "Commits",
            "How long a shared transaction takes, to the disk and back.",
            quantiles("sallyport_store_commit_duration_seconds", "", 0.5, 0.99),
            unit="s",
            width=8,
        ),
        Graph(
            "Callers that share a commit",
            "On average: the busier, the more.",
            (
                Query(
                    "sum(rate(sallyport_store_batch_rows_sum{$here}[$__rate_interval])) / "
                    "sum(rate(sallyport_store_batch_rows_count{$here}[$__rate_interval]))",
                    "callers",
                ),
                Query("sum(rate(sallyport_store_batch_rows_count{$here}[$__rate_interval]))", "commits/s"),
            ),
            width=8,
        ),
        Graph(
            "Queue of the writer",
            "Callers that wait for the next transaction. Growing: the disk does not keep up.",
            (Query("sum(sallyport_store_queue_depth{$here})", "waiting"),),
            width=8,
        ),
        Graph(
            "Sizes",
            "The database and its log.",
            (
                Query("sum(sallyport_store_bytes{$here})", "database"),
                Query("sum(sallyport_store_wal_bytes{$here})", "log (WAL)"),
            ),
            unit="bytes",
            width=8,
        ),
        Graph(
            "Room left",
            "On the file system of the database. When there is none, nobody is answered.",
            (Query("sallyport_store_free_bytes{$here}", "{{instance}}"),),
            unit="bytes",
            width=8,
        ),
        Graph(
            "Deleted by age or size",
            "Events, accounting records and past sessions; `size` means that they went before their time.",
            (
                Query(
                    "sum by (table, reason) (increase(sallyport_events_purged_total{$here}[1h])) or on () vector(0)",
                    "{{table}} {{reason}}",
                ),
            ),
            width=8,
        ),
        Row("Events for a SIEM"),
        Graph(
            "Delivered",
            "Events that each outlet took.",
            (
                Query(
                    "sum by (outlet, type) (rate(sallyport_outlet_events_total{$here}[$__rate_interval])) "
                    "or on () vector(0)",
                    "{{outlet}} {{type}}",
                ),
            ),
            unit="reqps",
        ),
        Graph(
            "Waiting",
            "Events that an outlet has not taken: it is away, or slow. They wait for as long as events are kept.",
            (
                Query(
                    "sum by (outlet, type) (sallyport_outlet_waiting_events{$here}) or on () vector(0)",
                    "{{outlet}} {{type}}",
                ),
            ),
        ),
        Row("HTTP"),
        Graph(
            "Requests",
            "By class of status.",
            (
                Query(
                    "sum by (code) (rate(sallyport_http_request_duration_seconds_count{$here}[$__rate_interval]))",
                    "{{code}}",
                ),
            ),
            unit="reqps",
            stacked=True,
        ),
        Graph(
            "Slowest operations, p99",
            "The five slowest routes.",
            (
                Query(
                    "topk(5, histogram_quantile(0.99, sum by (le, route) "
                    "(rate(sallyport_http_request_duration_seconds_bucket{$here}[$__rate_interval]))))",
                    "{{route}}",
                ),
            ),
            unit="s",
        ),
        Row("Process"),
        Graph(
            "CPU",
            "Seconds each second; one core is all that the event loop can use, threads for the store come on top.",
            (Query("rate(sallyport_process_cpu_seconds_total{$here}[$__rate_interval])", "{{instance}}"),),
            width=6,
        ),
        Graph(
            "Memory",
            "In use. Steady growth over days would be a leak.",
            (Query("sallyport_process_resident_memory_bytes{$here}", "{{instance}}"),),
            unit="bytes",
            width=6,
        ),
        Graph(
            "Descriptors",
            "The share that is open of those that there may be.",
            (Query("sallyport_process_open_fds{$here} / sallyport_process_max_fds{$here}", "{{instance}}"),),
            unit="percentunit",
            width=6,
        ),
        Graph(
            "Event loop's lag",
            "The worst of the last minute: how long a login might have waited behind something else.",
            (Query("sallyport_event_loop_lag_seconds{$here}", "{{instance}}"),),
            unit="s",
            width=6,
        ),
    ),
)
