"""The first factor: the check of a login's password.

    local, none   `password`: an endpoint user's password, in memory; or the forwarding server has checked it
    ldap, radius  `ldap/`, with `winbind/` for MS-CHAP, and `upstream/`: a `Checker` (`checker`) asks another server

`service` has each domain's checker at work, as the domain's stored configuration says. A checker returns a Reason, and
sets on the login what it found: attributes of the answer, groups. `settings` and `fields` are the admin's side: they
check and store a configuration, and make the checker from it. `trial` tries a first factor out.
"""
