"""Factors of people that the service checks itself.

    denials       what follows when a person says of a login that it is not theirs
    pauses        people who get no prompt for some minutes
    passkeys      passkeys (WebAuthn): their registration, their assertions, and what the store has of them
    bypass_codes  codes that an operator makes for a person without another factor
    remembered    stations at which a person is not asked for the second factor for a time
    names         the rows to delete when the name of a user becomes free
    stepup        logins that wait until their person proves on a page that the login is theirs

A person is named by a domain and a user name, as logins name a person. So a factor belongs to people of every source:
endpoint users, people of a directory, and people of an identity provider. If the name of an endpoint user becomes free,
the factors under this name are deleted, so that the next user of the name does not get them.
"""
