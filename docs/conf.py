"""The configuration of Sphinx. `make docs` writes the documentation to build/docs."""

import sys
from pathlib import Path

from sallyport import __version__

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # for `reference`, which imports from tests

project = "Sallyport"
copyright = "the authors of Sallyport"
release = version = __version__

extensions = ["myst_parser", "reference"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True
exclude_patterns = ["README.md"]

smartquotes_action = "q"  # quotes only: `--all` in running text must not become a dash

html_theme = "furo"
html_title = f"Sallyport {version}"
html_show_sphinx = False
html_show_copyright = False
