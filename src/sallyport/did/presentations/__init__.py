"""Presentations: a holder shows a credential, once, to whoever asked for it.

    issuePR, or a login whose second factor is the wallet, opens a request: a definition and a nonce, for a while
    the wallet polls it, its person agrees, and it sends a presentation that holder, audience and nonce bind to it
    what was sent is verified to the last claim; the request is answered, for good, in the transaction that found the
    credential valid; whoever waits for it wakes

definition  what is asked for, made here or read from somebody else
exchange    whether a credential is that (DIF Presentation Exchange 2.1.1)
evidence    what a submitted presentation proves, in each of its shapes
signing     the keys of holders that are kept here
model       bodies, answers and rows
repo        SQL
waker       wakes who waits for a request, in memory
asking      the verifier's side: requests for an endpoint
service     the holder's side: poll, submit, decline
prompts     requests as the second factor of logins
peers       what is needed of others
api         /api/v1/verifierService/issuePR, /api/v1/walletService/...Presentation...
"""
