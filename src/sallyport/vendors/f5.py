"""F5 BIG-IP APM.

Service-Type 8 (Authenticate-Only) together with Tunnel-Client-Endpoint (S): weak, and a format.
"""

from typing import Final

from sallyport.radius.attributes import SERVICE_TYPE, TUNNEL_CLIENT_ENDPOINT
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight


def _endpoint(sight: Sight) -> tuple[str, ...]:
    if sight.integer(SERVICE_TYPE) != 8 or TUNNEL_CLIENT_ENDPOINT not in sight.first:
        return ()
    return ("Service-Type 8", "Tunnel-Client-Endpoint")


VENDOR: Final = Vendor(nas=(Clue("F5 BIG-IP APM", Rank.FORMAT, _endpoint),))
