"""ROC of ordered classes: the public face of the tree of matrices (`_products`).

While every weight is 1 events are counts in the tree. With others inside, the exact sums per score and
class are the twin's cells, and the tree has what they round to; when the last such weight leaves, all
are counts again.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc

from engine._batch cimport Batch, batch_of_columns
from engine._fold cimport Node
from engine._products cimport MOST, TIED, ProductTree, tags_of
from engine._tree cimport DONE, NO_MEMORY, Status

from engine.events import class_of, ordinal_columns_of, ordinal_weight_of, score_of
from engine.reference.cells import EMPTY, Cell, exact
from engine.reference.ordinal import MOST_CLASSES

# Weights scaled to their unit are not heavier than this.
cdef double HEAVY = 2.0 ** 60


cdef int refuse(Status status, double score, int label) except -1:
    """Raise what a status stands for; 0 for DONE."""
    if status == DONE:
        return 0
    if status == NO_MEMORY:
        raise MemoryError("no memory for one more event; nothing has changed")
    raise KeyError(f"class {label} has less weight than 1.0 at {score!r}")


cdef class OrdinalRoc:
    """Changing multiset of (score, label, weight) with labels 0 .. r-1 in order.

    Parameters
    ----------
    classes
        r, from 2 to 8.

    Raises
    ------
    ValueError
        When there are fewer classes or more.

    Notes
    -----
    With weights of 1 and r! times the product of the classes' sizes under 2**127 (r = 4: 2e9 events,
    r = 6: 5e6, r = 8: 1.3e5, in equal classes) the volume is correctly rounded, up from where it
    exceeded that once under 2**120; else it is within 1e-12.

    Examples
    --------
    >>> from engine import OrdinalRoc
    >>> roc = OrdinalRoc(classes=3)
    >>> roc.extend([0.1, 0.5, 0.5, 0.9], [0, 1, 2, 2])
    >>> roc.vuhs()
    0.75
    """

    def __cinit__(self, classes):
        if isinstance(classes, bool) or classes not in range(2, MOST_CLASSES + 1):
            raise ValueError(f"classes must be 2 to {MOST_CLASSES}, got {classes!r}")
        self.tree = ProductTree(int(classes))

    @property
    def classes(self):
        """r."""
        return self.tree.classes

    def __len__(self):
        """Return how many events are inside; O(1)."""
        return self.events

    def add(self, score, label, weight=1):
        """Put an event in; O(log n).

        Raises
        ------
        ValueError
            When the score or the weight is bad, or the label none of the classes; nothing has
            changed then.
        """
        self.add_event(score_of(score), class_of(label, self.tree.classes), ordinal_weight_of(weight))

    def remove(self, score, label, weight=1):
        """Take an event out; O(log n).

        Raises
        ------
        KeyError
            When that class has less weight at that score; nothing has changed then.
        ValueError
            As for `add`.
        """
        self.remove_event(score_of(score), class_of(label, self.tree.classes), ordinal_weight_of(weight))

    def extend(self, scores, labels, weights=None):
        """Put many events in, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad as for `add`, or the lengths are unequal.
        """
        columns = ordinal_columns_of(scores, labels, self.tree.classes, weights)
        self.enter_all(batch_of_columns(columns))

    # Copies and pickles

    def __reduce__(self):
        self.check_idle()
        cells = self.cells
        if cells is not None:
            cells = {score: row.copy() for score, row in cells.items()}
        return type(self)._of_rows, (self.tree.classes, self.rows(), cells)

    @classmethod
    def _of_rows(cls, classes, rows, cells):
        """Make one of the weight of each class at each score and, if those are no counts, its cells."""
        cdef OrdinalRoc roc = cls(classes)
        cdef double[8] weights
        cdef int k
        roc.tree.weighted = cells is not None
        roc.cells = cells
        for score, row in rows:
            for k in range(roc.tree.classes):
                weights[k] = row[k]
            refuse(roc.tree.put(score, weights), score, 0)
            held = row if cells is None else [cell.events for cell in cells[score]]
            for k in range(roc.tree.classes):
                roc.tree.counts[k] += int(held[k])
                roc.events += int(held[k])
                roc.uneven += cells is not None and cells[score][k].uneven
        if cells is not None:
            roc.tree.choose_units()
        return roc

    cdef list rows(self):
        """Every score with the weight of each class there."""
        cdef Node *leaf = self.tree.next_leaf(True)
        cdef const double *row
        cdef uint32_t i, tag
        cdef int k
        rows = []
        while leaf != NULL:
            for i in range(leaf.size):
                tag = tags_of(leaf)[i]
                here = [1.0 * (k == <int> tag) for k in range(self.tree.classes)]
                if tag >= TIED:
                    row = <const double *> self.tree.row(tag - TIED)
                    here = [row[k] for k in range(self.tree.classes)]
                rows.append((leaf.keys[i], here))
            leaf = self.tree.next_leaf(False)
        return rows

    def vuhs(self):
        """Volume under the ROC hyper-surface: P(X0 <= X1 <= ... <= X(r-1)), one X of each class.

        A run of b equalities counts 1 / (b + 1)!, so that useless scores give 1 / r!.

        Returns
        -------
        vuhs
            In [0, 1]; nan while a class is absent. With two classes the AUC.

        Notes
        -----
        O(r^3 log n) for each event since the last reading, O(r^3 n / 64) at most.
        """
        self.check_idle()
        return self.tree.vuhs()

    # Below Python

    cdef int check_idle(self) except -1:
        """Keep other threads out, which the cells, being Python's, may let in half-way."""
        if self.busy:
            raise RuntimeError("another thread is changing this OrdinalRoc")
        return 0

    cdef int enter_all(self, Batch batch) except -1:
        """Put a batch in, all or none."""
        cdef Py_ssize_t i = 0, undo
        self.check_idle()
        if batch.weights != NULL or self.cells is not None:
            return self.enter_weighted(batch)
        try:
            for i in range(batch.size):
                self.add_event(batch.scores[i], batch.labels[i], 1)
        except BaseException:
            for undo in range(i):
                self.remove_event(batch.scores[undo], batch.labels[undo], 1)
            raise
        return 0

    cdef int enter_weighted(self, Batch batch) except -1:
        """Put a batch in where weights differ. What taking it back needs is kept meanwhile."""
        cdef Py_ssize_t done = 0
        cdef list log = [None] * batch.size, row
        cdef Past *past = <Past *> malloc(batch.size * sizeof(Past) + 1)
        if past == NULL:
            raise MemoryError("no memory for more events; nothing has changed")
        self.busy = True
        try:
            if self.cells is None:
                self.to_weights()
            while done < batch.size:
                mass = 1 if batch.weights == NULL else exact(batch.weights[done])
                log[done] = self.change_cell(
                    batch.scores[done], batch.labels[done], mass, True, &past[done]
                )
                done += 1
        except BaseException:
            while done:
                done -= 1
                key, row, old = log[done]
                self.set_cell(
                    key, row, batch.labels[done], old, past[done].weights, -past[done].uneven
                )
            raise
        finally:
            self.busy = False
            free(past)
            if self.uneven == 0:
                self.to_counts()
        return 0

    cdef int clear(self) except -1:
        """Forget everything and give the memory back."""
        cdef int k
        self.tree.empty()
        for k in range(MOST):
            self.tree.counts[k] = 0
        self.tree.large = False
        self.events = self.uneven = 0
        return self.to_counts()

    cdef int add_event(self, double score, int label, double weight) except -1:
        self.check_idle()
        if weight != 1 or self.cells is not None:
            return self.change_weight(score, label, weight, True)
        refuse(self.tree.enter(score, label), score, label)
        self.events += 1
        return 0

    cdef int remove_event(self, double score, int label, double weight) except -1:
        self.check_idle()
        if weight != 1 or self.cells is not None:
            return self.change_weight(score, label, weight, False)
        refuse(self.tree.leave(score, label), score, label)
        self.events -= 1
        return 0

    # With weights: exact sums per score and class, and what they round to in the tree.

    cdef int change_weight(self, double score, int label, double weight, bint enters) except -1:
        """Put one event in, or take weight out."""
        cdef Past past
        self.busy = True
        try:
            if self.cells is None:
                self.to_weights()
            self.change_cell(score, label, exact(weight), enters, &past)
        finally:
            self.busy = False
            if self.uneven == 0:
                self.to_counts()
        return 0

    cdef tuple change_cell(self, double score, int label, object mass, bint enters, Past *past):
        """Add the weight of one event at a score, or take it back. All or nothing.

        Returns the key, the row and the cell that was there, which with `past` are what
        `set_cell` takes to undo it, without a need of memory.
        """
        cdef double[8] weights
        cdef int k
        cdef list row
        key = score
        held = self.cells.get(key)
        row = [EMPTY] * self.tree.classes if held is None else held
        old = row[label]
        if not enters and old.weight < mass:
            raise KeyError(f"class {label} has less weight than {float(mass)!r} at {score!r}")
        # All that takes memory comes first, so that nothing is half done where it is out.
        new = old.plus(mass) if enters else old.minus(mass)
        was = key, row, old
        for k in range(self.tree.classes):
            past.weights[k] = weights[k] = float(row[k].weight)
        weights[label] = float(new.weight)
        past.uneven = <int> new.uneven - <int> old.uneven
        if held is None:
            self.cells[key] = row
        try:
            self.set_cell(key, row, label, new, weights, past.uneven)
        except MemoryError:
            if held is None:
                del self.cells[key]
            raise
        if weights[label] * self.tree.units[label] > HEAVY:
            self.tree.choose_units()
        return was

    cdef int set_cell(
        self, object key, list row, int label, object cell, const double *weights, int uneven
    ) except -1:
        """Let a class have a cell in a row, which then has these weights. All or nothing."""
        cdef Py_ssize_t events = <Py_ssize_t> cell.events - <Py_ssize_t> row[label].events
        cdef int k
        refuse(self.tree.put(key, weights), key, label)
        row[label] = cell
        self.events += events
        self.tree.counts[label] += events
        self.uneven += uneven
        for k in range(self.tree.classes):
            if weights[k]:
                return 0
        del self.cells[key]
        return 0

    cdef int to_weights(self) except -1:
        """Let weights differ. O(n)."""
        cells = {}
        for score, row in self.rows():
            cells[score] = [Cell(int(count), int(count)) for count in row]
        self.cells = cells
        self.tree.weighted = True
        return 0

    cdef int to_counts(self) except -1:
        """All weights are 1 again."""
        cdef int k
        for k in range(MOST):
            self.tree.units[k] = 1
        self.tree.real_state += 1
        self.tree.weighted = False
        self.cells = None
        return 0

    def _check(self):
        """Assert the invariants; O(n)."""
        self.tree._check()
        assert self.events == sum(self.tree.counts[k] for k in range(self.tree.classes))
        assert self.tree.weighted == (self.cells is not None)
        if self.cells is None:
            return
        assert self.uneven == sum(cell.uneven for row in self.cells.values() for cell in row) > 0
        for k in range(self.tree.classes):
            assert self.tree.counts[k] == sum(row[k].events for row in self.cells.values())
        assert len(self.cells) == self.tree.distinct
        for score, row in self.rows():
            assert row == [float(cell.weight) for cell in self.cells[score]]

    def _bytes(self):
        """Memory held for events while all weights are 1, without the objects themselves."""
        return self.tree.bytes()
