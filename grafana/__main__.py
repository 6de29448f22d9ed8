"""Write the JSON of all dashboards again."""

from pathlib import Path

from grafana.board import build
from grafana.boards import ALL

DIRECTORY = Path(__file__).with_name("dashboards")


def main() -> None:
    """Write one file for each dashboard."""
    for board in ALL:
        (DIRECTORY / f"{board.name}.json").write_text(build(board), encoding="utf-8")


if __name__ == "__main__":
    main()
