"""All dashboards, in the order in which an admin uses them."""

from typing import Final

from grafana.board import Board
from grafana.credentials import CREDENTIALS
from grafana.directories import DIRECTORIES
from grafana.domains import DOMAINS
from grafana.endpoints import ENDPOINTS
from grafana.mfa import MFA
from grafana.nodes import NODES
from grafana.overview import OVERVIEW
from grafana.process import PROCESS
from grafana.radius import RADIUS

ALL: Final[tuple[Board, ...]] = (OVERVIEW, RADIUS, MFA, DOMAINS, DIRECTORIES, ENDPOINTS, CREDENTIALS, NODES, PROCESS)
