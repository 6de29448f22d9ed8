"""Why a change of a setting needs a new process. All other settings are of the type `Live`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sallyport.settings.settings import TLS_FILES

_STORE: Final = "the store is opened at the start"
_ADDRESS: Final = "addresses are bound at the start"
_TLS: Final = "whether an address has TLS is decided when it is bound"
REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("data_dir", "database", "database_url_file"), _STORE),
        **dict.fromkeys(("http_bind", "metrics_bind", "people_bind"), _ADDRESS),
        **dict.fromkeys(("radius_auth_bind", "radius_acct_bind", "radsec_bind"), _ADDRESS),
        **dict.fromkeys(TLS_FILES, _TLS),
        "public_url": "open pages, prompts and sign-ins belong to the former address",
        "dictionaries": "rules, roles and events are read with the dictionary of the start",
        "winbind_orgs": "first factors keep the winbind that they have got at the start",
        "duplicate_window_s": "the answers in memory are kept for the time of the start",
        "node_name": "other nodes know this node by its name",
        "workers": "the processes are started once",
        "otlp_url": "the export of spans begins at the start",
        "disk_reserve_mib": "the reserve file is made before the database is opened",
    }
)
"""By setting. Those of TLS_FILES need a restart only if TLS begins or ends; other files apply at a reload."""
