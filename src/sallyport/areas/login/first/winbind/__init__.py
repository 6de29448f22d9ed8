"""MS-CHAP against Active Directory. Samba's winbind asks a domain controller to check the client's response.

    protocol  encodes questions to `ntlm_auth`, and decodes its answers
    helpers   runs the `ntlm_auth` processes; each answers one question at a time
    texts     finds the reason and the remedy for an error text
    checker   checks the response of one login

The host must have joined the domain. Its winbindd has the secure channel to the domain controller. `ntlm_auth` is
Samba's program for RADIUS servers, and its helper protocol lets one process answer many questions.

A domain controller returns whether the response matches the password, and the hash of the password's NT hash. This hash
suffices to create the answer to the client.

winbind is asked only once for each login, because Active Directory counts every wrong response for its lock-out. So
only one spelling of the user name is tried, and a question is not repeated if its answer was lost.
"""
