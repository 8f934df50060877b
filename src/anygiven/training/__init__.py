"""The loop, its settings, checkpoints and resume."""

from anygiven.training.loop import Data, Outcome, Progress, train
from anygiven.training.settings import Settings

__all__ = ["Data", "Outcome", "Progress", "Settings", "train"]
