"""MAC authentication bypass for printers, cameras and telephones that have no supplicant: their MAC address admits
them.

    match    requests that ask for it, and notations of a MAC address: no I/O
    service  the lists of all domains in memory, replaced as a whole after each change
    repo     SQL

A MAC address is no secret, so the bypass is never a default: a station is admitted only if an admin has put it on the
list of its domain, and only by a request that a NAS makes in the station's name (`match`). Such a login passes the
login rules, which give it a VLAN or block it, and is asked for no second factor, since no person is there. A station
that is not on the list logs in like any other, with a name and a password.

Some switches use EAP-MD5: then a station on the list is offered that method alone, and answers with its address as the
password. Such a conversation ends here, whatever the domain's first factor is.
"""
