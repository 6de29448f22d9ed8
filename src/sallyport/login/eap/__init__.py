"""EAP that ends here: the conversations of `radius.eap`, and who answers their questions.

    login      a conversation and what is known of its login
    rounds     takes the end of a conversation through the steps of the pipeline
    service    one Access-Request: finds its conversation, goes on with it, and returns what the login comes to
    preferred  the method by which each station logged in last
    verifiers  answer the questions of a conversation from the passwords in memory, or by asking the directory

A domain whose first factor is `local` or `ldap` ends EAP; `radius` passes it on as it is. What the first factor cannot
check is not offered. Each round is answered at once and needs no record. The verdict on a wrong password is a decision
like any other: its event and its lock-out are on disk before the client hears of it inside EAP, so that nobody guesses
unseen by never letting a conversation end; what follows until EAP-Failure says nothing new. A right one is decided when
EAP has succeeded: then the rules apply, and a second factor is waited for while the client waits for EAP-Success.

The outer identity finds the domain. Who logs in is told inside the tunnel or by the certificate; a realm there must be
the same domain's.
"""
