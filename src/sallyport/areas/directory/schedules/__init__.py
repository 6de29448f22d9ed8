"""The times at which the service reads a directory. `schedule` computes them, `service` queues the jobs."""
