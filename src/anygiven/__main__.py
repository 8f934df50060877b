"""python -m anygiven: the command line."""

from anygiven.cli.start import run

run()
