"""Writes the dashboards' JSON anew."""

from pathlib import Path

from grafana.board import build
from grafana.boards import ALL

DIRECTORY = Path(__file__).with_name("dashboards")


def main() -> None:
    """One file for each dashboard."""
    for board in ALL:
        (DIRECTORY / f"{board.name}.json").write_text(build(board), encoding="utf-8")


if __name__ == "__main__":
    main()
