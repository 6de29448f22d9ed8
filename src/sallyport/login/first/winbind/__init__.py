"""MS-CHAP against Active Directory: a domain controller checks the client's response, through Samba's winbind.

    protocol  questions to `ntlm_auth` and its answers, in octets
    helpers   the running `ntlm_auth` processes, of which each answers one question at a time
    texts     the reason and the remedy for the text of a refusal
    checker   one login from its response to a Reason

A domain controller returns whether the response matches the password, and the hash of the password's NT hash. The
answer to the client needs nothing else. The host has joined the domain, and its winbindd holds the machine's secure
channel. `ntlm_auth` is Samba's program for RADIUS servers, and its helper protocol saves a process for each login.

Each login is one question: Active Directory counts every wrong response for its lock-out. So there is no second guess
at the name that the client has hashed, and a question whose answer was lost is not asked again.
"""
