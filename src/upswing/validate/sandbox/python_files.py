"""What does Python itself need of a machine's files? Its libraries, and four devices."""

from __future__ import annotations

import sys
import sysconfig

_LIBRARIES = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


def libraries() -> list[str]:
    """Folders and files that may be read, each named once."""
    own = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    shared = sysconfig.get_config_var("LIBDIR") or ""
    return sorted({path for path in (*own, *sys.path, shared, *_LIBRARIES) if path})
