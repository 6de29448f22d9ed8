"""Microsoft: Routing and Remote Access (and Azure's VPN gateway), Remote Desktop Gateway, and NPS as a proxy.

RRAS         MS-RAS-Vendor (311/9) is 311 and MS-Network-Access-Server-Type (311/47) is 2, or the client's name (311/34)
             begins MSRAS-, or its version (311/35) MSRASV (P). SoftEther sends 311/9 and 311/47 alike: it gives
             itself away by NAS-Identifier, and by a version where the client's name belongs (S).
RD Gateway   311/47 is 1; Called-Station-Id UserAuthType:PW (D, P)
NPS          its Proxy-State is a link-local IPv6 address, fe80::, and a counter of 4 octets (P). RRAS and Azure's
             gateway, which share its engine, send one of that form themselves, often without any NAS address (P): a
             single one is theirs, unless the source is another address than the NAS gives.

The attributes for MS-CHAP (311/1, /11, /25) are everybody's and prove nothing.
"""

from typing import Final

from sallyport.radius.attributes import CALLED_STATION_ID, NAS_IDENTIFIER
from sallyport.vendors.model import Certainty, Clue, OwnProxyState, Rank, Vendor
from sallyport.vendors.sight import Sight

_MICROSOFT: Final = 311
_RAS_VENDOR: Final = 9
_CLIENT_NAME: Final = 34
_CLIENT_VERSION: Final = 35
_SERVER_TYPE: Final = 47


def _rras(sight: Sight) -> tuple[str, ...]:
    if sight.vendor_integer(_MICROSOFT, _RAS_VENDOR) != _MICROSOFT or _is_softether(sight):
        return ()
    remote_access = sight.vendor_integer(_MICROSOFT, _SERVER_TYPE) == 2
    more = (
        *(("Vendor-Specific 311/47 = 2",) if remote_access else ()),
        *sight.begins(_MICROSOFT, _CLIENT_NAME, b"MSRAS-"),
        *sight.begins(_MICROSOFT, _CLIENT_VERSION, b"MSRASV"),
    )
    return ("Vendor-Specific 311/9 = 311", *more) if more else ()


def _is_softether(sight: Sight) -> bool:
    client_name = sight.vendor_octets(_MICROSOFT, _CLIENT_NAME)
    return client_name.startswith(b"MSRASV") or sight.octets(NAS_IDENTIFIER).startswith(b"SoftEther")


def _rd_gateway(sight: Sight) -> tuple[str, ...]:
    if sight.vendor_integer(_MICROSOFT, _SERVER_TYPE) != 1:
        return ()
    called = sight.octets(CALLED_STATION_ID).startswith(b"UserAuthType:")
    return ("Vendor-Specific 311/47 = 1", *(("Called-Station-Id UserAuthType:",) if called else ()))


def _nps(sight: Sight) -> tuple[str, ...]:
    return ("Proxy-State fe80:: and a counter",) if _is_of_nps(sight) else ()


def _is_of_nps(sight: Sight) -> bool:
    if not sight.proxy_states:
        return False
    last = sight.proxy_states[-1]
    return len(last) == 20 and last.startswith(b"\xfe\x80")


def _is_of_rras_itself(sight: Sight) -> bool:
    if len(sight.proxy_states) != 1 or not _is_of_nps(sight):
        return False
    return sight.sent_by_nas() or not sight.tells_nas_address()


VENDOR: Final = Vendor(
    nas=(
        Clue("Microsoft RRAS", Rank.MICROSOFT_VALUE, _rras),
        Clue("Microsoft RD Gateway", Rank.MICROSOFT_VALUE, _rd_gateway),
    ),
    forwarder=(Clue("Microsoft NPS", Rank.FORMAT, _nps, Certainty.CERTAIN),),
    own_proxy_state=(OwnProxyState("Microsoft RRAS", _is_of_rras_itself),),
)
