"""The exact ROC of a changing multiset of events: the public face of the compiled core.

Where a reading is computed: AUC in `_tree.Tree.auc`, H in `_hull` over the edges of the hull with
terms from `_severity`, curves in `engine.readings`. While a weight other than 1 is inside, events live
in `_weighted.Blocks` instead of `_tree.Tree`; when the last such weight has left they move back, at the
next reading or after some more changes, so that readings depend on what is inside alone.
"""

from libc.math cimport INFINITY, NAN, isnan, nextafter
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

import numpy as np

from engine._batch cimport Batch, batch_of, one_label, one_score, one_weight, pointer_of
from engine._build cimport build_of_blocks, build_of_events
from engine._counts cimport NEGATIVE, POSITIVE, negatives, positives
from engine._edges cimport hull_of_blocks, loss_share, thinned
from engine._pairs cimport Pairs, pairs_of, whole
from engine._tree cimport DONE, NO_MEMORY, TOO_MANY, Status
from engine._weighted cimport Part, absent

from engine.readings.confusion import Confusion, confusion_of
from engine.readings.interval import check_level, interval_from
from engine.readings.pairs import ties_from
from engine.readings.roc_readings import RocReadings
from engine.readings.severity import check_epsilon, check_priors
from engine.readings.thresholds import ks_of, mer_of, mwl_of
from engine.results import Curve


cdef int refuse(Status status, double score, bint label) except -1:
    """Raise what a status stands for; 0 for DONE."""
    if status == DONE:
        return 0
    if status == NO_MEMORY:
        raise MemoryError("no memory for one more event; nothing has changed")
    if status == TOO_MANY:
        raise OverflowError("a Roc holds at most 4294967295 events")
    raise absent(score, label, 1)


