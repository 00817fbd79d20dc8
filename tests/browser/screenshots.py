"""How does every page look? `python -m tests.browser.screenshots FOLDER`, or `make screenshots`.

Writes each page, empty and full, light and dark, on a desktop and on a phone, to be looked at.
"""

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from tests.browser.chromium import chromium
from tests.browser.filling import fill
from tests.browser.paths import EVERYBODYS, FULL
from tests.browser.signing_in import sign_in
from tests.browser.visitor import DESKTOP, PHONE, visitor
from tests.browser.world import World, config, served

SCREENS = {"desktop": DESKTOP, "phone": PHONE}
SCHEMES = ("light", "dark")


async def screenshots(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium())
        with tempfile.TemporaryDirectory() as held:
            (Path(held) / "empty").mkdir()
            async with served(config(Path(held) / "empty")) as world:
                written += await _all(browser, world, EVERYBODYS, folder, "empty-")
            async with served(config(Path(held))) as world:
                made = await fill(world)
                pages = {name: path.format(**made) for name, path in FULL.items()}
                written += await _all(browser, world, pages, folder, "")
        await browser.close()
    return written


async def _all(
    browser: Browser, world: World, pages: Mapping[str, str], folder: Path, before: str
) -> list[Path]:
    written = []
    for screen, size in SCREENS.items():
        for scheme in SCHEMES:
            look = {
                "viewport": size,
                "color_scheme": scheme,
                "device_scale_factor": 2 if size is PHONE else 1,
            }
            came = await visitor(browser, world.url, **look)
            page = await came.page("/sign-in")
            shown = {"sign-in": "", **pages}
            for name, path in shown.items():
                if path:
                    await page.goto(world.url + path)
                written.append(folder / f"{before}{name}-{screen}-{scheme}.png")
                await page.screenshot(path=written[-1], full_page=True)
                if not path:
                    await sign_in(page, "ana")
            await came.context.close()
            for fault in came.faults:
                print(f"{screen} {scheme}: {fault}", file=sys.stderr)
    return written


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots")
    written = asyncio.run(screenshots(folder))
    print(f"{len(written)} pictures are in {folder}")


if __name__ == "__main__":
    main()
