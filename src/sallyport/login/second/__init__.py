"""The second factor: each login has one prompt and one Access-Accept.

Each login has a `conversation` with the provider, which runs in its own task. A further request of the same login (see
`session.same_login`) joins it, and gets the answer instead of the previous request. If the device cannot wait, or the
user must type a code, the request is answered with an Access-Challenge. Its State identifies a `session`. `challenges`
stores the last step of the session with the event, so that the next request can continue the session, even after a
restart.

`calls` calls the provider, repeatedly if necessary. `prompts` limits the number of prompts for a user. `shared` does
the work of `calls` and `challenges` for several nodes, with the rows of `repo`. `enrolment` determines which users have
a second factor, without prompting them. `forecast` determines the result that asking would have, for monitoring and the
preview. `service` combines these parts.
"""
