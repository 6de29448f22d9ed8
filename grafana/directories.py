"""Directories: the imports of people and groups."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row

DIRECTORIES: Final = Board(
    "directories",
    "Directories",
    "The imports of people and groups, from files, agents, LDAP and clouds.",
    (
        Row("Now"),
        Number(
            "Failed in a day",
            "Failed imports; getImportStatus and the log have the reason. The data of earlier imports stays.",
            Query('sum(increase(sallyport_import_jobs_total{$here, state="FAILED"}[1d]))'),
        ),
        Number(
            "Oldest import",
            "Time since the last successful import of a domain, for the domain with the longest time.",
            Query("max(time() - sallyport_directory_sync_last_success_timestamp_seconds{$here})"),
            unit="s",
        ),
        Number(
            "Oldest cloud data",
            "Age of the data of the cloud directory that was not read for the longest time.",
            Query("max(time() - sallyport_directory_data_timestamp_seconds{$here})"),
            unit="s",
        ),
        Number(
            "Cloud data expire",
            "Time until logins by certificate are refused because the data of a cloud directory are too old.",
            Query("min(sallyport_directory_data_expiry_timestamp_seconds{$here} - time())"),
            unit="s",
        ),
        Row("Imports"),
        Graph(
            "Imports",
            "Imports by result.",
            (Query("sum by (state) (increase(sallyport_import_jobs_total{$here}[1h]))", "{{state}}"),),
        ),
        Graph(
            "Entries",
            "Imported entries by result. Causes of many removals: a changed filter, or a lost permission to read.",
            (
                Query(
                    "sum by (result) (increase(sallyport_directory_sync_entries_total{$here}[1h]))",
                    "{{result}}",
                ),
            ),
        ),
        Graph(
            "Duration",
            "90th percentile of the duration of imports, by kind of directory.",
            (
                Query(
                    "histogram_quantile(0.9, sum by (le, kind) "
                    "(increase(sallyport_directory_sync_duration_seconds_bucket{$here}[1d])))",
                    "{{kind}}",
                ),
            ),
            unit="s",
        ),
    ),
)
