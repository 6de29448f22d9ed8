"""The pages `/mfa` and `/mfa/CODE`: a person proves there that a waiting login is theirs (a step-up, see `stepup`).

    factor   the factors that a page offers: passkey, authenticator app, bypass code
    mfa      the pages

GET shows a button and looks nothing up, so a mail scanner or a preview that opens the link learns and changes nothing.
The button sends the code by POST. This binds the step-up to the browser. The answer names the login, and offers the
factors that the person has. The forms of this page name the step-up by its id, and the cookie shows that this browser
has opened it.

A code that is unknown, over, or opened by another browser has one and the same answer.
"""
