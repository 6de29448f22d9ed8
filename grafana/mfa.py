"""Second factors: results, the time that users take, and the calls of providers."""

from typing import Final

from grafana.board import Board, Graph, Number, Query, Row, named, quantiles

MFA: Final = Board(
    "mfa",
    "MFA",
    "Second factors and their providers.",
    (
        Row("Now"),
        Number(
            "Circuits open",
            "Domains whose provider failed repeatedly and is not called for a while. Their fallback action decides.",
            Query("sum(sallyport_mfa_circuits_open{$here}) or on () vector(0)"),
            width=6,
        ),
        Number(
            "Accepted by fallback",
            "Logins accepted by the fallback action because the provider failed, in the selected time range.",
            Query(
                'sum(increase(sallyport_mfa_decisions_total{$here, decision="bypass"}[$__range])) or on () vector(0)'
            ),
            width=6,
        ),
        Number(
            "Refused by fallback",
            "Logins refused by the fallback action because the provider failed, in the selected time range.",
            Query('sum(increase(sallyport_mfa_decisions_total{$here, decision="error"}[$__range])) or on () vector(0)'),
            width=6,
        ),
        Number(
            "Locked out",
            "Users and stations with too many failures. `sallyport lockout list` names them.",
            Query("sum(sallyport_locked_out{$here})"),
            width=6,
        ),
        Row("Users"),
        Graph(
            "Second factors",
            "Second factors by provider and result.",
            (
                Query(
                    "sum by (provider, result) (rate(sallyport_mfa_challenges_total{$here}[$__rate_interval])) "
                    "or on () vector(0)",
                    "{{provider}} {{result}}",
                ),
            ),
            unit="reqps",
            stacked=True,
        ),
        Graph(
            "Time until the user answers",
            "Time from the prompt to the result. Devices must wait longer: set their timeout to 60 s, with one retry.",
            quantiles(
                "sallyport_mfa_challenge_duration_seconds", "provider", 0.5, 0.95, legend="{{provider}}", exemplars=True
            ),
            unit="s",
        ),
        Graph(
            "Joined retransmissions",
            "Requests that joined a pending prompt instead of starting a second one.",
            (
                Query(
                    "sum by (provider) (rate(sallyport_mfa_joined_retransmits_total{$here}[$__rate_interval])) "
                    "or on () vector(0)",
                    "{{provider}}",
                ),
            ),
            unit="reqps",
        ),
        Graph(
            "Lock-outs",
            "Lock-outs in the last hour by kind.",
            (Query("sum by (kind) (increase(sallyport_lockouts_total{$here}[1h])) or on () vector(0)", "{{kind}}"),),
        ),
        Graph(
            "Users who refuse prompts",
            "Users who refused three prompts within an hour. The log event `mfa_prompts_refused` names them.",
            (Query("sum(increase(sallyport_mfa_repeated_refusals_total{$here}[1h])) or on () vector(0)", "users"),),
        ),
        Graph(
            "Paused prompts",
            "Users who got no more prompts for ten minutes: after a denied login (not_me), or without answers.",
            (Query("sum by (reason) (increase(sallyport_mfa_prompt_pauses_total{$here}[1h]))", "{{reason}}"),),
        ),
        Graph(
            "Proofs on pages",
            "Logins that their person has confirmed on a page, by factor and strength of the proof.",
            (
                Query(
                    "sum by (factor, strength) (increase(sallyport_stepup_proofs_total{$here}[1h])) or on () vector(0)",
                    "{{factor}} ({{strength}})",
                ),
            ),
        ),
        Graph(
            "Codes at /mfa that failed",
            "Wrong codes, codes of an address after too many wrong ones, and codes during a flood of wrong codes.",
            (Query("sum by (result) (increase(sallyport_stepup_code_failures_total{$here}[5m]))", "{{result}}"),),
        ),
        Row("First factors"),
        Graph(
            "Logins that a first factor could not check",
            "Its LDAP, winbind or RADIUS servers do not answer, or its configuration is missing or unreadable.",
            (
                Query(
                    named("increase(sallyport_first_factor_failures_total{$here}[5m])"),
                    "{{name}} ({{domain}})",
                ),
            ),
        ),
        Row("Providers"),
        Graph(
            "Calls",
            "Calls by provider and result. refused: not sent (open circuit, or the provider asked for a pause).",
            (
                Query(
                    "sum by (provider, result) "
                    "(rate(sallyport_mfa_call_duration_seconds_count{$here}[$__rate_interval]))",
                    "{{provider}} {{result}}",
                ),
            ),
            unit="reqps",
        ),
        Graph(
            "Latency of calls",
            "Duration of calls. A slow provider delays every login that waits for it.",
            quantiles("sallyport_mfa_call_duration_seconds", "provider", 0.5, 0.99, legend="{{provider}}"),
            unit="s",
        ),
    ),
)
