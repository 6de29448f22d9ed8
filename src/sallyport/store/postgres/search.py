"""Substring search by trigrams (pg_trgm)."""

from sallyport.store.model import Tx, Value


class TrigramSearch:
    """Substring search in one table. The rows of the search index have a trigram index on their texts."""

    def find(self, index: str, text: str) -> tuple[str, dict[str, Value]]:
        """Return SQL for the entries that contain a text, and the parameters of the SQL. The SQL is the part of a
        select statement after `from`: a table and a condition. text: must be case-folded."""
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return f"{index} where texts like :pattern", {"pattern": f"%{pattern}%"}

    def merge(self, tx: Tx, index: str) -> None:
        """Do nothing, because PostgreSQL merges its index by itself."""
