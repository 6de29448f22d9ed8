"""What every area may use and what uses none of them: errors, settings, secrets, time, names, the log."""
