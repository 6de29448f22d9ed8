"""What the login rules are told of a login."""

from sallyport.directory.principals.service import NOBODY
from sallyport.login.identity import kind
from sallyport.login.membership import both
from sallyport.login.model import Login
from sallyport.policy.rules.match import Facts
from sallyport.vendors import medium


def facts_of(login: Login) -> Facts:
    """Of a login whose first factor is passed, and whose sender the inventory knows."""
    device, imported = login.device, login.imported or NOBODY
    return Facts(
        user=login.user,
        kind=kind(login),
        groups=both(login.found.groups, imported.groups),
        ous=both(login.found.ous, imported.ous),
        client=login.client.name,
        source=login.source[0],
        nas=device.client_ip,
        product=device.device_type,
        nas_product=device.nas_device_type,
        medium=medium(login.request),
        station=login.station,
        service_type=login.service_type,
        at=login.at,
        names=login.names,
    )
