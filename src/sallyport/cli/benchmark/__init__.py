"""`sallyport bench`: how many logins this machine can decide, beside the figures of the documentation.

The service runs as on any machine: in a process of its own (`service`), with a new data directory, on loopback. Other
processes send the load. `traffic` sends RADIUS requests, `supplicant` is the station of an EAP login, and `lists` reads
pages of the API. `measure` runs the kinds of load one after the other. Each kind keeps a fixed number of requests
outstanding, so the service decides how many are answered.

A rate is a lower limit if the load generator had no processor time left (`Phase.is_at_least`). The service's processor
time for each request does not depend on that. So `capacity` computes with the processor time. Its formula is that of
the page docs/operate/capacity.md. `figures.toml` has the figures of the page.
"""
