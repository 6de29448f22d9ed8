"""Store and process: the database, the HTTP server and the process of the service."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row, quantiles

PROCESS: Final = Board(
    "process",
    "Store and process",
    "The database, the HTTP server, and the process.",
    (
        Row("Now"),
        Number(
            "Version",
            "Version of the running service.",
            Query("sallyport_build_info{$here}", "{{version}}"),
            is_text=True,
        ),
        Number(
            "Up for",
            "Time since the start of the process.",
            Query("time() - max(sallyport_process_start_time_seconds{$here})"),
            unit="s",
        ),
        Number(
            "Last backup",
            "Time since the last backup. A value above fifty years means that there is no backup.",
            Query("time() - min(sallyport_backup_last_success_timestamp_seconds{$here})"),
            unit="s",
        ),
        Number(
            "Settings read",
            "Time since the settings were read, at the start or on SIGHUP.",
            Query("time() - min(sallyport_config_last_reload_success_timestamp_seconds{$here})"),
            unit="s",
        ),
        Number(
            "Free space",
            "Free space on the file system of the database.",
            Query("min(sallyport_store_free_bytes{$here})"),
            "bytes",
        ),
        Number(
            "Store errors",
            "Failed transactions in the selected time range. Requests in a failed transaction got no answer.",
            Query("sum(increase(sallyport_store_errors_total{$here}[$__range]))"),
        ),
        Row("Certificates and clock"),
        Graph(
            "Certificates of the service",
            "Time until the first certificate of each file expires: the API's, EAP's and RadSec's, the authority of "
            "clients, and revocation lists. Below 0, it has expired.",
            (Query("min by (use) (sallyport_certificate_expiry_timestamp_seconds{$here}) - time()", "{{use}}"),),
            unit="s",
            width=8,
        ),
        Graph(
            "Certificates of domains",
            "Time until the first certificate of a domain expires: in the settings of its directories or first factor, "
            "or its server certificates for EAP.",
            (
                Query(
                    "sum by (instance, domain, use) (sallyport_domain_certificate_expiry_timestamp_seconds{$here} "
                    "- time()) * on (instance, domain) group_left (name) sallyport_domain_info{$here}",
                    "{{name}} ({{domain}}) {{use}}",
                ),
            ),
            unit="s",
            width=8,
        ),
        Graph(
            "Revocation lists of authorities",
            "Time until the first complete revocation list of each authority expires. Lists are fetched ahead of that. "
            "A line that falls to 0 is a list whose authority publishes no new one, or that cannot be fetched.",
            (
                Query(
                    "min by (authority) (sallyport_revocation_list_next_update_timestamp_seconds{$here}) - time()",
                    "authority {{authority}}",
                ),
            ),
            unit="s",
            width=8,
        ),
        Graph(
            "Age of revocation lists",
            "Time since the complete revocation list that expires first was issued, for each authority.",
            (
                Query(
                    "time() - min by (authority) (sallyport_revocation_list_this_update_timestamp_seconds{$here})",
                    "authority {{authority}}",
                ),
            ),
            unit="s",
            width=8,
        ),
        Graph(
            "Size of revocation lists",
            "Size of all revocation lists of each authority.",
            (Query("max by (authority) (sallyport_revocation_list_octets{$here})", "authority {{authority}}"),),
            unit="bytes",
            width=8,
        ),
        Graph(
            "Fetches of revocation lists",
            "Fetches of lists by result, authorities with failed fetches since the last success, and lists that are "
            "due, expired or missing.",
            (
                Query(
                    "sum by (result) (rate(sallyport_revocation_list_fetches_total{$here}[$__rate_interval]))",
                    "{{result}}",
                ),
                Query("count(sallyport_revocation_list_failures{$here} > 0)", "authorities with failures"),
                Query('sum by (state) (sallyport_revocation_lists{$here, state!="valid"})', "lists: {{state}}"),
            ),
            width=8,
        ),
        Graph(
            "OCSP requests",
            "Requests to OCSP responders by result. failed: no answer; invalid: an answer that cannot be used.",
            (
                Query("sum by (result) (rate(sallyport_ocsp_requests_total{$here}[$__rate_interval]))", "{{result}}"),
                Query(
                    "histogram_quantile(0.95, sum by (le) "
                    "(rate(sallyport_ocsp_request_duration_seconds_bucket{$here}[$__rate_interval])))",
                    "95 % within (s)",
                ),
            ),
            width=8,
        ),
        Graph(
            "Checks of certificates",
            "Checks of client certificates at logins: good, revoked, or unknown.",
            (Query("sum by (state) (rate(sallyport_revocation_checks_total{$here}[$__rate_interval]))", "{{state}}"),),
            width=8,
        ),
        Graph(
            "Clock",
            "1: the kernel reports a synchronized clock. 0: it does not. One-time codes need a correct clock.",
            (Query("sallyport_clock_synchronized{$here}", "{{instance}}"),),
            width=8,
        ),
        Row("Store"),
        Graph(
            "Commits",
            "Duration of a shared transaction, including the write to disk.",
            quantiles("sallyport_store_commit_duration_seconds", "", 0.5, 0.99),
            unit="s",
            width=8,
        ),
        Graph(
            "Callers that share a commit",
            "Average number of callers that share a commit, and commits per second.",
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
            "Callers that wait for the next transaction. If it grows, the disk is too slow.",
            (Query("sum(sallyport_store_queue_depth{$here})", "waiting"),),
            width=8,
        ),
        Graph(
            "Sizes",
            "Size of the database and its write-ahead log.",
            (
                Query("sum(sallyport_store_bytes{$here})", "database"),
                Query("sum(sallyport_store_wal_bytes{$here})", "log (WAL)"),
            ),
            unit="bytes",
            width=8,
        ),
        Graph(
            "Free space",
            "Free space on the file system of the database. Without free space, no request is answered.",
            (Query("sallyport_store_free_bytes{$here}", "{{instance}}"),),
            unit="bytes",
            width=8,
        ),
        Graph(
            "Deleted by age or size",
            "Events, accounting records and past sessions. size: deleted before the age limit, to free space.",
            (
                Query(
                    "sum by (table, reason) (increase(sallyport_events_purged_total{$here}[1h])) or on () vector(0)",
                    "{{table}} {{reason}}",
                ),
            ),
            width=8,
        ),
        Row("Events for a SIEM, and spans"),
        Graph(
            "Delivered",
            "Events that each outlet accepted.",
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
            "Events that wait for an unreachable or slow outlet. An event waits until it is deleted by age or size.",
            (
                Query(
                    "sum by (outlet, type) (sallyport_outlet_waiting_events{$here}) or on () vector(0)",
                    "{{outlet}} {{type}}",
                ),
            ),
        ),
        Graph(
            "Exported logins",
            "Logins whose spans the OpenTelemetry collector has taken (sent) or not taken (failed), or that found the "
            "queue full (dropped).",
            (
                Query(
                    "sum by (result) (rate(sallyport_exported_logins_total{$here}[$__rate_interval])) "
                    "or on () vector(0)",
                    "{{result}}",
                ),
            ),
            unit="reqps",
        ),
        Row("Mail to people"),
        Graph(
            "Mails",
            "Mails by result: sent, failed (the SMTP server is unreachable or does not accept it), late, full (queue).",
            (Query("sum by (result) (increase(sallyport_mails_total{$here}[1h]))", "{{result}}"),),
        ),
        Graph(
            "Waiting",
            "Mails that wait for the SMTP server. A mail that waits for five minutes is not sent any more.",
            (Query("sum(sallyport_mail_waiting{$here})", "mails"),),
        ),
        Graph(
            "Configuration as code",
            "1 if the folder of the setting `apply` could not be applied. `doctor` says why.",
            (Query("max by (instance) (sallyport_configuration_not_applied{$here})", "{{instance}}"),),
        ),
        Row("Accounting while the database is away"),
        Graph(
            "Spooled",
            "Accounting records by outcome: written to local disk, stored later, or dropped without a response.",
            (
                Query(
                    "sum by (outcome) (rate(sallyport_accounting_spooled_records_total{$here}[$__rate_interval])) "
                    "or on () vector(0)",
                    "{{outcome}}",
                ),
            ),
            unit="reqps",
            width=8,
        ),
        Graph(
            "Waiting",
            "Accounting records that wait on local disk.",
            (Query("sum(sallyport_accounting_spool_waiting_records{$here}) or on () vector(0)", "records"),),
            width=8,
        ),
        Graph(
            "Size",
            "Size of the spool. `accounting_spool_mib` limits the spool of each node and worker.",
            (Query("sum(sallyport_accounting_spool_bytes{$here}) or on () vector(0)", "spool"),),
            unit="bytes",
            width=8,
        ),
        Row("HTTP"),
        Graph(
            "Requests",
            "Requests by class of the HTTP status.",
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
            "99th percentile of the five slowest routes.",
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
            "CPU seconds per second. The event loop uses at most one core, and the threads of the store use others.",
            (Query("rate(sallyport_process_cpu_seconds_total{$here}[$__rate_interval])", "{{instance}}"),),
            width=6,
        ),
        Graph(
            "Memory",
            "Resident memory. Steady growth over days indicates a leak.",
            (Query("sallyport_process_resident_memory_bytes{$here}", "{{instance}}"),),
            unit="bytes",
            width=6,
        ),
        Graph(
            "Descriptors",
            "Open file descriptors as a share of the limit.",
            (Query("sallyport_process_open_fds{$here} / sallyport_process_max_fds{$here}", "{{instance}}"),),
            unit="percentunit",
            width=6,
        ),
        Graph(
            "Event loop's lag",
            "Longest delay of the event loop in the last minute; logins can be delayed by as much.",
            (Query("sallyport_event_loop_lag_seconds{$here}", "{{instance}}"),),
            unit="s",
            width=6,
        ),
    ),
)
