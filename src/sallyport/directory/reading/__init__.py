"""Read directories: LDAP, Entra ID and Okta. Without store and web, since the directory agent reads LDAP too.

fields      the types of what an admin configures: URLs, names, filters, certificates
search      search filters (RFC 4515), the entries and attributes that are asked for, the kind of a directory
answers     limits of the octets, attributes and values of a server's answers
server      from a URL to an open, checked, encrypted stream
connection  the LDAP conversation over that stream: bind, search, pages; libldap does it, through bonsai
reader      one reading of an LDAP directory
api         the pages of a cloud directory's HTTP API, at the rate that it allows
graph       Microsoft Graph: the users and groups of Entra ID, by delta queries
okta        Okta: by its Users and Groups APIs

libldap connects, and shakes hands for TLS, while it holds the interpreter: a directory that hangs would stop the
whole service. So the network is ours (`server`), with its time limits, its check of the addresses and Python's TLS;
libldap speaks to a socket of this very process, behind which `connection` hands the octets on.

Cloud directories are read through their public APIs with the credentials of an application. They have no distinguished
names: an entry is named "id:" and its identifier. Their attributes get the names that LDAP has for them, so that one
mapping of fields serves all directories.
"""

from sallyport.base.errors import SallyportError


class ReadError(SallyportError):
    """A reading ended early; nothing that it has not mentioned counts as removed. The message is for an admin, without
    secrets.

    retry_after_s: seconds that the directory asks the reader to wait; 0 if it does not say.
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
