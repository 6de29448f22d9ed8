"""The second factor: one login, one prompt, one Accept.

A `conversation` with a provider is a task of its own, one for each login. A request of the same login (see
`session.same_login`) joins it and is answered in the place of the request before; any other request has a conversation
of its own. If the device cannot wait, or the user must type a code, the request is answered with an Access-Challenge.
Its State names a `session`, of which `challenges` keeps the last step with the event, so that the next request
continues it, after a restart too. `calls` asks the provider, again and again where it must. `prompts` limits how often
a user is asked. `shared` does the work of `calls` and `challenges` for several nodes, over the rows of `repo`.
`enrolment` knows which users have a second factor, without prompting them, and `forecast` the result that asking would
have, for monitoring and the preview. `service` ties them together.
"""
