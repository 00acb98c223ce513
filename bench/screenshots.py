"""Pictures of a report for the docs: the same page in both themes.

    python bench/screenshots.py REPORT.html [--out docs]

Writes report-light.png and report-dark.png, 1280 wide, from the top to the end of the chart of dollars (of the yield table where
there is none), and says how large they are. Needs playwright, and Chromium on the PATH. Exit 1 if a picture has 400 kB or more.
"""

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

WIDE = 1280
MOST_BYTES = 400_000
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]


def picture(browser: Browser, report: Path, theme: str, out: Path) -> int:
    """One theme; returns the bytes of its picture."""
    page = browser.new_page(viewport={"width": WIDE, "height": 1000}, color_scheme=theme, reduced_motion="reduce")
    page.goto(report.resolve().as_uri(), wait_until="load")
    last = page.locator("#cost figure .readout, #yield").last
    box = last.bounding_box()
    height = int(box["y"] + box["height"]) + 10
    page.set_viewport_size({"width": WIDE, "height": height})
    page.screenshot(path=out, clip={"x": 0, "y": 0, "width": WIDE, "height": height})
    page.close()
    return out.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    given = parser.parse_args()
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if path is None:
        sys.exit("no Chromium on the PATH: apt-get install chromium")
    large = False
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=SWITCHES)
        for theme in ("light", "dark"):
            out = given.out / f"report-{theme}.png"
            size = picture(browser, given.report, theme, out)
            large |= size >= MOST_BYTES
            print(f"{out}: {size:,} bytes")
        browser.close()
    sys.exit(1 if large else 0)


if __name__ == "__main__":
    main()
