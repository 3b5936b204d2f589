"""Scrapy's decompression of bodies, which stops bombs at DOWNLOAD_MAXSIZE; also for servers that
call a body compressed that isn't, and for responses whose body does not matter.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware

from crawlproj.http.encodings import BROKEN, decode_body, is_compressed

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response


class UnpackingMiddleware(HttpCompressionMiddleware):
    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Decompress a body; one that was never compressed is read as it is.

        If it is compressed, but broken from its start, a page has no content and fails; a redirect
        or an error is what its status says.
        """
        try:
            return super().process_response(request, response)
        except (OSError, struct.error, zlib.error, *BROKEN):
            encoding = b",".join(response.headers.getlist("Content-Encoding")).decode("latin-1")
            body = decode_body(response.body, encoding, self._max_size or len(response.body))
            if 200 <= response.status < 300 and (not body or is_compressed(body, encoding)):
                raise
            headers = response.headers.copy()
            del headers["Content-Encoding"]
            return response.replace(body=body, headers=headers)
