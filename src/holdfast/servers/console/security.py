"""What may a page of the console do in a browser, and which requests are its own?"""

from hmac import compare_digest
from urllib.parse import urlsplit

from starlette.requests import Request

from holdfast.servers.answers import ALWAYS, TransportError

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    **ALWAYS,
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Vary": "Cookie, HX-Request",
}


def same_token(ours: str, theirs: str) -> bool:
    return bool(theirs) and compare_digest(ours.encode(), theirs.encode())


def refuse_other_sites(request: Request, base_url: str | None = None) -> None:
    """A form of ours is sent from here: what a browser says about where it comes from must agree.

    `base_url` is where people reach this, where something stands before it that calls it by another name.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "").lower()
    own = {f"http://{host}", f"https://{host}", _origin_of(base_url or "")}
    if site not in ("same-origin", "none") or (origin is not None and origin.lower() not in own):
        raise TransportError(
            403, "this form was sent from another site", "open the page here and decide there"
        )


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
