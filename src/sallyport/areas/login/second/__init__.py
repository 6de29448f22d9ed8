"""The second factor. Each login gets one prompt and one Access-Accept, however often its device retransmits.

    service       joins the requests of a login, sends challenges, continues answered challenges
    conversation  a login and its provider: one task, whose result goes to the newest request of the login
    session       a sent challenge, and the State that identifies it
    challenges    keeps the last challenge of each login in memory and in the store
    calls         calls the providers, and repeats failed calls
    prompts       limits the number of prompts for a user
    web_limits    limits the number of pages for logins whose password nobody has checked
    endings       stores what the end of a prompt means for the next prompts of its user
    forecast      finds out which users have a second factor, and predicts the result of asking, without prompting them
    shared, repo  share prompts and challenges between several nodes

A retransmission joins the conversation of its login (`session.same_login`), and its sender gets the answer. If the
device cannot wait, or the user must type a code, the answer is an Access-Challenge. The challenge is stored in the
transaction of the login's event. So the next request can continue the login, even after a restart.
"""
