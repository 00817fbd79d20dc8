"""How does a person sign in?"""

from playwright.async_api import Page


async def sign_in(page: Page, person: str) -> None:
    """Where everybody on this machine is who they say; ends on the page that was wanted."""
    await page.get_by_role("button", name=f"Sign in as {person}", exact=True).click()
    await page.get_by_role("button", name="Sign out").wait_for()


async def sign_in_with(page: Page, key: str, secret: str) -> None:
    """Where people show who they are."""
    await page.get_by_label("API key").fill(key)
    await page.get_by_label("Approver secret").fill(secret)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("button", name="Sign out").wait_for()
