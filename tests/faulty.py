"""A double that stands before a real part and does something else in its place, where a test says so."""

from typing import Any


class Faulty:
    """Passes everything on to a part, but for the methods of `instead`."""

    def __init__(self, part: Any) -> None:
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "instead", {})

    def __getattr__(self, name: str) -> Any:
        instead = object.__getattribute__(self, "instead")
        return instead[name] if name in instead else getattr(self.part, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.part, name, value)
