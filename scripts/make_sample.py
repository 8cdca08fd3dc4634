"""Makes worker/demo/sample.jsonl.gz: real labelled pages, scored by real models as a stream would.

Every model sees a page, gives its score, and only then learns the page's label (progressive
validation), so no score has seen its own label. Run it with the `test` extra installed, which
brings river: the data ships inside river's wheel, nothing is downloaded.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from river import datasets, forest, linear_model, naive_bayes, neighbors, preprocessing, tree

SAMPLE = Path(__file__).resolve().parent.parent / "worker" / "demo" / "sample.jsonl.gz"
SEED = 7


def models() -> dict[str, object]:
    """Return the untrained models by the key their events get."""
    scale = preprocessing.StandardScaler
    return {
        "phishing-bayes": naive_bayes.GaussianNB(),
        "phishing-forest": forest.ARFClassifier(n_models=10, seed=SEED),
        # The exact search: river's default one is random and takes no seed here.
        "phishing-knn": scale()
        | neighbors.KNNClassifier(n_neighbors=11, engine=neighbors.LazySearch(window_size=500)),
        "phishing-logistic": scale() | linear_model.LogisticRegression(),
        "phishing-tree": tree.HoeffdingTreeClassifier(grace_period=50),
    }


def events() -> list[dict[str, object]]:
    """Return one event per page and model, page by page in the order of the data set."""
    found = []
    trained = models()
    for page, is_phishing in datasets.Phishing():
        for key, model in trained.items():
            # Before a model has seen both classes it has no opinion.
            score = model.predict_proba_one(page).get(True, 0.5)
            found.append({"key": key, "score": score, "label": int(is_phishing)})
            model.learn_one(page, is_phishing)
    return found


def main() -> None:
    """Write the sample; the same bytes every time."""
    lines = "".join(json.dumps(event) + "\n" for event in events())
    SAMPLE.write_bytes(gzip.compress(lines.encode(), mtime=0))
    print(f"{SAMPLE}: {lines.count(chr(10)):,} events, {SAMPLE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
