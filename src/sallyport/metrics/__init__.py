"""The metrics of the service, grouped by topic.

Names and labels are an API: grafana/ uses them, and the reference documentation lists them. The values of a label are a
closed set, or names that an admin chose (domains by id, and RADIUS clients, at most a thousand of each). A label never
contains a user, a station or an address. The module `instruments` has counters for code that runs at each login. It
also has `render`, which returns all metrics in the format that a scrape accepts.
"""

from sallyport.metrics.identity import CredentialMetrics, DirectoryMetrics, PresentationMetrics
from sallyport.metrics.instruments import (
    MAX_NAMES,
    OPENMETRICS,
    TEXT,
    Buckets,
    Cell,
    Durations,
    LoginPlace,
    format_for,
    render,
)
from sallyport.metrics.inventory import AgentMetrics, DomainMetrics, InventoryMetrics, SessionMetrics
from sallyport.metrics.login import (
    LockoutMetrics,
    LoginMetrics,
    MfaMetrics,
    OutletMetrics,
    PauseMetrics,
    SpanMetrics,
    SpoolMetrics,
    StepUpMetrics,
    UpstreamMetrics,
)
from sallyport.metrics.nodes import NodeMetrics
from sallyport.metrics.process import (
    CertificateMetrics,
    ConfigurationMetrics,
    HttpMetrics,
    MailMetrics,
    ProcessMetrics,
    StoreMetrics,
)
from sallyport.metrics.radius import DynamicMetrics, RadiusMetrics
from sallyport.metrics.revocation import ListFacts, RevocationMetrics

__all__ = [
    "MAX_NAMES",
    "OPENMETRICS",
    "TEXT",
    "AgentMetrics",
    "Buckets",
    "Cell",
    "CertificateMetrics",
    "ConfigurationMetrics",
    "CredentialMetrics",
    "DirectoryMetrics",
    "DomainMetrics",
    "Durations",
    "DynamicMetrics",
    "HttpMetrics",
    "InventoryMetrics",
    "ListFacts",
    "LockoutMetrics",
    "LoginMetrics",
    "LoginPlace",
    "MailMetrics",
    "MfaMetrics",
    "NodeMetrics",
    "OutletMetrics",
    "PauseMetrics",
    "PresentationMetrics",
    "ProcessMetrics",
    "RadiusMetrics",
    "RevocationMetrics",
    "SessionMetrics",
    "SpanMetrics",
    "SpoolMetrics",
    "StepUpMetrics",
    "StoreMetrics",
    "UpstreamMetrics",
    "format_for",
    "render",
]
