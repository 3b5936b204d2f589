"""The registered domain of a host: the names below it cost their owner nothing, however many."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tldextract import TLDExtract


@lru_cache(maxsize=1)
def _suffixes() -> TLDExtract:
    """The public suffix list as tldextract ships it; loaded at first use, since it takes 9 MB."""
    from tldextract import TLDExtract

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def registered_domain(host: str) -> str:
    """The registered domain: `a.b.example.co.uk` -> `example.co.uk`.

    It is the last two labels where the list knows no suffix, and the host itself if that is an
    address or a bare suffix.
    """
    if _is_address(host):
        return host
    found = _suffixes().extract_str(host)
    if found.domain and found.suffix:
        return f"{found.domain}.{found.suffix}"
    if found.suffix:
        return host
    return ".".join(host.split(".")[-2:])


def is_public_suffix(name: str) -> bool:
    """Whether anybody may register names below it: `si`, `co.uk`, `github.io`."""
    if _is_address(name) or name == "localhost":
        return False
    found = _suffixes().extract_str(name)
    return not found.domain or "." not in name


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
