"""The training loop, readable top to bottom."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath

import torch
from torch import Tensor

from anygiven.errors import AnyGivenWarning, OutputError
from anygiven.heads.smooth import Phase
from anygiven.lattice import Objective
from anygiven.lattice.question import Path
from anygiven.model import AnyOrderModel
from anygiven.training.checkpoint import (
    DamagedCheckpoint,
    Facts,
    OtherTrainingError,
    check_checkpoint_place,
    check_optimizer_tensors,
    load_checkpoint,
    optimizer_tensors,
    restore_optimizers,
    save_checkpoint,
)
from anygiven.training.loss import PathLoss
from anygiven.training.memory import keep_freed_memory
from anygiven.training.optimizers import optimizers_for
from anygiven.training.settings import SCHEDULES, Settings
from anygiven.variables.domains import HIGH, LOG_WIDTH, LOW
from anygiven.variables.rows import Data, Rows

TIME_IS_UP = "time is up"
TIMED_STEPS = 20  # how many steps are timed before the schedule is fitted to the time allowed


@dataclass
class Progress:
    """What the loop reports as it goes."""

    step: int
    max_steps: int
    train_nats: float
    valid_nats: float
    best_nats: float


@dataclass
class Outcome:
    """What a finished run knows about itself."""

    steps: int = 0
    seconds: float = 0.0
    best_nats: float = math.inf
    best_step: int = 0
    stopped: str = ""
    is_cut_short: bool = False  # by the clock, while the validation questions were still answered better and better
    curve: list[tuple[int, float, float]] = field(default_factory=list)  # step, seconds, validation nats


Watch = Callable[[AnyOrderModel, int, float], None]  # model, step, seconds spent


def train(
    model: AnyOrderModel,
    data: Rows,
    valid: Data,
    objective: Objective,
    settings: Settings,
    report: Callable[[Progress], None] | None = None,
    checkpoint: FilePath | None = None,
    fingerprint: str = "",
    watch: Watch | None = None,
    closing: float = 1.0,
    keep_finished: bool = False,
) -> Outcome:
    """Fit the model in place; it ends with the best averaged weights seen on the validation questions.

    `watch` is called beside each validation, with the averaged weights in place; its time does not count. Of the time
    allowed, that of `closing` validations is kept for what the caller does afterwards. The finished run is written to
    the `checkpoint` if an unfinished one was, or if `keep_finished` says so; whoever has saved the model removes it.
    """
    keep_freed_memory()
    if checkpoint:
        check_checkpoint_place(checkpoint)
    run = _Run(model, data, valid, objective, settings, checkpoint, fingerprint, watch, closing)
    run.keeps_finished = keep_finished
    with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []):
        return run.go(report)  # which seeds each step's dropout: the caller's random state is as it was


class _Run:
    """One training run: weights, their running average, the best so far, the optimiser, the clock."""

    def __init__(self, model, data, valid, objective, settings: Settings, checkpoint, fingerprint, watch, closing):
        self.model, self.data, self.objective, self.settings = model, data, objective, settings
        self.checkpoint, self.fingerprint, self.watch, self.watched = checkpoint, fingerprint, watch, 0.0
        self.max_steps = settings.max_steps  # at most, however much time there is
        self.clock = time.process_time if settings.processor_time else time.monotonic
        self.begun, self.closing = self.clock(), closing
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.optimizers = optimizers_for(model, settings)
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.best = {name: p.clone() for name, p in self.average.items()}
        self.device, self.loss = model.device, PathLoss(model)
        self.questions = _validation_questions(valid, objective, settings, self.device)
        weight = getattr(data, "weight", None)
        self.running = None if weight is None else weight.double().cumsum(0)  # rows are drawn as often as they count
        self.outcome, self.step, self.spent = Outcome(), 0, 0.0
        self.train_nats, self.stale = math.nan, 0
        self.evaluating = self.evaluation_seconds = 0.0  # in all, and the last time
        self.keeps_finished = self.has_failed_to_save = False

    def go(self, report: Callable[[Progress], None] | None) -> Outcome:
        self._resume()
        started, saved = self.begun - self.spent, time.monotonic()
        if self.step == 0:
            self._evaluate(0.0)
            self.spent = self.clock() - started - self.watched
        timed_from, timed_step, is_timed = self.spent - self.evaluating, self.step, False
        while self.step < self.settings.max_steps and not self.outcome.stopped:
            self._train_step()
            self.spent = self.clock() - started - self.watched
            # The schedule is fitted to the time allowed by the latest pace: steps or the machine may become slower.
            is_due = self._is_due()
            if self.step - timed_step >= TIMED_STEPS and (is_due or not is_timed):
                training = self.spent - self.evaluating
                self._fit_schedule((training - timed_from) / (self.step - timed_step))
                timed_from, timed_step, is_timed = training, self.step, True
            if is_due:
                self._evaluate(self.spent)
                self.spent = self.clock() - started - self.watched
                if report:
                    report(self._progress())
            self._look_at_the_clock()
            if self.checkpoint and time.monotonic() - saved > self.settings.checkpoint_seconds:
                self._save()
                saved = time.monotonic()
        return self._finish()

    def _train_step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
            for group in optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * self._rate()
        batch = self.data.rows(self._draw_rows())
        objective = self.objective.at(self.step / self.settings.max_steps)
        path, weights = objective.draw(batch.is_present, self.generator)
        torch.manual_seed((self.settings.seed * 1_000_003 + self.step) % 2**63)  # dropout, the same after a resume
        self.loss.train()
        self.model.begin(Phase(self.step, self.settings.energy_warmup, self.settings.energy_regulariser))
        loss = self.loss(self._noised(batch.x).to(self.device), path, weights) / len(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip * len(batch.x[0]) ** 0.5)
        for optimizer in self.optimizers:
            optimizer.step()
        self.step += 1
        self._average()
        value = float(loss.detach())
        self.train_nats = value if math.isnan(self.train_nats) else 0.98 * self.train_nats + 0.02 * value

    def _noised(self, x: Tensor) -> Tensor:
        """Cells (B, N, 4) whose numbers that are points have moved a little on the axis of scores."""
        if not self.settings.noise:
            return x
        is_point = (x[..., LOW] == x[..., HIGH]) & (x[..., LOG_WIDTH] != 0)  # atoms and categories have no width
        moved = self.settings.noise * torch.randn(is_point.shape, generator=self.generator) * is_point
        return x + torch.nn.functional.pad(moved[..., None].expand(*moved.shape, 2), (LOW, LOG_WIDTH - HIGH))

    def _draw_rows(self) -> Tensor:
        size = (self.settings.batch_size,)
        if self.running is None:
            return torch.randint(len(self.data), size, generator=self.generator)
        u = torch.rand(size, generator=self.generator, dtype=torch.float64) * self.running[-1]
        return torch.searchsorted(self.running, u, right=True).clamp(max=len(self.data) - 1)

    def _rate(self) -> float:
        """Linear warm-up, then as the schedule has it."""
        warmup = max(1.0, self.settings.warmup_steps or self.settings.warmup * self.settings.max_steps)
        if self.step < warmup:
            return (self.step + 1) / warmup
        share = (self.step - warmup) / max(1.0, self.settings.max_steps - warmup)
        return SCHEDULES[self.settings.schedule](min(share, 1.0))

    @torch.no_grad()
    def _average(self) -> None:
        keep = min(self.settings.ema, (1 + self.step) / (10 + self.step))
        names, current = zip(*self.model.named_parameters(), strict=True)
        averages = [self.average[name] for name in names]
        torch._foreach_lerp_(averages, [p.detach() for p in current], 1 - keep)  # pyright: ignore[reportPrivateImportUsage]

    def _is_due(self) -> bool:
        """Whether the validation questions are to be asked now."""
        every = max(1, self.settings.max_steps // self._evaluations())
        return self.step >= min(self.outcome.curve[-1][0] + every, self.settings.max_steps)

    def _evaluate(self, seconds: float) -> None:
        started, watched = self.clock(), self.watched
        nats = self._validation_nats()
        self.evaluation_seconds = self.clock() - started - (self.watched - watched)
        self.evaluating += self.evaluation_seconds
        self.outcome.curve.append((self.step, round(seconds, 2), nats))
        if nats < self.outcome.best_nats:
            self.outcome.best_nats, self.outcome.best_step, self.stale = nats, self.step, 0
            self.best = {name: p.clone() for name, p in self.average.items()}
        else:
            self.stale += 1
            patience = max(2, self.settings.patience * self._evaluations() / self.settings.evaluations)
            if self.stale >= patience and self.step - self.outcome.best_step >= self.settings.patience_steps:
                self.outcome.stopped = "no better on the validation questions"

    @torch.no_grad()
    def _validation_nats(self) -> float:
        """Nats per row of the workload's validation questions, under the averaged weights."""
        current = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self._load(self.average)
        self.model.eval()
        total, count = 0.0, 0
        for x, path, weights in self.questions:
            total += float(self.loss(x, path, weights))
            count += len(x)
        if self.watch:
            started = self.clock()
            self.watch(self.model, self.step, self.spent)
            self.watched += self.clock() - started
        self._load(current)
        return total / max(count, 1)

    @torch.no_grad()
    def _load(self, weights: dict[str, Tensor]) -> None:
        for name, p in self.model.named_parameters():
            p.copy_(weights[name])

    def _fit_schedule(self, seconds_per_step: float) -> None:
        if self.settings.max_minutes is not None:
            allowed = self._allowed()
            left = (allowed - self.spent) * (1 - self._evaluations() * self.evaluation_seconds / allowed)
            fits = self.step + int(left / max(seconds_per_step, 1e-9))
            self.settings = replace(self.settings, max_steps=max(1, min(self.max_steps, max(fits, self.step + 1))))

    def _allowed(self) -> float:
        """Seconds, without those that are kept for a last validation and what follows it."""
        allowed = 60 * (self.settings.max_minutes or math.inf)
        return max(allowed - (1 + self.closing) * self.evaluation_seconds, 0.5 * allowed)

    def _look_at_the_clock(self) -> None:
        if self.spent >= self._allowed() and self.step < self.settings.max_steps:
            self.outcome.stopped = self.outcome.stopped or TIME_IS_UP

    def _evaluations(self) -> int:
        """How often the validation questions are asked: so often that they take at most a seventh of the time."""
        if self.settings.max_minutes is None:
            return self.settings.evaluations
        affordable = int(60 * self.settings.max_minutes / 7 / max(self.evaluation_seconds, 1e-9))
        return min(self.settings.evaluations, max(affordable, 2))

    def _progress(self) -> Progress:
        nats = self.outcome.curve[-1][2]
        return Progress(self.step, self.settings.max_steps, self.train_nats, nats, self.outcome.best_nats)

    def _finish(self) -> Outcome:
        self.outcome.steps, self.outcome.seconds = self.step, self.spent
        is_by_clock = self.outcome.stopped == TIME_IS_UP or self.settings.max_steps < self.max_steps
        self.outcome.stopped = self.outcome.stopped or (TIME_IS_UP if is_by_clock else "all steps done")
        if self.outcome.curve[-1][0] < self.step:
            self._evaluate(self.spent)
        self.outcome.is_cut_short = is_by_clock and self.stale < 2
        if self.checkpoint and self.keeps_finished:
            self._save()
        self._load(self.best)
        self.model.eval()
        return self.outcome

    # -------------------------------------------------------------- checkpoints

    def _save(self) -> None:
        assert self.checkpoint is not None
        tensors = {f"current.{name}": p.detach() for name, p in self.model.named_parameters()}
        tensors |= {f"average.{name}": p for name, p in self.average.items()}
        tensors |= {f"best.{name}": p for name, p in self.best.items()}
        tensors |= optimizer_tensors(self.optimizers)
        tensors["generator"] = self.generator.get_state()
        facts = Facts(
            fingerprint=self.fingerprint, step=self.step, max_steps=self.settings.max_steps,
            max_minutes=self.settings.max_minutes, spent=self.spent,
            stale=self.stale, evaluating=self.evaluating, evaluation_seconds=self.evaluation_seconds,
            train_nats=_or_none(self.train_nats), best_nats=_or_none(self.outcome.best_nats),
            best_step=self.outcome.best_step, stopped=self.outcome.stopped,
            curve=[(step, seconds, _or_none(nats)) for step, seconds, nats in self.outcome.curve],
        )  # fmt: skip
        try:
            save_checkpoint(self.checkpoint, tensors, facts)
            self.keeps_finished = True
        except OutputError as error:  # hours of training are worth more than their copy
            if not self.has_failed_to_save:
                _say(f"{error} Training goes on without it.")
            self.has_failed_to_save = True

    def _resume(self) -> None:
        if self.checkpoint is None:
            return
        try:
            found = load_checkpoint(self.checkpoint)
            if found is not None and found[1].fingerprint == self.fingerprint:
                self._check(*found)
                self._take_up(*found)
            elif found is not None:
                raise OtherTrainingError(
                    f"{self.checkpoint} keeps {found[1].step:,} steps of another training (other data or settings); "
                    "finish that, delete it, or choose another name."
                )
        except DamagedCheckpoint:
            _say(f"The checkpoint in {self.checkpoint} is damaged; training starts anew.")

    def _check(self, tensors: dict[str, Tensor], facts: Facts) -> None:
        """Nothing is taken up before all of it fits this run."""
        if facts.max_steps > self.max_steps:
            raise DamagedCheckpoint("it has more steps than the run")
        for name, like in self.average.items():
            for part in ("current", "average", "best"):
                _check_tensor(tensors.get(f"{part}.{name}"), like)
        _check_tensor(tensors.get("generator"), self.generator.get_state())
        check_optimizer_tensors(self.optimizers, tensors)

    def _take_up(self, tensors: dict[str, Tensor], facts: Facts) -> None:
        self._load({name: tensors[f"current.{name}"] for name in self.average})
        self.average = {name: tensors[f"average.{name}"].to(self.device) for name in self.average}
        self.best = {name: tensors[f"best.{name}"].to(self.device) for name in self.average}
        restore_optimizers(self.optimizers, tensors)
        self.generator.set_state(tensors["generator"])
        self.step, self.spent, self.stale = facts.step, facts.spent, facts.stale
        self.train_nats = math.nan if facts.train_nats is None else facts.train_nats
        self.evaluating, self.evaluation_seconds = facts.evaluating, facts.evaluation_seconds
        has_more_time = (self.settings.max_minutes or 0.0) > 1.05 * (facts.max_minutes or math.inf)
        if not has_more_time:
            self.settings = replace(self.settings, max_steps=facts.max_steps)
        self.outcome.curve = [(step, sec, math.nan if nats is None else nats) for step, sec, nats in facts.curve]
        self.outcome.best_nats = math.inf if facts.best_nats is None else facts.best_nats
        self.outcome.best_step = facts.best_step
        self.outcome.stopped = "" if has_more_time and facts.stopped == TIME_IS_UP else facts.stopped
        self.keeps_finished = True


