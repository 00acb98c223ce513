"""The page's own files, and the policy that lets the browser use nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

STYLES = ("uPlot.min.css", "base.css", "parts.css", "samples.css", "print.css")
EARLY = ("theme.js",)
"""Runs before the page is drawn, so that it is never drawn in the other theme."""
LIBRARY = ("uPlot.iife.min.js",)
"""uPlot 1.6.32 as npm has it, MIT: its licence lies beside it, and in the page."""
OURS = ("text.js", "charts.js", "samples.js", "page.js")


@cache
def asset(name: str) -> str:
    """One of our files."""
    return files("eyas.report.page").joinpath("static", name).read_text(encoding="utf-8")


@cache
def joined(*names: str) -> str:
    """Several as one.

    Raises:
        ValueError: if a file could end the element that it stands in.
    """
    whole = "\n".join(asset(name).strip() for name in names) + "\n"
    if any(end in whole.lower() for end in ("</script", "</style", "<!--")):
        raise ValueError(f"{', '.join(names)}: a file of the page holds a tag that would end it early")
    return whole


def hashed(content: str) -> str:
    """How a policy names one inline script or style, by its content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode('utf-8')).digest()).decode('ascii')}'"


def policy() -> str:
    """The Content-Security-Policy: our style, our three scripts, and nothing from anywhere.

    Trusted types without any policy: a browser that knows them lets no script make elements of text.
    """
    scripts = " ".join(hashed(joined(*names)) for names in (EARLY, LIBRARY, OURS))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {hashed(joined(*STYLES))}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
