"""The search for parts of texts by trigrams (pg_trgm)."""

from sallyport.store.model import Tx, Value


class TrigramSearch:
    """The search in a table whose entries are rows with a trigram index on their texts."""

    def find(self, index: str, text: str) -> tuple[str, dict[str, Value]]:
        """Return SQL for the entries that contain a folded text, beginning with `from`. Also return the parameters of
        this SQL."""
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return f"{index} where texts like :pattern", {"pattern": f"%{pattern}%"}

    def merge(self, tx: Tx, index: str) -> None:
        """Do nothing, because PostgreSQL merges its index by itself."""
