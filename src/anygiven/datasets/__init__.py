"""Real data, one file each: looked for in $ANYGIVEN_DATA, then in the cache, else one sentence says how to get it."""

from anygiven.datasets.files import find_file

__all__ = ["find_file"]
