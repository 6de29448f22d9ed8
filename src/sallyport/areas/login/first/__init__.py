"""The first factor checks the password or other credentials of a login.

    local   `password.check_password`: checks the password of an endpoint user in memory (PAP, CHAP, MS-CHAP)
    none    `password`: trusts that the forwarding server has checked the password
    ldap    `ldap/`: asks a directory; for MS-CHAP, `winbind/` asks a domain controller
    radius  `upstream/`: asks another RADIUS server

`ldap` and `radius` implement the protocol `checker.Checker`. Each check returns a `FirstFactorResult` with the reason,
the user's groups and the attributes of the answer. It does not change the login. `service` keeps one checker for each
domain, created from the stored configuration. `settings` and `fields` validate and store the configuration that an
admin sets. `trial` tests a first factor for an admin. `cli` adds the commands of first factors to `sallyport domain`.
"""
