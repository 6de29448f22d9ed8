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
            "Imports that failed; getImportStatus and the log say why. What was known before stays.",
            Query('sum(increase(sallyport_import_jobs_total{$here, state="FAILED"}[1d]))'),
        ),
        Number(
            "Oldest domain",
            "Since the last import that was done, of the domain where that is longest ago.",
            Query("max(time() - sallyport_directory_sync_last_success_timestamp_seconds{$here})"),
            unit="s",
        ),
        Row("Imports"),
        Graph(
            "Imports",
            "By how they ended.",
            (Query("sum by (state) (increase(sallyport_import_jobs_total{$here}[1h]))", "{{state}}"),),
        ),
        Graph(
            "Entries",
            "What became of the entries. Many removed at once: a filter, or an account that may not read any more.",
            (
                Query(
                    "sum by (result) (increase(sallyport_directory_sync_entries_total{$here}[1h]))",
                    "{{result}}",
                ),
            ),
        ),
        Graph(
            "Duration",
            "Nine of ten imports take no longer, by the kind of directory.",
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
