"""The groups and organizational units of a principal, as the login rules see them."""

from dataclasses import replace

from sallyport.directory.principals.service import NOBODY, UNCLEAR, Membership, membership
from sallyport.domains.model import Domain, FirstFactor
from sallyport.endpoints.model import name_key
from sallyport.endpoints.repo import active_groups
from sallyport.store.model import Tx


def both(found: frozenset[str], imported: frozenset[str] | None) -> frozenset[str] | None:
    """What the first factor and the directories say, without a new set where only one says anything. None: it cannot be
    said."""
    if not found or imported is None:
        return imported
    return found | imported if imported else found


def kept(tx: Tx, domain: Domain, name: str) -> Membership:
    """What the store says of a name without its realm: what a login of that name would bring now. A directory that is
    asked anew at each login, and not imported, is not asked for this: what it would say is unclear."""
    imported = membership(tx, domain.id, name, (domain.name, *domain.realms))
    if domain.first_factor is FirstFactor.LDAP and imported is NOBODY:
        return UNCLEAR
    own = active_groups(tx, domain.id, name_key(name)) if domain.first_factor is FirstFactor.LOCAL else frozenset[str]()
    return replace(imported, groups=both(own, imported.groups))
