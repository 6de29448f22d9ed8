"""Read directories: LDAP, Entra ID and Okta. The package uses neither the store nor the HTTP server, because the
directory agent reads LDAP with it too.

    fields      checks an admin's settings: URLs, names, filters, certificates
    search      search filters (RFC 4515), the attributes to request, and the kind of a directory
    requests    the octets of LDAP requests
    answers     decodes and limits a server's answers
    server      opens a checked, encrypted stream to the server of a URL
    connection  the LDAP conversation over that stream: bind, search, pages
    reader      reads an LDAP directory once
    api         the pages of a cloud directory's HTTP API, within its rate limit
    graph       Microsoft Graph: the users and groups of Entra ID, by delta queries
    okta        Okta: users and groups, by its Users and Groups APIs

Cloud directories are read through their public APIs with the credentials of an application. They have no distinguished
names, so the name of an entry is "id:" followed by its identifier. Their attributes are renamed to the LDAP names, so
that one field mapping works for all directories.
"""

from sallyport.base.errors import SallyportError


class ReadError(SallyportError):
    """The error for a directory that could not be read completely. After this error, the import removes no entries. The
    message is for an admin and has no secrets.

    retry_after_s: how many seconds to wait before the next attempt, as the directory requested by Retry-After. It is 0
    without such a request.
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotAllowed(ReadError):
    """The error for a request that the rights of the application or token do not allow (HTTP 403)."""
