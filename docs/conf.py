"""How Sphinx builds the documentation: `make docs`, or sphinx-build -W docs build/docs/html."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))

os.environ.setdefault("MPLBACKEND", "Agg")

from kernelweave import __version__  # noqa: E402

project = "kernelweave"
author = "The kernelweave developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without a network
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
    "myst_parser",
    "plain_text_formulas",
    "api_pages",
    "page_tools",
    "offline_links",
]

# other projects' indexes are fetched only when asked for: the build needs no network
if os.environ.get("KERNELWEAVE_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3/", None),
        "numpy": ("https://numpy.org/doc/stable/", None),
        "sklearn": ("https://scikit-learn.org/stable/", None),
    }

exclude_patterns = ["_build", "**.ipynb", "**.py", "gallery/**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
# the path of a checkout may contain spaces; the names of the examples do not
suppress_warnings = ["config.cache", "sphinx_gallery.space_in_filename"]
nitpicky = True
# attributes that numpydoc lists are described where they are listed
nitpick_ignore_regex = [("py:obj", r"kernelweave\..*"), ("py:.*", r"(sklearn|numpy|matplotlib|torch)\..*")]

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

default_role = "code"
autosummary_generate = True
# two names that differ in case only would be one file on some systems
autosummary_filename_map = {"kernelweave.solvers.certificate": "kernelweave.solvers.certificate-function"}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("kernelweave",),
    "backreferences_dir": "api/generated/used_in",
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "plot_gallery": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = "kernelweave"
html_static_path = ["_static"]
html_css_files = ["kernelweave.css"]
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "start": [], "decisions": [], "api/generated/*": []}
html_theme_options = {
    "logo": {"text": "kernelweave", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
}


def setup(app: object) -> None:
    """Show flow charts as their source, which no lexer knows."""
    from pygments.lexers.special import TextLexer

    app.add_lexer("mermaid", TextLexer)  # type: ignore[attr-defined]
