"""Several nodes over one PostgreSQL database."""
