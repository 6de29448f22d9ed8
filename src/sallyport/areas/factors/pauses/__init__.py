"""Pauses of prompts: after "not me", or after prompts without an answer, a person gets no prompt for some minutes.

Otherwise an attacker with the password could send prompts until the person approves one (MFA fatigue). A pause is in
the store, so that a restart or another node does not forget it. It is read only before a prompt: a login without one
costs nothing. A code that is typed with the password needs no prompt, so it is checked during a pause too.

    repo        the pauses in the store
    service     begins, reads and ends pauses
    operations  lists and ends pauses
"""
