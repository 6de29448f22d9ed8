"""Re-authorization: decide live sessions again after a change of rules, roles, tags, stations or groups.

    reauthorization   the values: a run, and a session that it changes
    deciding          decides the login of a live session by the current rules, with the functions of the login path
    repo              SQL for live sessions with the records of their logins, and for runs
    service           previews and runs

An admin previews the changes, and starts a run. Nothing starts by itself. A session changes in one of these ways:

- Its login would be rejected now, or needs a second factor that the login did not have: the device is asked to end the
  session. In monitor mode, no session changes in this way.
- Its login would get other attributes: the device is asked to set them (CoA), or to end the session if the attributes
  cannot be set, or if the admin wishes it.
- It is not certain which rule decides, or the login is no longer recorded: nothing is sent.

The facts of the login come from the session and from the event of its login. From them, a login is made that no device
has sent. It runs the same steps as a real login, so that rules, roles and facts have one meaning.

The node with the lease carries out the runs: it examines the sessions in slices, stores the changes of a slice, sends
the requests at a limited rate, and stores each result. After a restart it continues with the stored changes that have
no result. A device may then get a request twice, which does no harm.
"""