def _or_none(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None


def _say(sentence: str) -> None:
    warnings.warn(sentence, AnyGivenWarning, stacklevel=2)


def _check_tensor(tensor: Tensor | None, like: Tensor) -> None:
    if tensor is None or tensor.shape != like.shape or tensor.dtype != like.dtype or not bool(tensor.isfinite().all()):
        raise DamagedCheckpoint("a tensor is not what the run needs")


def _validation_questions(
    valid: Data, objective: Objective, settings: Settings, device: torch.device
) -> list[tuple[Tensor, Path, Tensor]]:
    """Fixed questions on the validation rows: several a row where there are few, so that they judge finely."""
    generator = torch.Generator().manual_seed(settings.seed + 7)
    if len(valid) == 0:
        return []
    n = min(len(valid), settings.most_validation_rows)
    spread = torch.arange(n) * len(valid) // n
    every = spread.repeat(max(1, math.ceil(settings.validation_rows / n)))
    path, weights = objective.unshared.draw(valid.is_present[every], generator)
    if valid.weight is not None:
        weights = weights * (valid.weight / valid.weight.mean())[every, None]
    chunks = torch.arange(len(every)).split(2048)
    return [(valid.x[every[rows]].to(device), path.rows(rows), weights[rows]) for rows in chunks]
