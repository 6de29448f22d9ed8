"""MS-CHAP against Active Directory. A domain controller checks the client's response, and is asked through Samba's
winbind.

    protocol  the codec of questions to `ntlm_auth` and its answers
    helpers   the running `ntlm_auth` processes; each answers one question at a time
    texts     the reason and the remedy for an error text
    checker   checks the response of one login

A domain controller returns whether the response matches the password, and the hash of the password's NT hash. The
answer to the client needs nothing else. The host must have joined the domain; its winbindd has the secure channel to
the domain controller. `ntlm_auth` is Samba's program for RADIUS servers. Its helper protocol makes it unnecessary to
start a process for each login.

Each login is asked about only once, because Active Directory counts every wrong response for its lock-out. Therefore
only one of the names that the client may have hashed is tried, and a question whose answer was lost is not repeated.
"""
