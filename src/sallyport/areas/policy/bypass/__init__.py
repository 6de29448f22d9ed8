"""MAC authentication bypass admits devices without a supplicant, such as printers and cameras, by their MAC address.

    match    detects bypass requests, and reads MAC addresses in all notations; no I/O
    service  keeps the lists of all domains in memory, and replaces them after each change
    station  the entries of the lists; `repo` has their SQL
    psk      the attributes of a pre-shared key for each product
    unknown  counts the stations that ask for admission and are on no list; `unknown_service` and `unknown_repo` store
             them. The login decides about them (`login/pipeline`)
    vendors  the vendors of MAC addresses

A MAC address is no secret. So a station is admitted only if an admin has added it to the list of its domain, or if the
domain lets login rules decide about unknown stations and a rule admits it. The request must also have the form in which
a NAS asks for a station (see `match`). Login rules apply; they may set a VLAN or block the station. No second factor is
asked for, because no person is present. Any other station must log in with a name and a password.

Some switches use EAP-MD5. Then the service offers a listed station only this method, and the station sends its address
as the password. The service itself handles the EAP conversation, whatever the domain's first factor is.
"""
