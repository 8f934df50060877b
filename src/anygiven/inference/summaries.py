"""One number for a conditional: the mean, the median or the likeliest value, in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from anygiven.heads import AtomsPlusContinuous, Categorical, Conditionals
from anygiven.lattice import Path
from anygiven.model import AnyOrderModel
from anygiven.variables.domains import Domain, Numeric

CHUNK = 4096
N_NODES = 12  # quadrature points per component
LOGISTIC_LEVELS = (np.arange(N_NODES) + 0.5) / N_NODES


def conditional_mean(domain: Numeric, conditional: AtomsPlusContinuous) -> np.ndarray:
    """(B,) E[value] in the user's units: atoms exactly, the smooth part by quadrature in each component."""
    probabilities = conditional.symbols.probabilities.double().numpy()
    smooth = conditional.smooth
    nodes, weights = _nodes(smooth)
    z = smooth.loc.double().numpy()[..., None] + smooth.scale.double().numpy()[..., None] * nodes  # (B, K, nodes)
    values = np.clip(domain.quick_value(z), *domain.limits)
    inside = (smooth.log_weights.double().exp().numpy() * (values * weights).sum(-1)).sum(-1)
    atoms = np.asarray(domain.atoms, dtype=float)
    return probabilities[:, :-1] @ atoms + probabilities[:, -1] * inside


def _nodes(smooth) -> tuple[np.ndarray, np.ndarray]:
    from anygiven.heads.mixtures import Normal

    if isinstance(smooth.kernel, Normal):
        x, w = np.polynomial.hermite_e.hermegauss(N_NODES)
        return x, w / w.sum()
    return np.log(LOGISTIC_LEVELS / (1 - LOGISTIC_LEVELS)), np.full(N_NODES, 1 / N_NODES)


def likeliest(domain: Domain, conditional: Categorical) -> np.ndarray:
    """(B,) the mode of a category."""
    return _cells_of(domain, conditional.mode)


def _cells_of(domain: Domain, symbol: Tensor) -> np.ndarray:
    cells = np.zeros((len(symbol), 4))
    cells[:, 0] = symbol.numpy()
    return domain.decode(cells)


def median(domain: Domain, conditional: Categorical | AtomsPlusContinuous) -> np.ndarray:
    """(B,) the middle value in order; for categories without order, the likeliest."""
    if isinstance(conditional, Categorical):
        return _cells_of(domain, conditional.quantile(0.5)) if domain.is_ordered else likeliest(domain, conditional)
    assert isinstance(domain, Numeric)
    return quantile(domain, conditional, 0.5)


def quantile(domain: Numeric, conditional: AtomsPlusContinuous, level: float) -> np.ndarray:
    """(B,) a quantile in the user's units; the score axis has the user's order, so it is carried over."""
    z = conditional.quantile(level)
    symbol = conditional._atom_of(z)
    atoms = np.append(np.asarray(domain.atoms, dtype=float), np.nan)
    values = domain.smooth_value(z.double().numpy())
    return np.where(symbol.numpy() < len(domain.atoms), atoms[symbol.numpy()], values)


def summarise(domain: Domain, conditional, statistic: str) -> np.ndarray:
    """(B,) "mean" (the likeliest value for categories), "median" or "mode"."""
    if statistic == "median":
        return median(domain, conditional)
    if isinstance(conditional, Categorical):
        return likeliest(domain, conditional)
    assert isinstance(domain, Numeric)
    if statistic == "mode":
        return numeric_mode(domain, conditional)
    return conditional_mean(domain, conditional)


def numeric_mode(domain: Numeric, conditional: AtomsPlusContinuous) -> np.ndarray:
    """(B,) the likeliest value. On a grid all masses are compared; elsewhere an atom wins if it outweighs the
    whole smooth part, since a mass and a density cannot be compared."""
    log_symbols = conditional.symbols.log_probabilities.double().numpy()
    levels = torch.linspace(0.005, 0.995, 100)
    z = torch.stack([conditional.smooth.quantile(float(level)) for level in levels], dim=1)  # (B, 100)
    log_q = torch.stack([conditional.smooth.log_prob(z[:, j]) for j in range(z.shape[1])], dim=1).double().numpy()
    values = domain.smooth_value(z.double().numpy())
    log_p = log_symbols[:, -1:] + log_q + domain.log_width(values)
    best = np.arange(len(values)), log_p.argmax(axis=1)
    if not domain.atoms:
        return values[best]
    atom = log_symbols[:, :-1].argmax(axis=1)
    rival = log_p[best] if domain.step is not None else log_symbols[:, -1]
    return np.where(log_symbols[np.arange(len(atom)), atom] >= rival, np.asarray(domain.atoms)[atom], values[best])


@torch.no_grad()
def looks(model: AnyOrderModel, x: Tensor, path: Path) -> Iterator[tuple[Tensor, Tensor, Conditionals]]:
    """(rows, asked, conditionals) chunk by chunk, for a path of one step."""
    for rows in torch.arange(len(x)).split(CHUNK):
        asked = path.asked_at(0)[rows]
        columns = asked.any(dim=0).nonzero().squeeze(1)
        if len(columns):
            yield rows, asked, model.look(x[rows], path.known_at(0)[rows], columns)


def fill(
    model: AnyOrderModel,
    domains: list[Domain],
    x: Tensor,
    is_present: Tensor,
    statistic: str = "mean",
    report: Callable[[float], None] | None = None,
) -> dict[int, np.ndarray]:
    """For each variable with gaps, one value per gap in row order: one look from all that is present."""
    path = Path.look(is_present, ~is_present)
    found: dict[int, list[np.ndarray]] = {}
    for rows, asked, conditionals in looks(model, x, path):
        for column in asked.any(dim=0).nonzero().squeeze(1).tolist():
            gaps = asked[:, column]
            conditional = _rows(conditionals.of(column), gaps)
            found.setdefault(column, []).append(summarise(domains[column], conditional, statistic))
        if report:
            report(float(rows[-1] + 1) / len(x))
    return {column: np.concatenate(parts) for column, parts in found.items()}


def _rows(conditional, index: Tensor):
    """The conditional of some rows."""
    if isinstance(conditional, Categorical):
        return Categorical(conditional.logits[index])
    smooth = conditional.smooth
    part = type(smooth)(smooth.logits[index], smooth.loc[index], smooth.scale[index], smooth.kernel)
    return AtomsPlusContinuous(Categorical(conditional.symbols.logits[index]), conditional.atoms, part)
