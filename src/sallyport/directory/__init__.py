"""Directories. Other systems keep people, groups and units, which this package imports into the store.

    reading, ldif, runs --Batch of Entry--> imports --> entries --> /ad/ lists, principals --> logins

    dn          distinguished names: their parts, and the form in which they are compared (RFC 4514)
    entry       the entries of any source, interpreted as people, groups and units
    ldif        LDIF files (RFC 2849)
    wire        entries as JSON: between an agent and the service, and on disk
    reading     readers of LDAP (which the directory agent uses too), Entra ID and Okta, without store and web
    readers     the reader for a directory's settings
    runs        readings that directory agents send
    schedules   times at which the service reads a directory
    imports     background jobs that write a reading to the store
    entries     people, groups and memberships in the store
    mappings    say which attributes become which fields; those of `secret_attributes` never do
    principals  groups and units of a principal, cached for logins

dn, entry, ldif and wire use neither store nor web nor trio. A reading that stops before its end changes nothing.
"""
