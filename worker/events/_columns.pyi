# Gathering has one contract: the types of the compiled class are those of its twin.
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from worker.events.batch import Gathering as Gathering
from worker.events.batch import KeyedEvents

def grouped(
    names: Sequence[str],
    codes: NDArray[Any],
    scores: NDArray[Any],
    labels: NDArray[Any],
    times: NDArray[Any],
    weights: NDArray[Any] | None,
    offsets: NDArray[Any],
) -> dict[str, KeyedEvents]: ...
