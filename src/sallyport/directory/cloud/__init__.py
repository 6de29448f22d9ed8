"""Cloud directories, read through their public APIs with the credentials of an application.

    client  an API's pages, with what it says of its limits obeyed
    graph   Microsoft Graph: the users and groups of Entra ID, by delta queries
    okta    Okta: by its Users and Groups APIs

They have no distinguished names: an entry is named "id:" and its identifier. What an entry holds is called as in LDAP,
so that one mapping of fields serves all directories.
"""

from typing import Final

BY_ID: Final = "id:"
"""Before the identifier of an entry that has no distinguished name."""
