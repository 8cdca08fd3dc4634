"""Events whose weight halves, driven in bulk below Python.

No reading changes when all weights change by one factor. So nothing inside has to get lighter: new events
enter heavier. An event of age 0 at step s enters with weight 2**(s / half_life - shift); when that grows
past 2**64, all weights are divided by a power of two, which rounds none of them. The exponent is taken
apart into whole half-lives and a remainder, both exact, so that weights are as right after a million
half-lives as after one.
"""

from libc.math cimport exp2, floor, fma, ldexp
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from engine._batch cimport Batch, pointer_of
from engine._bulk cimport BulkWindow
from engine._edges cimport loss_share, thinned
from engine._fold cimport FORESEEN
from engine._reader cimport AUC, END, EVENTS, H, NEGATIVES, POSITIVES, Reader
from engine._severity cimport Severity
from engine._timeline cimport LATE, Timeline
from engine._tree cimport DONE
from engine._sums cimport Edge, Sums
from engine._weights cimport WeightTree, add_exactly

import math

import numpy as np

from engine._bulk import readings as readings_now
from engine.readings.confusion import confusion_of
from engine.readings.curve import curve_of
from engine.readings.hull import hull_edges
from engine.readings.roc_readings import RocReadings
from engine.readings.severity import check_epsilon, check_priors
from engine.readings.thresholds import ks_of, mer_of, mwl_of
from engine.reference.decay_window import (
    HEAVIEST,
    LEAST,
    LIGHTEST,
    RENEWAL,
    check_weight,
    check_window,
)

cdef double LEAST_WEIGHT = LIGHTEST, MOST_WEIGHT = HEAVIEST
cdef int ROOM = RENEWAL  # how many half-lives new events may be heavier than the scale's start


# Trees of so many scores are out of the nearer caches: events are foreseen, some at once.
cdef enum:
    FAR = 200_000
    AHEAD = 8


cdef class DecayRoc:
    """The ROC of a decay window, to be read; weights are up to one common factor."""

    cdef WeightTree tree
    cdef Timeline events

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.events.held

    @property
    def positives(self):
        """Weight of the positive class."""
        cdef const Sums *sums = self.tree.sums()
        return 0.0 if sums == NULL else sums.positive

    @property
    def negatives(self):
        """Weight of the negative class."""
        cdef const Sums *sums = self.tree.sums()
        return 0.0 if sums == NULL else sums.negative

    def auc(self):
        """Area under the ROC curve, as `Roc.auc`; O(log n) for each event since the last reading."""
        return self.tree.auc()

    def h_measure(self, alpha=2.0, beta=2.0, priors=None, epsilon=None):
        """H-measure, as `Roc.h_measure`; O(edges * log n) for each event since the last reading."""
        cdef Severity severity = Severity(alpha, beta)
        cdef double p0 = 0, p1 = 0
        if priors is not None:
            p0, p1 = check_priors(priors)
        if epsilon is not None:
            epsilon = check_epsilon(epsilon)
        if priors is None and epsilon is None:
            return self.tree.h_measure(severity)
        negative, positive = self._edges()
        if not negative.any() or not positive.any():
            return math.nan
        if priors is not None:
            negative = negative * (p0 / negative.sum())
            positive = positive * (p1 / positive.sum())
        if epsilon is not None:
            negative, positive = thinned(negative, positive, epsilon)
        return loss_share(negative, positive, severity)

    def curve(self):
        """ROC curve from (0, 0), threshold +inf, to (1, 1), a point per distinct score; O(n)."""
        return curve_of(zip(*self._blocks()))

    def hull(self):
        """Upper convex hull of the ROC curve; O(n)."""
        return curve_of(hull_edges(zip(*self._blocks())))

    def confusion(self, threshold):
        """Decide at a threshold and count, see `engine.readings.confusion`; O(n)."""
        return confusion_of(*self._blocks(), threshold)

    def ks(self):
        """Largest true minus false positive rate, see `engine.readings.thresholds`; O(edges)."""
        return ks_of(*self._edges())

    def mer(self):
        """Minimum error rate over all thresholds, see `engine.readings.thresholds`; O(edges)."""
        return mer_of(*self._edges())

    def mwl(self, cost):
        """Minimum weighted loss at a cost, see `engine.readings.thresholds`; O(edges)."""
        return mwl_of(*self._edges(), cost)

    gini = RocReadings.gini
    auch = RocReadings.auch
    auc_interval = RocReadings.auc_interval
    ties = RocReadings.ties
    cost_curve = RocReadings.cost_curve
    cost_area = RocReadings.cost_area

    def _blocks(self):
        """Distinct scores, rising, and the weights of negatives and positives at each."""
        size = self.tree.distinct
        scores, negative, positive = np.empty(size), np.empty(size), np.empty(size)
        self.tree.write(
            <double *> pointer_of(scores),
            <double *> pointer_of(negative),
            <double *> pointer_of(positive),
        )
        return scores, negative, positive

    def _edges(self):
        """Weights of negatives and positives along the edges of the hull."""
        cdef const Edge *edges
        cdef uint32_t size, i
        if self.tree.sums() == NULL:
            return np.empty(0), np.empty(0)
        edges = self.tree.edges(&size)
        negative, positive = np.empty(size), np.empty(size)
        for i in range(size):
            negative[i] = edges[i].negative
            positive[i] = edges[i].positive
        return negative, positive

    def _check(self):
        """Assert the invariants; O(n)."""
        self.tree._check()
        negative, positive = self._edges()
        expected = hull_edges(zip(*self._blocks()))
        assert np.isclose(negative.sum(), sum(edge.negatives for edge in expected), rtol=1e-12)
        assert np.isclose(positive.sum(), sum(edge.positives for edge in expected), rtol=1e-12)

    def _bytes(self):
        """Memory held for events, hulls apart."""
        return self.tree.bytes()


