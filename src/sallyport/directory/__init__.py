"""Directories: the people, groups and units that other systems keep, and how they come to be known here.

    reading, cloud, ldif, runs --Batch of Entry--> imports --> entries --> /ad/ lists, principals --> logins

    dn          distinguished names: their parts, and one form for comparison (RFC 4514)
    entry       what an entry means, wherever it comes from: a person, a group, a unit; and what a reading tells
    ldif        files (RFC 2849)
    reading     LDAP directories, also for the directory agent: without store and web
    cloud       Entra ID and Okta
    readers     from a directory's settings to one of these
    runs, wire  what directory agents send
    schedules   when directories are read by themselves
    imports     jobs in the background: from what was read to the store
    entries     who is there, and who is in which group
    mappings    which attributes become which fields
    principals  what logins are told, from memory
    revoking    who has lost their access

dn, entry, ldif and wire are pure: no store, no web, no trio. Readers make entries of what they find; who applies them
need not know where they come from, and nothing is applied of a reading that did not come to its end.
"""
