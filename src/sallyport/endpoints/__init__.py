"""Endpoints: the machines of a domain, the people who use them, and what is assigned to whom.

The people's passwords are the domain's `local` first factor, their one-time-password seeds the second factor of the
provider `totp`.

instances   machines, and how one authenticates there
groups      users together, the instances they are assigned to, and the credential policy of their sessions
users       what admins say of users: fields, secrets, lists, wallets, import
membership  the assignments between the three, with the totals that are kept of them
service     users as a login sees them; totp, page, qr, api: their seeds, and the enrolment of these

The login path asks `EndpointUsers.cached`, which never waits; a user that is not in memory is loaded by `load` once,
also the answer that there is none. Whoever changes a user drops it from memory before it returns, and a changed group
drops its users. What is in memory tells the password, the active groups, and whether there is a confirmed seed, never
the seed: `totp.OneTimeSeeds` reads it for each code and keeps the code's time step, and holds the enrolments that wait.
`page` is what the user sees of one, `qr` draws.

Password policies, wallets and credentials are other areas' matter: `users.peers` says what is needed of them.
"""
