"""Makes the pictures of docs/mathematics.md, every line and figure in them computed by `engine`.

It needs matplotlib (the extra `replay`). The same versions give the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy.special import beta as beta_function
from scipy.special import betaincinv, ndtr

import engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DOCS = Path(__file__).resolve().parent.parent / "docs"

# From high score to low: a negative before two positives dents the curve, and three events tie.
EVENTS = (
    [0.9, 0.8, 0.7, 0.7, 0.5, 0.5, 0.5, 0.3, 0.2, 0.1],
    [1, 0, 1, 1, 0, 0, 1, 1, 0, 0],
)
TIE = 0.5
SHARE = 0.2  # of the positives, where severities move with the priors

BLUE, RED, GREEN, GREY = "#1f5fa8", "#c03d3d", "#2f7d4f", "#777777"
STYLE = {
    "svg.hashsalt": "rocstream",  # else names of clips and markers are drawn by lot
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}


def main() -> None:
    """Write the pictures."""
    with mpl.rc_context(STYLE):
        save(roc_picture(), "roc.svg")
        save(h_picture(), "h-measure.svg")
        save(cost_picture(), "cost-curves.svg")
        save(window_picture(), "windows.svg")


def save(figure: Figure, name: str) -> None:
    """Write a picture without the date, which would change it from day to day."""
    path = DOCS / name
    figure.savefig(
        path, metadata={"Date": None}, facecolor="white", bbox_inches="tight", pad_inches=0.2
    )
    # Paths come with spaces at the ends of their lines.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def example() -> Any:
    """Make the Roc of the events above."""
    roc = engine.Roc()
    roc.extend(*EVENTS)
    return roc


def roc_picture() -> Figure:
    """Draw the curve of the events above, its hull, its block of ties and its KS."""
    roc = example()
    curve, hull = roc.curve(), roc.hull()
    figure = Figure(figsize=(6.2, 5.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls=":", label="no skill: AUC 1/2")
    axes.plot(
        hull.fpr, hull.tpr, color=GREEN, lw=1.6, ls="--", marker="s", ms=7, mfc="none",
        label=f"convex hull: AUCH {roc.auch():.2f}",
    )  # fmt: skip
    axes.plot(
        curve.fpr, curve.tpr, color=BLUE, lw=2, marker="o", ms=4.5,
        label=f"ROC curve: AUC {roc.auc():.2f}",
    )  # fmt: skip
    axes.fill_between(curve.fpr, curve.tpr, color=BLUE, alpha=0.07, lw=0)
    draw_tie(axes, curve)
    # At the first of equal gaps, beside the curve, which is upright there.
    best = int(np.argmax(np.round(curve.tpr - curve.fpr, 9)))
    at = curve.fpr[best] + 0.02
    axes.annotate(
        "",
        (at, curve.tpr[best]),
        (at, curve.fpr[best]),
        arrowprops={"arrowstyle": "<->", "color": RED},
    )
    axes.text(at + 0.015, 0.42, f"KS {roc.ks():.1f}", color=RED)
    for threshold, fpr, tpr in zip(curve.thresholds, curve.fpr, curve.tpr, strict=True):
        axes.annotate(
            "+inf" if np.isinf(threshold) else f"{threshold:g}",
            (fpr, tpr),
            (-19, 3) if tpr == curve.tpr[best] else (5, -11),
            textcoords="offset points",
            color=BLUE,
            fontsize=9,
        )
    axes.set(
        xlabel="false positive rate", ylabel="true positive rate",
        xlim=(-0.02, 1.06), ylim=(-0.05, 1.04),
    )  # fmt: skip
    axes.legend(loc="lower right")
    return figure


def draw_tie(axes: Any, curve: engine.Curve) -> None:
    """Draw the box that a block of ties spans: either order of its events is a way round it."""
    end = int(np.flatnonzero(curve.thresholds == TIE)[0])
    left, right = curve.fpr[end - 1 : end + 1]
    bottom, top = curve.tpr[end - 1 : end + 1]
    axes.fill([left, right, right], [bottom, bottom, top], color=RED, alpha=0.16, lw=0)
    axes.plot(
        [left, left, right, right, left], [bottom, top, top, bottom, bottom],
        color=RED, lw=0.9, ls=(0, (3, 2)),
    )  # fmt: skip
    axes.annotate(
        "three events tie at 0.5:\nhalf of the box counts",
        ((left + 2 * right) / 3, (2 * bottom + top) / 3),
        (0.64, 0.45),
        color=RED,
        arrowprops={"arrowstyle": "-", "color": RED, "lw": 0.8},
    )


def density(costs: Floats, alpha: float, beta: float) -> Floats:
    """Density of Beta(alpha, beta)."""
    return np.asarray(costs ** (alpha - 1) * (1 - costs) ** (beta - 1) / beta_function(alpha, beta))


def h_picture() -> Figure:
    """Draw severities, the least loss at each cost, and the areas whose ratio is 1 - H."""
    figure = Figure(figsize=(11, 3.5), layout="constrained")
    severities, losses, weighted = figure.subplots(1, 3)
    costs = np.linspace(0.0, 1.0, 161)
    for label, alpha, beta, color in (
        ("Beta(2, 2): Hand 2009", 2, 2, BLUE),
        ("Beta(1+p1, 1+p0): Hand and\nAnagnostopoulos 2014", 1 + SHARE, 2 - SHARE, GREEN),
        ("Beta(2, 1+1/SR), SR = p1/p0:\nhmeasure in R", 2, 1 + (1 - SHARE) / SHARE, RED),
    ):
        severities.plot(costs, density(costs, alpha, beta), color=color, lw=1.8, label=label)
    severities.set(title=f"how likely is each cost (p1 = {SHARE})", ylim=(0, 3.8))
    severities.legend(loc="upper right", fontsize=9)

    roc = example()
    curve = roc.cost_curve("optimal")
    least = np.interp(costs, curve.cost, curve.loss) / 2  # the curve has the factor 2 of its papers
    p1 = roc.positives / len(roc)
    useless = np.minimum(costs * (1 - p1), (1 - costs) * p1)
    hull = roc.hull()
    for fpr, tpr in zip(hull.fpr, hull.tpr, strict=True):
        line = costs * (1 - p1) * fpr + (1 - costs) * p1 * (1 - tpr)
        losses.plot(costs, line, color=GREY, lw=0.7, ls=":")
    losses.plot(costs, useless, color=GREY, lw=1.6, label="no skill")
    losses.plot(costs, least, color=BLUE, lw=2, label="best threshold")
    losses.set(title="loss at each cost", ylim=(0, 0.34))
    losses.legend(loc="upper right", ncols=2, fontsize=9)

    shape = density(costs, 2, 2)
    weighted.fill_between(
        costs, useless * shape, least * shape, color=GREEN, alpha=0.25, lw=0, label="saved"
    )
    weighted.fill_between(costs, least * shape, color=BLUE, alpha=0.25, lw=0, label="left")
    weighted.plot(costs, useless * shape, color=GREY, lw=1.6)
    weighted.plot(costs, least * shape, color=BLUE, lw=2)
    weighted.set(title=f"times Beta(2, 2): H = saved/all = {roc.h_measure():.3f}", ylim=(0, 0.44))
    weighted.legend(loc="upper right", ncols=2, fontsize=9)
    for axes in (severities, losses, weighted):
        axes.set(xlabel="c, relative cost of a false positive", xlim=(0, 1))
    return figure


def cost_picture() -> Figure:
    """Draw the three cost curves of scores that are probabilities, and none too good ones."""
    roc = engine.Roc()
    for label, count, alpha, beta in ((0, 30, 2.0, 2.6), (1, 20, 3.2, 1.6)):
        ranks = (np.arange(count) + 0.5) / count
        roc.extend(betaincinv(alpha, beta, ranks), np.full(count, label))
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for kind, label, color in (
        ("brier", "Brier: threshold = c", RED),
        ("rate-driven", "rate-driven: share of negative decisions = c", GREEN),
        ("optimal", "optimal: the best threshold", BLUE),
    ):
        curve = roc.cost_curve(kind)
        axes.plot(
            curve.cost, curve.loss, color=color, lw=1.8,
            label=f"{label}; area {roc.cost_area(kind):.3f}",
        )  # fmt: skip
    p1 = roc.positives / len(roc)
    axes.plot([0, p1, 1], [0, 2 * p1 * (1 - p1), 0], color=GREY, ls=":", label="no skill")
    axes.set(xlabel="c, relative cost of a false positive", ylabel="loss", xlim=(0, 1))
    axes.set_ylim(0, 0.78)
    axes.legend(loc="upper left")
    return figure


def window_picture() -> Figure:
    """Draw what windows weigh, and what they read while a model becomes worse."""
    size, change, count = 1000, 3000, 7000
    half_life = size / 2.885  # as noisy as a count window of so many events
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    weights, readings = figure.subplots(1, 2, width_ratios=(1, 1.6))
    ages = np.arange(0, 3001)
    weights.plot(ages, np.where(ages < size, 1.0, 0.0), color=BLUE, lw=1.8, label="count 1,000")
    weights.plot(ages, 0.5 ** (ages / half_life), color=RED, lw=1.8, label="half-life 347")
    weights.plot(ages, np.ones(len(ages)), color=GREY, lw=1.2, ls="--", label="landmark")
    weights.set(xlabel="age, in events", title="weight of an event", ylim=(0, 1.28))
    weights.legend(loc="upper right", ncols=2, fontsize=9)

    random = np.random.default_rng(1)
    labels = (random.random(count) < SHARE).astype(int)
    skill = np.where(np.arange(count) < change, 1.8, 0.8)
    scores = ndtr(random.normal(size=count) + skill * (labels - 0.5))
    for window, color, style in (
        (engine.LandmarkWindow(thresholds=1000), GREY, "--"),
        (engine.CountWindow(size), BLUE, "-"),
        (engine.DecayWindow(half_life), RED, "-"),
    ):
        auc = window.slide(scores, labels, every=20).auc
        places = 20 * np.arange(1, len(auc) + 1)
        readings.plot(places[20:], auc[20:], color=color, ls=style, lw=1.5)
    for start, end, distance in ((400, change, 1.8), (change, count, 0.8)):
        truth = float(ndtr(distance / np.sqrt(2)))
        readings.plot([start, end], [truth, truth], color=GREEN, lw=1.2, ls=":")
    readings.text(change + 60, 0.905, "the model becomes worse", color=GREEN)
    readings.axvline(change, color=GREEN, lw=0.8, ls=":")
    readings.set(xlabel="events seen", xlim=(0, count))
    readings.set_title("AUC that each reads; dotted: the true one")
    return figure


if __name__ == "__main__":
    main()
