"""EAP that terminates in this service. `radius.eap` has the conversations; this package answers their questions.

    login      a conversation and the state of its login
    rounds     applies the steps of the pipeline at the end of a conversation
    service    for one Access-Request: finds and continues its conversation, and returns the login's result
    preferred  the method by which each station logged in last
    verifiers  answer the questions of a conversation from the passwords in memory, or by asking the directory

In a domain with the first factor `local` or `ldap`, EAP terminates here; `radius` forwards it unchanged. A method that
the first factor cannot check is not offered. A round that decides nothing is answered without an event.

A wrong password is decided at once: its event and its lock-out are on disk before the client learns the result inside
EAP. Therefore a client that never completes a conversation cannot guess passwords unrecorded. The further rounds until
EAP-Failure are not recorded. A correct password is decided when EAP has succeeded: then the rules apply, and the client
waits for EAP-Success until the second factor is answered.

The outer identity determines the domain. The user's name comes from the tunnel or the certificate; if it has a realm,
this must belong to the same domain.
"""
