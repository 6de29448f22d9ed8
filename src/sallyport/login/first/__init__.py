"""The first factor. It checks the password or other credentials of a login.

    local   `password`: checks an endpoint user's password in memory
    none    `password`: the forwarding server has checked the password
    ldap    `ldap/`: asks a directory; for MS-CHAP `winbind/` asks a domain controller
    radius  `upstream/`: asks another RADIUS server

The last two are `Checker`s (`checker`). `service` runs the checker of each domain by the domain's stored configuration.
A checker returns a Reason, and stores its findings in the login: groups, and attributes of the answer. `settings` and
`fields` validate and store the configuration that an admin sets, and create the checker from it. `trial` tests a first
factor for an admin.
"""
