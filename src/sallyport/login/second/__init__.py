"""The second door: one login, one prompt, one Accept.

`conversations` are what goes on with a provider: one for each login, run by a task of its own, whoever waits for it.
A request that is the same login (see `same_login`) joins the conversation and is answered in the place of the one
before it; any other request has a conversation of its own. Where the device cannot wait, or the user must type a
code, the request is answered with an Access-Challenge; its State names a `session`, of which `challenges` keeps the
last step with the event, so that the next request goes on with it, after a restart too. `calls` asks the provider for
as long as it takes. `prompts` bounds how often a user is asked. `enrolment` knows who has a second factor, without
disturbing anybody, and `forecast` what asking would come to: for monitoring and for the preview. `service` ties them
together.
"""