cdef class DecayWindow(BulkWindow):
    """Events whose weight halves with every half-life, and their ROC.

    Parameters
    ----------
    half_life
        In events, or in ms when `timed`; positive.
    timed
        Age is event time and not the number of events since. Events may then come out of order.
    least
        What an event's weight has become, as a share of what it was, when it is dropped.

    Attributes
    ----------
    roc
        Of what is inside, to be read; its weights are up to one common factor, which what `slide`
        reads as positives and negatives has taken out.
    late
        How many events were to be dropped when they came.

    Raises
    ------
    ValueError
        When the half-life is not positive and finite or `least` not between 2**-200 and 1.

    Notes
    -----
    Memory holds the events of log2(1 / least) half-lives: thirty. What is dropped of unit weights,
    aged by events, is at most a share `least` of all weight, so AUC errs by at most
    least / p0 + least / p1, with p0 and p1 the shares of the classes.

    Examples
    --------
    >>> from engine import DecayWindow
    >>> window = DecayWindow(half_life=1)
    >>> readings = window.slide([0.5, 0.5, 0.1], [0, 1, 1], every=1, read=("auc", "positives"))
    >>> readings.auc.tolist(), readings.positives.tolist()
    ([nan, 0.5, 0.16666666666666666], [0.0, 1.0, 1.5])
    """

    cdef DecayRoc built
    cdef readonly int64_t late
    cdef readonly double half_life, least, horizon
    cdef readonly bint timed
    cdef WeightTree tree
    cdef Timeline events
    cdef int64_t origin, newest, shift
    cdef int64_t moved  # by how much `shift` fell while there were events, since the call began
    cdef bint begun
    cdef bint torn  # whether memory ran out for making the tree anew

    def __cinit__(self, half_life, *, timed=False, least=LEAST):
        self.half_life, self.least = check_window(half_life, least)
        self.horizon = self.half_life * math.log2(1.0 / self.least)
        self.timed = timed
        self.tree = WeightTree()
        self.events = Timeline()
        self.built = DecayRoc()
        self.built.tree = self.tree
        self.built.events = self.events

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.events.held

    @property
    def roc(self):
        """The ROC of what is inside; O(1)."""
        self.whole()
        return self.built

    @property
    def span(self):
        """Times of the oldest and the newest event inside, ms; 0 when empty."""
        if self.events.held == 0:
            return 0, 0
        return self.events.time(0), self.events.time(self.events.held - 1)

    readings = readings_now

    # Copies and pickles

    def __reduce__(self):
        scale = self.begun, self.origin, self.newest, self.shift
        return type(self)._of_rows, (
            self.half_life, self.timed, self.least, self.seen, self.late, scale, self.events.rows()
        )

    @classmethod
    def _of_rows(cls, half_life, timed, least, seen, late, scale, rows):
        """Make one of what it was; weights are those inside, up to its scale."""
        cdef DecayWindow window = cls(half_life, timed=timed, least=least)
        window.events.reserve(len(rows), any(time for *_, time in rows))
        for score, label, weight, time in rows:
            window.events.insert(score, label, weight, time, False)
        window.torn = True
        window.whole()
        window.begun, window.origin, window.newest, window.shift = scale
        window.seen = seen
        window.late = late
        return window

    # A run of events

    cdef int take(self, Batch batch, bint timed, Reader reader) except -1:
        cdef Py_ssize_t i, oldest, held
        cdef int64_t left = -1, seen = self.seen, late = self.late
        cdef int64_t origin = self.origin, newest = self.newest, shift = self.shift
        cdef bint begun = self.begun
        if self.timed and not timed:
            raise ValueError("decay by time needs a time with every event")
        if batch.weights != NULL:
            for i in range(batch.size):
                if not LEAST_WEIGHT <= batch.weights[i] <= MOST_WEIGHT:
                    check_weight(batch.weights[i])
        self.whole()
        self.events.reserve(batch.size, self.timed or batch.times != NULL)
        if reader is not None:
            reader.widen()
            left = reader.every - self.seen % reader.every
        oldest, held = self.events.oldest, self.events.held
        self.moved = 0
        try:
            for i in range(batch.size):
                if i % AHEAD == 0 and self.tree.distinct >= FAR:
                    self.foresee(batch, i)
                self.enter(
                    batch.scores[i],
                    &batch.labels[i],
                    1 if batch.weights == NULL else batch.weights[i],
                    0 if batch.times == NULL else batch.times[i],
                )
                left -= 1
                if left == 0:
                    left = reader.every
                    self.read(reader)
            if reader is not None:
                reader.gather()
        except BaseException:
            # Those that left were moved back when they did.
            self.move_back(0, self.events.held)
            self.events.go_back(batch, self.seen - seen, oldest, held, self.timed)
            self.begun, self.seen, self.late = begun, seen, late
            self.origin, self.newest, self.shift = origin, newest, shift
            self.make_anew()
            raise
        return 0

    cdef void foresee(self, Batch batch, Py_ssize_t first) noexcept nogil:
        """Fetch what the next events of a batch and as many of the oldest will touch."""
        cdef double[FORESEEN] scores
        cdef uint32_t count = 0
        cdef Py_ssize_t i
        for i in range(min(AHEAD, batch.size - first)):
            scores[count] = batch.scores[first + i]
            count += 1
        for i in range(min(AHEAD, self.events.held)):
            scores[count] = self.events.scores[self.events.place(i)]
            count += 1
        self.tree.foresee(scores, count)

    cdef int whole(self) except -1:
        """Let the tree hold what is inside."""
        if self.torn:
            self.make_anew()
            if self.torn:
                raise MemoryError("no memory for the events inside; nothing has changed")
        return 0

    cdef void make_anew(self) noexcept nogil:
        """Make the tree of what is inside; without memory for that, when it is next asked for."""
        cdef Py_ssize_t i, at
        self.tree.empty()
        self.torn = False
        for i in range(self.events.held):
            at = self.events.place(i)
            if self.tree.enter(
                self.events.scores[at], self.events.labels[at], self.events.weights[at]
            ) != DONE:
                self.tree.empty()
                self.torn = True
                return

    cdef int enter(self, double score, uint8_t *label, double weight, int64_t time) except -1:
        """Put an event in and let go of those that are too light."""
        cdef int64_t step = time if self.timed else self.seen
        if not self.begun:
            self.begun = True
            self.newest = step
        if step > self.newest:
            self.newest = step
            while self.events.held and distance(self.step(0), step) > self.horizon:
                self.let_go()
        elif distance(step, self.newest) > self.horizon:
            self.seen += 1
            self.late += 1
            label[0] = LATE
            return 0
        weight = self.scaled(step, weight)
        if self.tree.enter(score, label[0], weight) != DONE:
            raise MemoryError("no memory for one more event; nothing has changed")
        self.events.insert(score, label[0], weight, time, self.timed)
        self.seen += 1
        return 0

    cdef inline int64_t step(self, Py_ssize_t number) noexcept nogil:
        """Step of an event by its number from the oldest on."""
        if self.timed:
            return self.events.time(number)
        return self.seen - self.events.held + number

    cdef double scaled(self, int64_t step, double weight) noexcept nogil:
        """What an event of this step weighs, after making room for it in the scale."""
        cdef double since, lives
        if self.events.held == 0:
            self.origin = step
            self.shift = 0
        since = distance(self.origin, step)
        lives = floor(since / self.half_life)
        if <int64_t> lives - self.shift > ROOM:
            self.rescale(<int64_t> lives)
        return self.aged(since, lives, weight)

    cdef inline double aged(self, double since, double lives, double weight) noexcept nogil:
        """weight * 2**(since / half_life - shift), where `lives` are the whole half-lives."""
        # What is left of an exact division fits into a double, and fma does not round before that.
        cdef double rest = fma(-lives, self.half_life, since) / self.half_life
        return ldexp(weight * exp2(rest), <int> (<int64_t> lives - self.shift))

    cdef void rescale(self, int64_t shift) noexcept nogil:
        """Divide all weights by a power of two. O(n), once in 64 half-lives."""
        cdef int exponent = <int> (self.shift - shift)
        cdef Py_ssize_t i, at
        self.tree.scale(exponent)
        for i in range(self.events.held):
            at = self.events.place(i)
            self.events.weights[at] = ldexp(self.events.weights[at], exponent)
        self.moved += exponent
        self.shift = shift

    cdef void move_back(self, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
        """Give events the weights they had when the call began, by their numbers in [low, high)."""
        # What entered since may leave the doubles by that: it goes out again.
        cdef int exponent = <int> min(-self.moved, 1 << 20)
        cdef Py_ssize_t i, at
        if exponent == 0:
            return
        for i in range(low, high):
            at = self.events.place(i)
            self.events.weights[at] = ldexp(self.events.weights[at], exponent)

    cdef void let_go(self) noexcept nogil:
        """Drop the oldest event."""
        cdef Py_ssize_t at = self.events.place(0)
        cdef double score = self.events.scores[at]
        cdef uint8_t label = self.events.labels[at]
        cdef bint loose = self.tree.leave(score, label, self.events.weights[at])
        if self.moved:
            self.move_back(0, 1)
        self.events.drop()
        if loose:
            self.sum_up(score, label)

    cdef void sum_up(self, double score, uint8_t label) noexcept nogil:
        """Sum up the weight of a class at a score from its events. O(n), after heavy ones left."""
        cdef double high = 0, low = 0, slack = 0
        cdef Py_ssize_t i, at
        for i in range(self.events.held):
            at = self.events.place(i)
            if self.events.scores[at] == score and self.events.labels[at] == label:
                add_exactly(&high, &low, &slack, self.events.weights[at])
        self.tree.set_sum(score, label, high, low)

    # Readings

    cdef int read(self, Reader reader) except -1:
        """Write one row."""
        cdef Py_ssize_t i
        cdef int64_t count
        cdef double value
        cdef const Sums *sums
        for i in range(reader.width):
            if reader.codes[i] >= EVENTS and reader.codes[i] <= END:
                if reader.codes[i] == EVENTS:
                    count = self.events.held
                else:
                    count = self.span[reader.codes[i] == END]
                reader.put_whole(i, count)
                continue
            if reader.codes[i] == AUC:
                value = self.tree.auc()
            elif reader.codes[i] == H:
                value = self.tree.h_measure(reader.severity)
            elif reader.codes[i] == POSITIVES or reader.codes[i] == NEGATIVES:
                sums = self.tree.sums()
                value = 0
                if sums != NULL:
                    value = sums.positive if reader.codes[i] == POSITIVES else sums.negative
                    value /= self.unit()
            else:
                value = reader.ask(i, self.built)
            reader.put(i, value)
        reader.end_row()
        return 0

    cdef int read_now(self, Reader reader) except -1:
        self.whole()
        reader.widen()
        return self.read(reader)

    cdef double unit(self) noexcept nogil:
        """What an event of weight 1 as young as the newest weighs."""
        cdef double since = distance(self.origin, self.newest)
        return self.aged(since, floor(since / self.half_life), 1)

    def _check(self):
        """Assert the invariants; O(n log n)."""
        cdef Py_ssize_t i, at
        cdef WeightTree fresh = WeightTree()
        self.whole()
        self.built._check()
        assert self.events.held + self.late <= self.seen
        for i in range(self.events.held):
            at = self.events.place(i)
            assert distance(self.step(i), self.newest) <= self.horizon
            assert i == 0 or self.step(i - 1) <= self.step(i)
            assert self.events.weights[at] > 0
            fresh.enter(self.events.scores[at], self.events.labels[at], self.events.weights[at])
        assert fresh.distinct == self.tree.distinct
        other = DecayRoc()
        (<DecayRoc> other).tree = fresh
        for ours, theirs in zip(self.built._blocks(), other._blocks()):
            assert np.allclose(ours, theirs, rtol=1e-13, atol=0)

    def _bytes(self):
        """Memory held for events, hulls apart."""
        return self.tree.bytes() + self.events.bytes()


cdef inline double distance(int64_t low, int64_t high) noexcept nogil:
    """high - low without overflow."""
    if high >= low:
        return <double> (<uint64_t> high - <uint64_t> low)
    return -<double> (<uint64_t> low - <uint64_t> high)
