"""eyas turns prompt sets into training data for the drafters of speculative decoding."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("eyas")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
