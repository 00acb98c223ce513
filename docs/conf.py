"""How the documentation is built: `make docs`. Sphinx reads this file; its keys are explained on sphinx-doc.org."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import made
from made import nav

from eyas import __version__

project = "eyas"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["made", "_static"]

default_role = "code"  # a single backtick in a docstring is code, as on the pages
smartquotes = False  # two dashes are an option's, quotes a program's
highlight_language = "none"  # indented blocks are output of all kinds
myst_heading_anchors = 4
myst_links_external_new_tab = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False
napoleon_use_rtype = False  # the signature has it

html_theme = "furo"
html_title = f"eyas {release.partition('+')[0]}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
html_theme_options = {"top_of_page_buttons": [], "footer_icons": []}


def _read(app: Sphinx, page: str, content: list[str]) -> None:
    """Put what is made from the code into a page, and the navigation into the first one."""
    text = made.fill(content[0])
    content[0] = f"{text}\n\n{nav.toctrees(text)}\n" if page == app.config.root_doc else text


def setup(app: Sphinx) -> None:
    """What Sphinx calls when it has read this file."""
    app.connect("source-read", _read)
