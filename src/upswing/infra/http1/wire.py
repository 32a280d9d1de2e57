"""How does a whole response look on the wire?"""

from __future__ import annotations

from upswing.errors import Reason

JSON = b"application/json"
_PHRASES = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    207: "Multi-Status",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    417: "Expectation Failed",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}
_LINES = {status: f"HTTP/1.1 {status} {phrase}\r\n".encode() for status, phrase in _PHRASES.items()}
STATUS_BY_REASON = {
    Reason.MALFORMED: 400,
    Reason.NOT_A_NUMBER: 400,
    Reason.TOO_DEEP: 400,
    Reason.TOO_LARGE: 413,
    Reason.CONFLICT: 409,
    Reason.NOT_YOURS: 403,
}
"""The HTTP status of each reason to refuse; the others are 422, and 400 to a model's client."""


def status_line(status: int) -> bytes:
    r"""How a response begins.

    >>> status_line(200), status_line(299)
    (b'HTTP/1.1 200 OK\r\n', b'HTTP/1.1 299 Status\r\n')
    """
    return _LINES.get(status) or b"HTTP/1.1 %d Status\r\n" % status


def encode_response(
    status: int,
    body: bytes,
    content_type: bytes = JSON,
    extra_headers: bytes = b"",
    *,
    keep_alive: bool = True,
    bodiless: bool = False,
) -> bytes:
    r"""A whole HTTP/1.1 response; `bodiless`: to HEAD, with the size of what GET would bring.

    >>> encode_response(200, b"{}", bodiless=True)
    b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n'
    >>> encode_response(204, b"", keep_alive=False)
    b'HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n'
    """
    last = b"" if keep_alive else b"connection: close\r\n"
    if status == 204:  # which has no content, so nothing is said about it
        return b"%s%s%s\r\n" % (status_line(status), extra_headers, last)
    return b"%scontent-type: %s\r\ncontent-length: %d\r\n%s%s\r\n%s" % (
        status_line(status),
        content_type,
        len(body),
        extra_headers,
        last,
        b"" if bodiless else body,
    )
