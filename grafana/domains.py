"""Domains before and after the switch to enforce mode: the logins that it would refuse, and that it refuses."""

from typing import Final

from grafana.board import Board, Graph, Query, Row, named

NAME = "{{name}} ({{domain}})"


def _rate(where: str) -> str:
    return named(f"rate(sallyport_mfa_decisions_total{{$here, {where}}}[$__rate_interval])")


DOMAINS: Final = Board(
    "domains",
    "Domains",
    "Each domain before, during and after the switch to enforce mode.",
    (
        Row("Before: monitoring"),
        Graph(
            "Would be refused",
            "Logins in monitor mode that enforce mode would refuse. `sallyport domain preview` names the users.",
            (Query(_rate('decision="would_deny"'), NAME),),
            unit="reqps",
        ),
        Graph(
            "Share that would be refused",
            "Share of the logins in monitor mode. Enforce when this is 0, or when you know each of these logins.",
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
            "1: enforce mode, 0: monitor mode. The audit trail names the actor of each switch.",
            (Query(named('sallyport_enforcement_mode{$here, mode="enforce"}'), NAME),),
            width=24,
            height=6,
        ),
        Row("After: enforcing"),
        Graph(
            "Accepted",
            "Logins accepted in enforce mode.",
            (Query(_rate('mode="enforce", decision="allow"'), NAME),),
            unit="reqps",
        ),
        Graph(
            "Refused",
            "Logins refused in enforce mode, including those with a wrong first factor.",
            (Query(_rate('mode="enforce", decision="deny"'), NAME),),
            unit="reqps",
        ),
        Graph(
            "Provider not available",
            "The provider failed, or none is set. The domain's fallback action accepts (bypass) or refuses (error).",
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
            "Decisions by mode and decision.",
            (
                Query(
                    "sum by (mode, decision) (rate(sallyport_mfa_decisions_total{$here}[$__rate_interval]))",
                    "{{mode}} {{decision}}",
                ),
            ),
            unit="reqps",
            stacked=True,
        ),
        Graph(
            "Decisions by tag",
            "Decisions by the value of the tag that the setting metrics_tag names. Without the setting, it is empty.",
            (
                Query(
                    "sum by (tag, decision) (rate(sallyport_tagged_decisions_total{$here}[$__rate_interval]))",
                    "{{tag}} {{decision}}",
                ),
            ),
            unit="reqps",
            stacked=True,
        ),
        Row("Devices and sessions"),
        Graph("Devices", "Devices in the inventory of each domain.", (Query(named("sallyport_devices{$here}"), NAME),)),
        Graph(
            "Live sessions",
            "Live sessions, according to the accounting of the devices.",
            (Query(named("sallyport_sessions_live{$here}"), NAME),),
        ),
    ),
)
