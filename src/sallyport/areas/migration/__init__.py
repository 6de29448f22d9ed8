"""Import of the configuration of other RADIUS servers: `sallyport import`.

    translation  the result of a reader: objects as files of `sallyport apply` have them, and findings
    xml          reads hostile XML into a small tree
    devices      RADIUS clients of a file
    nps          NPS: clients and network policies; `nps_policy` and `nps_pattern` have their conditions, `nps_profile`
                 their profiles, `nps_proxy` the connection request policies, `nps_names` their rules for names
    tables       CSV: network devices of Cisco ISE, and any table with a mapping of columns
    clearpass    Aruba ClearPass: network devices
    freeradius   FreeRADIUS: clients, huntgroups, the users file (`freeradius_users`), lists of MAC addresses, and what
                 cannot be expressed (`freeradius_rest`)
    checking     checks rules against the RADIUS dictionary
    roles        turns the attributes of the answer into roles
    groups       replaces SIDs of groups by the names of groups
    child        runs a reader in a process with limits of time and memory; `reader` is its program
    merging      what an import needs of the store
    cli          the commands: plan first, then `--yes`
    uploads      uploaded files, which have no name
    service      the plan of an uploaded file, and the second upload that writes it

A reader is pure: it gets a file and options, and returns a `Translation`. Each element of the file is in an object or
in a finding. The objects are compared with the store and written by `areas.configuration`, as those of files.

**Nothing becomes wider.** A policy that grants becomes a rule `allow`. If a part of it cannot be expressed, the rule is
disabled. A policy that denies becomes a rule `block`. If a part of it cannot be expressed, the import waits for a
decision of the admin. The last rule blocks everyone, because these servers refuse what matches no policy. The domain
reads its rules as listed (`ruleOrder`), so the order of the old server is kept as it is.
"""
