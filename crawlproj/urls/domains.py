"""The domain that somebody registered: all names below it cost him nothing, however many
he makes.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tldextract import TLDExtract


@lru_cache(maxsize=1)
def _suffixes() -> TLDExtract:
    """The public suffix list as the library ships it; loaded at first use, since that takes
    9 MB.
    """
    from tldextract import TLDExtract

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def registered_domain(host: str) -> str:
    """`a.b.example.co.uk` -> `example.co.uk`; where the list knows nothing, the last two labels; an
    address is its own.
    """
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        found = _suffixes().extract_str(host)
        if found.domain and found.suffix:
            return f"{found.domain}.{found.suffix}"
        return host if found.suffix else ".".join(host.split(".")[-2:])
    return host
