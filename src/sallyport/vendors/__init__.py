"""Which product, and which medium, a RADIUS request comes from.

The forwarder and the NAS behind it are two. Vendor attributes, NAS-* and Connect-Info describe the NAS that the user
talks to, and survive any number of proxies; Proxy-State is appended by proxies, and the last one belongs to the host
that sent to us (RFC 2865 section 5.33). So each is named from evidence of its own, and the product at the packet's
source is the forwarder's where the request was forwarded, the NAS's where the NAS itself asks. Without Proxy-State the
NAS asks itself, or radsecproxy does, which leaves no trace.

Evidence is weighed in this order, whatever the file it stands in:

1. attributes that only one vendor's products send; two that contradict each other leave the first, as probable;
2. attributes of a vendor that others send as well (Cisco's AV pairs);
3. Microsoft's attributes, by value: half of the world sends MS-CHAP attributes, and an HP switch sends MS-RAS-Vendor;
4. Connect-Info that a product sends word for word;
5. NAS-Identifier that a product sends word for word;
6. formats of names and numbers, and only where no attribute of an unknown vendor speaks against them.

An admin of the device can edit the last two: what rests on them alone is probable, not certain. What a user can type
(User-Name) is never evidence, and nothing is guessed where there is none: a product without a known trace (ISE,
ClearPass and others, see `catalog`) is named by the registration of its RADIUS client.

model      the values: Certainty, Finding, Identity, and what a vendor's file is made of
sight      what is looked at: one request's attributes, prepared once and shared by all
catalog    the explicit list of vendors and the search through it
medium     NAS-Port-Type in words
NAME       one file a vendor; its docstring says where each piece of evidence comes from: P a real packet or debug
           log, S source code, D vendor documentation, M from memory, to be confirmed

To add a product: one file, its line in `catalog`, a packet in tests/vendors/packets. Nothing here raises on octets
from the network or opens anything.
"""

from dataclasses import replace

from sallyport.radius.packet import Request
from sallyport.vendors.catalog import PRODUCTS, name_forwarder, name_nas, sends_own_proxy_state
from sallyport.vendors.medium import UNKNOWN, medium, medium_of
from sallyport.vendors.model import Certainty, Finding, Identity
from sallyport.vendors.sight import Sight

__all__ = ["PRODUCTS", "UNKNOWN", "Certainty", "Finding", "Identity", "identify", "medium", "medium_of"]


def identify(request: Request, *, source: str) -> Identity:
    """Name the host that sent a request and the NAS that it is about.

    source: the packet's source address as text. Costs 5 to 35 µs; meant for new devices and for a second look
    once in a while, not for each packet. Never raises.
    """
    sight = Sight(request, source)
    nas = name_nas(sight)
    if not sight.proxy_states:
        return Identity(None, nas, forwarded=False)
    if nas is not None and sends_own_proxy_state(nas.product, sight):
        return Identity(None, _alone(nas, sight), forwarded=False)
    return Identity(name_forwarder(sight), nas, forwarded=True)


def _alone(nas: Finding, sight: Sight) -> Finding:
    """The NAS whose own Proxy-State was found: a proxy's looks alike, so only the source address makes it certain."""
    if sight.sent_by_nas():
        return nas
    return replace(nas, certainty=Certainty.PROBABLE, evidence=(*nas.evidence, "Proxy-State of its own"))
