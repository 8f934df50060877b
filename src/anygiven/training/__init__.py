"""The loop, its settings, checkpoints and resume."""

from anygiven.training.loop import Outcome, Progress, Watch, train
from anygiven.training.settings import Settings

__all__ = ["Outcome", "Progress", "Settings", "Watch", "train"]