cdef class Roc:
    """Exact ROC of a changing multiset of (score, label, weight).

    A high score speaks for the positive class, label 1. Scores are equal when equal as doubles;
    events of one score are a tie, whichever came first. Calls are safe from several threads: the
    interpreter's lock makes each of them one step.

    Examples
    --------
    >>> from engine import Roc
    >>> roc = Roc()
    >>> roc.extend([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> roc.auc(), roc.h_measure()
    (0.75, 0.5)
    >>> roc.remove(0.4, 0)
    >>> roc.auc()
    1.0
    """

    def __cinit__(self):
        self.tree = Tree()
        self.edge_list = Hull()

    def __len__(self):
        """Return how many events are inside; O(1)."""
        if self.blocks is not None:
            return self.blocks.events
        return positives(self.tree.total) + negatives(self.tree.total)

    def __repr__(self):
        return f"<Roc of {self.positives} positives and {self.negatives} negatives>"

    @property
    def positives(self):
        """Weight of the positive class: an int while all weights are 1; O(1)."""
        if self.blocks is not None:
            return self.blocks.total(True) if self.blocks.uneven else int(self.blocks.total(True))
        return positives(self.tree.total)

    @property
    def negatives(self):
        """Weight of the negative class: an int while all weights are 1; O(1)."""
        if self.blocks is not None:
            return self.blocks.total(False) if self.blocks.uneven else int(self.blocks.total(False))
        return negatives(self.tree.total)

    def add(self, score, label, weight=1):
        """Put an event in; O(log n).

        Parameters
        ----------
        score
            Finite; -0.0 counts as 0.0.
        label
            0 or 1, or a bool.
        weight
            Positive and finite.

        Raises
        ------
        ValueError
            When one is none of that; nothing has changed then.
        OverflowError
            When 2**32 - 1 events are inside.
        """
        self.add_event(one_score(score), one_label(label), one_weight(weight))

    def remove(self, score, label, weight=1):
        """Take an event out; O(log n).

        Weight may also be taken in parts: an event stays while some of its weight does.

        Raises
        ------
        KeyError
            When that class has less weight at that score; nothing has changed then.
        ValueError
            As for `add`.
        """
        self.remove_event(one_score(score), one_label(label), one_weight(weight))

    def extend(self, scores, labels, weights=None):
        """Put many events in, all or none; O(k log n), into an empty Roc O(k) beside a sort.

        Parameters
        ----------
        scores, labels, weights
            Arrays of any float or integer dtype, sequences or iterators, of one length. No
            weights: all 1.

        Raises
        ------
        ValueError
            When an element is bad as for `add`, or the lengths are unequal.
        """
        self.enter_all(batch_of(scores, labels, weights, None))

    def auc(self):
        """Area under the ROC curve: P(positive above negative) + P(equal) / 2.

        Returns
        -------
        auc
            In [0, 1]; nan while a class is absent.

        Notes
        -----
        O(1) with unit weights, with others O(log n) for each event since the last reading. Mann and Whitney's U over n0 n1; Tatti,
        "Maintaining AUC and H-measure over time", section 4.
        """
        if self.blocks is not None and self.blocks.uneven == 0:
            # Sums of counts and their halves are exact under 2**53, so these are the tree's bits.
            if self.blocks.total(False) * self.blocks.total(True) > 2.0 ** 52:
                self.settle()
        return self.tree.auc() if self.blocks is None else self.blocks.auc()

    def h_measure(self, alpha=2.0, beta=2.0, priors=None, epsilon=None):
        """H-measure: one minus the expected minimum loss, as a share of that without skill.

        Parameters
        ----------
        alpha, beta
            The relative cost of a false positive is drawn from Beta(alpha, beta).
        priors
            (p0, p1) of the negative and positive class; the shares in the data when None.
        epsilon
            Positive: use only so many vertices of the hull that the loss is at most 1 + epsilon
            times the exact one, so that H lies in [H - epsilon (1 - H), H]. None: all of them.

        Returns
        -------
        h
            In [0, 1]; nan while a class is absent. Nothing is flipped: a classifier that points
            the wrong way has the H of its hull.

        Raises
        ------
        ValueError
            When alpha, beta or epsilon is not positive and finite, or priors are not two positive
            numbers that sum to 1.

        Notes
        -----
        Hand (2009), "Measuring classifier performance"; Tatti, sections 5 and 6.
        """
        cdef Severity severity = Severity(alpha, beta)
        cdef double p0, p1
        if priors is not None:
            p0, p1 = check_priors(priors)
        if epsilon is not None:
            epsilon = check_epsilon(epsilon)
        self.settle()
        if not self.negatives or not self.positives:
            return NAN
        if priors is None and epsilon is None and self.blocks is None:
            return self.h_by_data(severity)
        _, negative, positive = self.edges()
        if priors is not None:
            negative = negative * (p0 / negative.sum())
            positive = positive * (p1 / positive.sum())
        if epsilon is not None:
            negative, positive = thinned(negative, positive, epsilon)
        return loss_share(negative, positive, severity)

    def curve(self):
        """ROC curve from (0, 0), threshold +inf, to (1, 1), a point per distinct score; O(n)."""
        return curve_through(*self.arrays())

    def hull(self):
        """Upper convex hull of the ROC curve; O(n)."""
        # One after the other, so that no other thread's event comes between.
        scores = self.arrays()[0]
        last, negative, positive = self.edges()
        # An edge begins at the first score above the last one of the edge before.
        starts = np.searchsorted(scores, np.concatenate([[-np.inf], last[:-1]]), side="right")
        return curve_through(scores[starts[: len(last)]], negative, positive)

    def confusion(self, threshold):
        """Decide at a threshold and count, see `engine.readings.confusion`; O(log n)."""
        cdef uint64_t below
        cdef Part under, over
        self.settle()
        if isnan(threshold):
            return confusion_of(*self._blocks(), threshold)
        if self.blocks is not None:
            self.blocks.part_at(threshold, &under, &over)
            return Confusion(
                tp=over.positive, fp=over.negative, tn=under.negative, fn=under.positive
            )
        below = self.tree.counts_upto(nextafter(threshold, -INFINITY))
        return Confusion(
            tp=positives(self.tree.total - below),
            fp=negatives(self.tree.total - below),
            tn=negatives(below),
            fn=positives(below),
        )

    def auc_interval(self, level=0.95):
        """DeLong's interval of the AUC, see `engine.readings.interval`; O(distinct scores)."""
        cdef Pairs pairs
        check_level(level)
        self.settle()
        if self.blocks is not None:
            return RocReadings.auc_interval(self, level)
        pairs = pairs_of(self.tree)
        squares = (whole(pairs.by_positives), whole(pairs.by_negatives))
        return interval_from(
            negatives(self.tree.total),
            positives(self.tree.total),
            self.tree.twice_u,
            squares,
            level,
        )

    def ties(self):
        """Strict probability, tied mass, Redolfi's bound, see `engine.readings.pairs`; O(distinct)."""
        cdef Pairs pairs
        self.settle()
        if self.blocks is not None:
            return RocReadings.ties(self)
        pairs = pairs_of(self.tree)
        return ties_from(
            negatives(self.tree.total),
            positives(self.tree.total),
            (<uint64_t> self.tree.twice_u - pairs.tied) >> 1,
            pairs.tied,
            (pairs.negatives, pairs.positives),
        )

    def ks(self):
        """Largest true minus false positive rate, see `engine.readings.thresholds`; O(edges)."""
        return ks_of(*self._edges())

    def mer(self):
        """Minimum error rate over all thresholds, see `engine.readings.thresholds`; O(edges)."""
        return mer_of(*self._edges())

    def mwl(self, cost):
        """Minimum weighted loss at a cost, see `engine.readings.thresholds`; O(edges)."""
        return mwl_of(*self._edges(), cost)

    # Read off the blocks in O(n), in one place for every ROC there is: `engine.readings`.
    gini = RocReadings.gini
    auch = RocReadings.auch
    cost_curve = RocReadings.cost_curve
    cost_area = RocReadings.cost_area

    def _blocks(self):
        """Distinct scores, rising, and the weights of negatives and positives at each.

        Integers while all weights are 1, else doubles.
        """
        scores, negative, positive = self.arrays()
        kind = np.float64 if self.uneven() else np.int64
        return scores, negative.astype(kind), positive.astype(kind)

    def _edges(self):
        """Weights of negatives and positives along the edges of the hull."""
        _, negative, positive = self.edges()
        kind = np.float64 if self.uneven() else np.int64
        return negative.astype(kind), positive.astype(kind)

    # Below Python

    cdef Status enter(self, double score, bint label) noexcept nogil:
        """Put an event of weight 1 in, while `blocks` is None."""
        cdef Status status = self.tree.add(score, label)
        self.edge_list.since += 1
        if status == DONE and self.edge_list.live:
            self.edge_list.touch(score, POSITIVE if label else NEGATIVE, label)
        return status

    cdef Status leave(self, double score, bint label) noexcept nogil:
        """Take an event of weight 1 out, while `blocks` is None."""
        cdef Status status = self.tree.remove(score, label)
        self.edge_list.since += 1
        if status == DONE and self.edge_list.live:
            self.edge_list.touch(score, 0 - (POSITIVE if label else NEGATIVE), not label)
        return status

    cdef Status exchange(
        self, double old, bint its_label, double score, bint label
    ) noexcept nogil:
        """Take an event of weight 1 out and put another in, while `blocks` is None."""
        cdef Status status = self.tree.exchange(old, its_label, score, label)
        self.edge_list.since += 2
        if status == DONE and self.edge_list.live:
            self.edge_list.touch(old, 0 - (POSITIVE if its_label else NEGATIVE), not its_label)
        # Without memory the list rests.
        if status == DONE and self.edge_list.live:
            self.edge_list.touch(score, POSITIVE if label else NEGATIVE, label)
        return status

    cdef int add_event(self, double score, bint label, double weight) except -1:
        if weight == 1 and self.blocks is None:
            return refuse(self.enter(score, label), score, label)
        if self.blocks is None:
            self.to_blocks()
        self.blocks.add(score, label, weight)
        return self.note()

    cdef int remove_event(self, double score, bint label, double weight) except -1:
        cdef uint64_t here
        if weight == 1 and self.blocks is None:
            return refuse(self.leave(score, label), score, label)
        if self.blocks is None:
            # What is not there must not cost a move.
            here = self.tree.counts_upto(score) - self.tree.counts_upto(nextafter(score, -INFINITY))
            if (positives(here) if label else negatives(here)) < weight:
                raise absent(score, label, weight)
            self.to_blocks()
        self.blocks.remove(score, label, weight)
        return self.note()

    cdef int enter_all(self, Batch batch) except -1:
        """Put a batch in, all or none."""
        cdef Py_ssize_t i = 0, undo
        cdef double weight
        if batch.weights == NULL and len(self) == 0:
            return self.fill(batch.scores, batch.labels, batch.size)
        try:
            for i in range(batch.size):
                weight = batch.weights[i] if batch.weights != NULL else 1
                self.add_event(batch.scores[i], batch.labels[i], weight)
        except BaseException:
            for undo in range(i - 1, -1, -1):
                weight = batch.weights[undo] if batch.weights != NULL else 1
                self.remove_event(batch.scores[undo], batch.labels[undo], weight)
            raise
        return 0

    cdef void clear(self) noexcept:
        """Forget everything and give the memory back."""
        self.blocks = None
        self.tree.clear()
        self.edge_list.rest()

    cdef int fill(self, const double *scores, const uint8_t *labels, Py_ssize_t size) except -1:
        """Put events of weight 1 into an empty Roc, all or none. O(n)."""
        # Blocks that memory ran out for moving are empty as well.
        self.blocks = None
        refuse(build_of_events(self.tree, scores, labels, size), 0, 0)
        self.edge_list.rest()
        return 0

    cdef double h_by_data(self, Severity severity) except? -1:
        """H with priors from the data, exact, unit weights."""
        return self.edge_list.h_measure(self.tree, severity)

    cdef tuple arrays(self):
        """Distinct scores ascending, and the weights of negatives and positives there. O(n)."""
        cdef Py_ssize_t size
        self.settle()
        size = self.tree.distinct if self.blocks is None else self.blocks.distinct
        scores, negative, positive = np.empty(size), np.empty(size), np.empty(size)
        cdef double *s = <double *> pointer_of(scores)
        cdef double *n = <double *> pointer_of(negative)
        cdef double *p = <double *> pointer_of(positive)
        if self.blocks is None:
            self.tree.blocks(s, n, p)
        else:
            self.blocks.write(s, n, p)
        return scores, negative, positive

    cdef tuple edges(self):
        """Last score, weight of negatives and of positives of every edge of the hull, ascending."""
        self.settle()
        if self.blocks is not None:
            scores, negative, positive = self.arrays()
            return hull_of_blocks(scores, negative, positive)
        return self.edge_list.arrays(self.tree)

    # Between unit weights and others

    cdef inline bint uneven(self) noexcept:
        """Whether a weight other than 1 is inside."""
        return self.blocks is not None and self.blocks.uneven > 0

    cdef int to_blocks(self) except -1:
        """Move the events to where weights may differ. O(n)."""
        cdef Blocks blocks = Blocks()
        scores, negative, positive = self.arrays()
        cdef double *s = <double *> pointer_of(scores)
        cdef double *n = <double *> pointer_of(negative)
        cdef double *p = <double *> pointer_of(positive)
        cdef Py_ssize_t i
        for i in range(len(scores)):
            if n[i]:
                blocks.put(s[i], False, [n[i]], <uint32_t> n[i], 0)
            if p[i]:
                blocks.put(s[i], True, [p[i]], <uint32_t> p[i], 0)
        self.blocks = blocks
        self.tree.clear()
        self.edge_list.rest()
        return 0

    cdef int note(self) noexcept:
        """Move back after a change of the blocks where it is time to: what moves costs, changes pay."""
        self.idle = 0 if self.blocks.uneven else self.idle + 1
        if self.idle * 8 > self.blocks.distinct:
            self.to_tree()
        return 0

    cdef void settle(self) noexcept:
        """Be where a reading expects it: in the tree if all weights are 1. O(n) after a change."""
        if self.blocks is not None and self.blocks.uneven == 0:
            self.to_tree()

    cdef void to_tree(self) noexcept:
        """Move the events to where all weights are 1. O(n).

        The change that calls for it is done already. So nothing is raised without memory: where the
        events are they are right as well, and the next change tries again.
        """
        cdef Py_ssize_t size = self.blocks.distinct, i
        cdef double *scores = <double *> malloc(3 * size * sizeof(double) + 1)
        cdef uint64_t *counts = <uint64_t *> malloc(size * sizeof(uint64_t) + 1)
        if scores != NULL and counts != NULL:
            self.blocks.write(scores, scores + size, scores + 2 * size)
            for i in range(size):
                counts[i] = <uint64_t> scores[2 * size + i] << 32 | <uint64_t> scores[size + i]
            if build_of_blocks(self.tree, scores, counts, size) == DONE:
                self.blocks = None
        free(scores)
        free(counts)

    cdef int build(self, scores, negative, positive) except -1:
        """Make the tree of counts at ascending scores, which are contiguous doubles. O(n)."""
        cdef Status status
        counts = (positive.astype(np.uint64) << np.uint64(32)) | negative.astype(np.uint64)
        status = build_of_blocks(
            self.tree, <double *> pointer_of(scores), <uint64_t *> pointer_of(counts), len(scores)
        )
        return refuse(status, 0, 0)

    # Copies and pickles

    def __reduce__(self):
        self.settle()
        if self.blocks is not None:
            return type(self)._of_rows, (self.blocks._rows(),)
        return type(self)._of_counts, self._blocks()

    @classmethod
    def _of_counts(cls, scores, negative, positive):
        """Make one of the blocks of equal scores, ascending, while all weights are 1."""
        cdef Roc roc = cls()
        roc.build(np.ascontiguousarray(scores, np.float64), negative, positive)
        return roc

    @classmethod
    def _of_rows(cls, rows):
        """Make one of what `Blocks._rows` gives, with some weight other than 1."""
        cdef Roc roc = cls()
        roc.blocks = Blocks()
        for score, label, parts, events, odd in rows:
            roc.blocks.put(score, label, parts, events, odd)
        return roc

    def _check(self):
        """Assert the invariants; O(n)."""
        if self.blocks is None:
            self.tree._check()
            self.edge_list._check(self.tree)
            return
        assert self.tree.total == 0
        self.blocks._check()

    def _bytes(self):
        """Memory held for events, without the objects themselves."""
        if self.blocks is not None:
            return self.blocks.bytes()
        return self.tree.bytes() + self.edge_list.bytes()


def curve_through(scores, negative, positive):
    """ROC curve through the upper ends of blocks given in increasing score."""
    return Curve(
        rates(negative), rates(positive), np.concatenate([[np.inf], scores[::-1]])
    )


def rates(weights):
    running = np.concatenate([[0.0], np.cumsum(weights[::-1])])
    if not running[-1]:
        return np.full(len(running), np.nan)
    return running / running[-1]
