"""MAC authentication bypass: printers, cameras and telephones that have no supplicant, let in by their address.

    match    requests that ask for it, and notations of a MAC address: no I/O
    service  the lists of all domains in memory, replaced as a whole after each change
    repo     SQL

A MAC address is no secret, so this is never what happens by default: a station is let in where an admin has put it on
the list of its domain, and only where the request is one that a NAS makes in its name (`match`). Such a login goes
through the login rules, which give it its VLAN or block it, and is asked for no second factor: nobody is there.
Whoever is not on the list logs in like anybody else, with a name and a password.

Some switches ask by EAP-MD5: then a station on the list is offered that method alone, and answers with its address
as the password; such a conversation ends here, whatever the domain's first factor is.
"""
