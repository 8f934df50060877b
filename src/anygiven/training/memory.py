"""Memory that a training step frees is kept for the next one.

Each step makes and frees the same large tensors. By default glibc hands them back to the system, and the next step
pays for fresh pages: a fifth of the time on images. The setting is of the whole process and stays after the training;
ANYGIVEN_KEEP_MEMORY=0 in the environment switches it off.
"""

from __future__ import annotations

import ctypes
import os
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # mallopt's names for its settings
LARGE = 2**30


def keep_freed_memory() -> None:
    """Ask glibc to keep what is freed; elsewhere nothing happens."""
    if not sys.platform.startswith("linux") or os.environ.get("ANYGIVEN_KEEP_MEMORY") == "0":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, LARGE)
        mallopt(MMAP_THRESHOLD, LARGE)
