"""The search for parts of texts by trigrams (pg_trgm)."""

from sallyport.store.model import Tx, Value


class TrigramSearch:
    """Entries are rows of a table with a trigram index on its texts."""

    def find(self, index: str, text: str) -> tuple[str, dict[str, Value]]:
        """Return SQL from `from` on for the entries that contain a folded text, and its parameters."""
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return f"{index} where texts like :pattern", {"pattern": f"%{pattern}%"}

    def merge(self, tx: Tx, index: str) -> None:
        """Do nothing: PostgreSQL merges its index by itself."""
