"""Credentials: what was issued and revoked, and what holders show."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row

CREDENTIALS: Final = Board(
    "credentials",
    "Credentials",
    "Verifiable credentials and their presentations.",
    (
        Row("In the time that is shown"),
        Number("Issued", "Credentials.", Query("sum(increase(sallyport_credentials_issued_total{$here}[$__range]))")),
        Number(
            "Revoked",
            "Their holders get in no more.",
            Query("sum(increase(sallyport_credentials_revoked_total{$here}[$__range]))"),
        ),
        Number(
            "Refused",
            "Presentations that did not hold, or came too late.",
            Query(
                'sum(increase(sallyport_presentations_total{$here, result!~"accepted|declined"}[$__range])) '
                "or on () vector(0)"
            ),
        ),
        Row("Over time"),
        Graph(
            "Presentations",
            "By result. signature, issuer, nonce: somebody shows what is not theirs, or what was made up.",
            (
                Query(
                    "sum by (result) (increase(sallyport_presentations_total{$here}[1h])) or on () vector(0)",
                    "{{result}}",
                ),
            ),
        ),
        Graph(
            "Issued and revoked",
            "In the last hour.",
            (
                Query("sum(increase(sallyport_credentials_issued_total{$here}[1h]))", "issued"),
                Query("sum(increase(sallyport_credentials_revoked_total{$here}[1h]))", "revoked"),
            ),
        ),
    ),
)
