"""Where the command begins: before anything heavy is imported, so that Ctrl-C at once is quiet too."""

from __future__ import annotations

import signal


def run() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from anygiven.cli.main import run

    run()
