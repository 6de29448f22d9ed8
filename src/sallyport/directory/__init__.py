"""Directories: people, groups and units that other systems keep. This package imports them into the store.

A reading is one pass over a directory, of all its entries or of the changes since the last reading. A reading that ends
early changes nothing in the store.

    reading, ldif, runs --Batch of Entry--> imports --> entries --> /ad/ lists, principals --> logins

    dn          distinguished names: their parts, and the form in which they are compared (RFC 4514)
    entry       the entries of any source, interpreted as people, groups and units
    ldif        LDIF files (RFC 2849)
    wire        entries as JSON: between an agent and the service, and on disk
    reading     reads LDAP, Entra ID and Okta, without the store and the HTTP server; the directory agent uses it too
    readers     creates the reader for the settings of a directory
    runs        receives the entries that directory agents send
    schedules   the times at which the service reads a directory
    imports     background jobs that write the entries to the store
    entries     people, groups and memberships in the store
    mappings    the attribute that fills each field; an attribute of `secret_attributes` never fills a field
    principals  groups and units of a principal, cached for logins

dn, entry, ldif and wire use neither the store, the HTTP server nor trio.
"""
