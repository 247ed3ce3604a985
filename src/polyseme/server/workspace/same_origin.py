"""Refuse requests that come from the page of another site.

    server.workspace.corpus_apps  ->  server.workspace.same_origin  ->  HttpError

A page of any site can make a browser send requests to localhost. Two things tell them apart: the headers
Origin and Sec-Fetch-Site, which scripts cannot change, name the page; and the header Host names the address
that the browser believes to talk to, which is a foreign name if somebody's domain name was pointed to
127.0.0.1 (DNS rebinding). With an API key any Host is fine: a foreign page does not know the key.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from polyseme.server.http.limits import HttpError

OWN_SITES = ("same-origin", "none")  # none: the user typed the address


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_same_origin(headers: Iterable[tuple[bytes, bytes]], *, has_key: bool) -> None:
    """Raise an HttpError for a request of another site's page.

    Args:
        headers: The headers of the request; their names are in lower case.
        has_key: Whether requests need an API key.

    """
    values: dict[str, list[str]] = {"host": [], "origin": [], "sec-fetch-site": []}
    for name, value in headers:
        values.get(name.decode("latin-1"), []).append(value.decode("latin-1").strip().lower())
    hosts = values["host"]
    if len(hosts) != 1 or (not has_key and not is_loopback(_parse_host(hosts[0]))):
        raise _refuse(
            "Without an API key the workspace answers requests to localhost and 127.0.0.1 only.",
            "foreign_host",
        )
    is_own = all(_parse_origin(origin) == hosts[0] for origin in values["origin"])
    if not is_own or not set(values["sec-fetch-site"]) <= set(OWN_SITES):
        raise _refuse(
            "The workspace takes requests of its own page only, not of other sites.", "foreign_origin"
        )


def _parse_host(host: str) -> str:
    """The host name of a Host header, without its port; "" if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _parse_origin(origin: str) -> str | None:
    """Host and port of an Origin header as a Host header has them; None for "null" and what is no origin."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc if parts.scheme in ("http", "https") and parts.netloc else None


def _refuse(message: str, code: str) -> HttpError:
    return HttpError(403, "forbidden", message, code=code)
