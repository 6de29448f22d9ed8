"""Credentials: issued and revoked credentials, and the presentations of holders."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row

CREDENTIALS: Final = Board(
    "credentials",
    "Credentials",
    "Verifiable credentials and their presentations.",
    (
        Row("In the selected time range"),
        Number(
            "Issued", "Issued credentials.", Query("sum(increase(sallyport_credentials_issued_total{$here}[$__range]))")
        ),
        Number(
            "Revoked",
            "Revoked credentials; they admit no login any more.",
            Query("sum(increase(sallyport_credentials_revoked_total{$here}[$__range]))"),
        ),
        Number(
            "Refused",
            "Presentations that were invalid or late.",
            Query(
                'sum(increase(sallyport_presentations_total{$here, result!~"accepted|declined"}[$__range])) '
                "or on () vector(0)"
            ),
        ),
        Row("Over time"),
        Graph(
            "Presentations",
            "Presentations by result. signature, issuer, nonce: a forged or replayed presentation, or a wrong holder.",
            (
                Query(
                    "sum by (result) (increase(sallyport_presentations_total{$here}[1h])) or on () vector(0)",
                    "{{result}}",
                ),
            ),
        ),
        Graph(
            "Issued and revoked",
            "Credentials issued and revoked in the last hour.",
            (
                Query("sum(increase(sallyport_credentials_issued_total{$here}[1h]))", "issued"),
                Query("sum(increase(sallyport_credentials_revoked_total{$here}[1h]))", "revoked"),
            ),
        ),
    ),
)
