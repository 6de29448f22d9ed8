"""MAC authentication bypass: printers, cameras and telephones without a supplicant are admitted by MAC address.

    match    detection of bypass requests, and notations of a MAC address; no I/O
    service  the lists of all domains in memory, replaced as a whole after each change
    repo     SQL

A MAC address is no secret, so the bypass is never a default. A station is admitted only if an admin has added it to the
list of its domain, and only by a request that a NAS sends in the station's name (`match`). Login rules apply to the
login; they may set a VLAN or block it. No second factor is requested, because no person is present. A station that is
not on the list logs in with a name and a password, like any other.

Some switches use EAP-MD5. The service offers a station on the list only this method, and the station answers with its
address as the password. The service itself handles the EAP conversation, whatever the domain's first factor is.
"""
