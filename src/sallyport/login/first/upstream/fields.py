"""What the first factor `radius` is configured with."""

from typing import Annotated

from pydantic import Field

from sallyport.login.first.model import Fields
from sallyport.outgoing.fields import HostName, SharedKey
from sallyport.web.scope import Flag


class HomeServerFields(Fields):
    """One server."""

    host: HostName
    port: Annotated[int, Field(ge=1, le=65535)] = 1812
    secret: SharedKey


class UpstreamFields(Fields):
    """The servers that a domain's logins go to.

    servers: in the order in which they are asked; where `loadBalance` is set, all that are alive share the logins.
    responseWindowSeconds: how long a server has for its answer. statusCheck: whether a server that does not answer is
    sent Status-Server (RFC 5997) until it does. requireMessageAuthenticator: an answer without one is dropped, since
    anybody on the way can forge it (BlastRADIUS, CVE-2024-3596). stripRealm: the realm is taken off User-Name.
    """

    servers: Annotated[list[HomeServerFields], Field(min_length=1, max_length=8)]
    responseWindowSeconds: Annotated[float, Field(ge=1, le=60)] = 20.0  # noqa: N815
    loadBalance: Flag = False  # noqa: N815
    statusCheck: Flag = True  # noqa: N815
    requireMessageAuthenticator: Flag = True  # noqa: N815
    stripRealm: Flag = False  # noqa: N815
