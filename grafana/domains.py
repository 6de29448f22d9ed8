"""Domains before and after enforcing: whom it would stop, whom it stops."""

from typing import Final

from grafana.board import Board, Graph, Query, Row, named

NAME = "{{name}} ({{domain}})"


def _rate(where: str) -> str:
    return named(f"rate(sallyport_mfa_decisions_total{{$here, {where}}}[$__rate_interval])")


DOMAINS: Final = Board(
    "domains",
    "Domains",
    "Each domain before it enforces, while it is switched, and after.",
    (
        Row("Before: monitoring"),
        Graph(
            "Would be refused",
            "Logins of monitoring domains that enforcing would refuse. `sallyport domain preview` names the users.",
            (Query(_rate('decision="would_deny"'), NAME),),
            unit="reqps",
        ),
        Graph(
            "Share that would be refused",
            "Of the logins of monitoring domains. Switch where this is 0, or where you know each of them.",
            (
                Query(
                    "("
                    'sum by (instance, domain) (rate(sallyport_mfa_decisions_total{$here, mode="monitor", '
                    'decision="would_deny"}[$__rate_interval])) / sum by (instance, domain) '
                    '(rate(sallyport_mfa_decisions_total{$here, mode="monitor"}[$__rate_interval]))'
                    ") * on (instance, domain) group_left (name) sallyport_domain_info{$here}",
                    NAME,
                ),
            ),
            unit="percentunit",
        ),
        Row("The switch"),
        Graph(
            "Mode",
            "1: enforces, 0: monitors. A step that nobody planned is in the audit trail with who made it.",
            (Query(named('sallyport_enforcement_mode{$here, mode="enforce"}'), NAME),),
            width=24,
            height=6,
        ),
        Row("After: enforcing"),
        Graph(
            "Let in",
            "Logins of enforcing domains.",
            (Query(_rate('mode="enforce", decision="allow"'), NAME),),
            unit="reqps",
        ),
        Graph(
            "Refused",
            "Logins of enforcing domains: a wrong first factor counts too.",
            (Query(_rate('mode="enforce", decision="deny"'), NAME),),
            unit="reqps",
        ),
        Graph(
            "Could not be asked",
            "Provider away, or none set: bypass lets in, error refuses, as the domain's fallback says.",
            (
                Query(
                    "sum by (domain, decision) (rate(sallyport_mfa_decisions_total"
                    '{$here, decision=~"bypass|error"}[$__rate_interval])) or on () vector(0)',
                    "{{decision}} {{domain}}",
                ),
            ),
            unit="reqps",
        ),
        Graph(
            "All decisions",
            "By mode and decision.",
            (
                Query(
                    "sum by (mode, decision) (rate(sallyport_mfa_decisions_total{$here}[$__rate_interval]))",
                    "{{mode}} {{decision}}",
                ),
            ),
            unit="reqps",
            stacked=True,
        ),
        Row("What they have"),
        Graph("Devices", "In each domain's inventory.", (Query(named("sallyport_devices{$here}"), NAME),)),
        Graph(
            "Live sessions",
            "By the devices' accounting.",
            (Query(named("sallyport_sessions_live{$here}"), NAME),),
        ),
    ),
)
