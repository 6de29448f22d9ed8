"""Directories: the people, groups and units that other systems keep, and their import into the store.

    reading, ldif, runs --Batch of Entry--> imports --> entries --> /ad/ lists, principals --> logins

    dn          distinguished names: their parts, and one form for comparison (RFC 4514)
    entry       the meaning of an entry, wherever it comes from: a person, a group, a unit
    ldif        files (RFC 2849)
    wire        entries in JSON, between an agent and the service, and on disk
    reading     LDAP directories, also for the directory agent, Entra ID and Okta: without store and web
    readers     from a directory's settings to one of these
    runs        readings that directory agents send
    schedules   when directories are read
    imports     jobs in the background: from a reading to the store
    entries     people, groups and memberships in the store
    mappings    which attributes become which fields; never those of `secret_attributes`
    principals  groups and units of a principal, in memory, for logins

dn, entry, ldif and wire are pure: no store, no web, no trio. A reading that stops before its end changes nothing.
"""
