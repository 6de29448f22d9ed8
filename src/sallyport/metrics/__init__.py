"""Every metric of the service: one module an area, one class with its metrics. Names and labels are an API: grafana/
reads them, and the README lists them.

Labels are closed sets, or names that an admin gave (domains by id, RADIUS clients up to a thousand), never a user, a
station or an address. `instruments` has what hot paths count with, and `render`, which turns all of it into text.
"""

from sallyport.metrics.agents import AgentMetrics
from sallyport.metrics.did import CredentialMetrics
from sallyport.metrics.directories import DirectoryMetrics
from sallyport.metrics.domains import DomainMetrics
from sallyport.metrics.dynamic import DynamicMetrics
from sallyport.metrics.instruments import MAX_NAMES, Buckets, Cell, render
from sallyport.metrics.inventory import InventoryMetrics, SessionMetrics
from sallyport.metrics.login import LockoutMetrics, LoginMetrics
from sallyport.metrics.mfa import MfaMetrics
from sallyport.metrics.outlets import OutletMetrics
from sallyport.metrics.presentations import PresentationMetrics
from sallyport.metrics.process import ProcessMetrics
from sallyport.metrics.radius import RadiusMetrics
from sallyport.metrics.store import StoreMetrics
from sallyport.metrics.upstream import UpstreamMetrics
from sallyport.metrics.web import HttpMetrics

__all__ = [
    "MAX_NAMES",
    "AgentMetrics",
    "Buckets",
    "Cell",
    "CredentialMetrics",
    "DirectoryMetrics",
    "DomainMetrics",
    "DynamicMetrics",
    "HttpMetrics",
    "InventoryMetrics",
    "LockoutMetrics",
    "LoginMetrics",
    "MfaMetrics",
    "OutletMetrics",
    "PresentationMetrics",
    "ProcessMetrics",
    "RadiusMetrics",
    "SessionMetrics",
    "StoreMetrics",
    "UpstreamMetrics",
    "render",
]
