"""Directories: the people, groups and units that other systems keep, and their import into the store.

    reading, ldif, runs --Batch of Entry--> imports --> entries --> /ad/ lists, principals --> logins

    dn          distinguished names: their parts, and one form for comparison (RFC 4514)
    entry       the entries of any source, interpreted as people, groups and units
    ldif        LDIF files (RFC 2849)
    wire        entries as JSON: between an agent and the service, and on disk
    reading     readers of LDAP (the directory agent has them too), Entra ID and Okta, without store and web
    readers     the reader for a directory's settings
    runs        readings that directory agents send
    schedules   times at which the service reads a directory
    imports     background jobs that write a reading to the store
    entries     people, groups and memberships in the store
    mappings    which attributes become which fields; never those of `secret_attributes`
    principals  groups and units of a principal, cached for logins

dn, entry, ldif and wire are pure: no store, no web, no trio. A reading that stops before its end changes nothing.
"""
