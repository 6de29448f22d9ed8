"""Run a command of sallyport whose service looks for removed domains each hour only: `python FILE PROGRAM ARGS`."""

import sys

from sallyport.areas.domains import removal
from sallyport.cli.main import main

if __name__ == "__main__":
    removal.EVERY_S = 3600.0  # type: ignore[misc]
    del sys.argv[0]
    main()
