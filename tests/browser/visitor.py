"""How does a test look at a page, and what on it is never right?

Whatever the browser complains about fails the test: an error in a script, anything the content security
policy refused, a request that failed or was answered with an error nobody expected.
"""

from functools import cache
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, expect

from tests.npm.installed import packages

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
NARROW = {"width": 360, "height": 740}
BROWSER_MS = 20_000
"""How long a page may take before a test gives up on it; nothing is concluded from how long it took."""
expect.set_options(timeout=BROWSER_MS)
ABORTED = "AbortError: signal is aborted"
LEFT = "net::ERR_ABORTED"
"""A page that is left ends what it was still listening to."""


class Visitor:
    """A person with a browser of their own: their cookies, their screen."""

    def __init__(self, url: str, context: BrowserContext) -> None:
        self.url, self.context = url, context
        self.faults: list[str] = []
        self.expected: set[int] = set()
        """Answers that are not faults in this test, such as 403."""

    async def page(self, path: str = "/") -> Page:
        page = await self.context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)
        await page.goto(self.url + path)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if ABORTED in message.text:  # a stream of a page that is being left
            return
        if message.type == "error" and not (self.expected and "Failed to load resource" in message.text):
            self.faults.append(f"console: {message.text}")

    def _failed(self, request: Request) -> None:
        if request.failure != LEFT:
            self.faults.append(f"request: {request.method} {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.faults.append(f"answer: {response.status} {response.request.method} {response.url}")


async def visitor(browser: Browser, url: str, **screen: Any) -> Visitor:
    screen = {"viewport": DESKTOP, "color_scheme": "light", **screen}
    context = await browser.new_context(service_workers="block", accept_downloads=False, **screen)
    context.set_default_timeout(BROWSER_MS)
    await context.route("**/*", _nowhere_else(url))
    return Visitor(url, context)


def _nowhere_else(url: str) -> Any:
    """No page of ours needs anything from elsewhere."""

    async def routed(route: Any) -> None:
        if route.request.url.startswith(url):
            await route.continue_()
        else:
            await route.abort("blockedbyclient")

    return routed


@cache
def axe_source() -> str:
    return (packages() / "axe-core" / "axe.min.js").read_text()


async def violations(page: Page) -> list[str]:
    """What axe-core calls serious or critical, and where. It is run from outside: the policy lets no page."""
    await page.evaluate(axe_source() + "; undefined")
    found = await page.evaluate(
        "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
    )
    return [
        f"{one['impact']}: {one['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
