"""EAP that ends in this service: the conversations of `radius.eap`, and the answers to their questions.

    login      a conversation and the state of its login
    rounds     takes the end of a conversation through the steps of the pipeline
    service    one Access-Request: finds its conversation, continues it, and returns the result of the login
    preferred  the method by which each station logged in last
    verifiers  answer the questions of a conversation from the passwords in memory, or by asking the directory

In a domain with the first factor `local` or `ldap`, EAP ends here; `radius` forwards it unchanged. A method that the
first factor cannot check is not offered. Each round is answered at once and needs no record. The verdict on a wrong
password is a decision like any other: its event and its lock-out are on disk before the client learns it inside EAP. So
a client that never ends a conversation cannot guess without a record. The rounds until EAP-Failure add nothing. A right
password is decided when EAP has succeeded: then the rules apply, and the client waits for EAP-Success until the second
factor is answered.

The outer identity finds the domain. The tunnel or the certificate names the user; a realm there must belong to the same
domain.
"""
