"""The first factor: the check of a login's password.

    local, none   `password`: an endpoint user's password, in memory; or the forwarding server has checked it
    ldap, radius  `ldap/`, with `winbind/` for MS-CHAP, and `upstream/`: a `Checker` (`checker`) asks another server

`service` runs each domain's checker, by the domain's stored configuration. A checker returns a Reason, and stores its
findings in the login: attributes of the answer, groups. `settings` and `fields` are the admin's side: they check and
store a configuration, and make the checker from it. `trial` tries a first factor.
"""
