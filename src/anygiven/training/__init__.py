"""The loop, its settings, checkpoints and resume."""

from anygiven.training.loop import Data, Outcome, Progress, Rows, Watch, train
from anygiven.training.settings import Settings

__all__ = ["Data", "Outcome", "Progress", "Rows", "Settings", "Watch", "train"]
