"""The runs in which a directory agent sends the entries of a directory. `service` collects them in a file."""
