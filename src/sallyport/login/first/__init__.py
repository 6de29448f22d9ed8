"""The first factor: who checks the password of a domain's logins.

    local   an endpoint user's password, in memory: `password`
    none    the forwarding server has checked it already: `vouched`
    others  somebody else is asked, by a `Checker` (`model`): one folder a kind, listed in `kinds`

`service` holds each domain's checker ready, as its configuration in the store says; `pipeline` asks it. A checker says
a Reason, and leaves on the login what it found beside it: attributes of the answer, groups. `trial` tries one out.
"""
