"""Which connections did a test leave open?

Nobody can close a transport whose event loop is closed. The garbage collector says so when it comes by, which is
in another test: so they are counted as they are made.
"""

import asyncio.selector_events
import functools
import weakref

_made = weakref.WeakSet()


def count_transports():
    kind = asyncio.selector_events._SelectorTransport
    init = kind.__init__

    @functools.wraps(init)
    def counted(self, *arguments, **options):
        _made.add(self)
        init(self, *arguments, **options)

    kind.__init__ = counted


def open_transports(*, orphaned):
    """Those of asyncio's own event loop; `orphaned`: their loop is closed."""
    return [
        each
        for each in list(_made)
        if getattr(each, "_sock", None) is not None and (not orphaned or each._loop.is_closed())
    ]


def forget(transports):
    """Close these, so that no other test hears of them."""
    for each in transports:
        sock, each._sock = each._sock, None
        sock.close()
        _made.discard(each)
