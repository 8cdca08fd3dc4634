"""ROC of ordered classes: its volume as one product of matrices, kept in a tree.

A block of equal scores with weights d stands for the upper triangular matrix

    M[a][b] = d[a] ... d[b-1] / (b - a)! * b! / a!,    M[a][a] = 1

which takes chains through the classes below a to chains through the classes below b; the product of
all blocks from low scores to high has r! n0 ... n(r-1) VUHS at [0][r]. (Wu, Zhu, Xiao and Xu 2024 have
the 1 / (b - a)!; the factor b! / a! cancels between neighbours and makes every entry whole.) Only
entries above the diagonal are kept and multiplied.

While every weight is 1 and r! n0 ... n(r-1) is under 2**127 products are whole numbers, of 64 bits or 128:
nothing rounds until the last division, which rounds correctly, so that no reading depends on the order
of events. Beyond, and with weights, they are doubles. Weights are then scaled per class by a power of
two, so that no product of eight leaves the doubles.
"""

from libc.math cimport NAN, fmax, fmin, frexp, ldexp
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from engine._batch cimport pointer_of
from engine._chains cimport fold_four
from engine._fold cimport NEVER, NO_ROW, FoldTree, Node
from engine._ratio cimport Whole, wide_ratio
from engine._tree cimport ABSENT, DONE, NO_MEMORY, Status

import numpy as np

from engine.events import class_of, ordinal_columns_of, score_of, weight_of
from engine.reference.cells import Cell, exact
from engine.reference.ordinal import MOST_CLASSES

ctypedef fused Number:
    uint64_t
    Whole
    double

cdef enum:
    MOST = 8
    # Of summaries made of whole numbers of 64 and of 128 bits; those of doubles have larger ones.
    SHORT_STATE = NEVER + 1
    LONG_STATE = NEVER + 2
    ROW = 8  # entries of a column in a leaf
    TIED = 8  # see tags_of

# Whole numbers of 64 bits hold products under the first of these, of 128 bits those under the second;
# doubles give way to them again under the third.
cdef double TOO_LONG = 1.8e19, TOO_LARGE = 2.0 ** 127, SMALL_ENOUGH = 2.0 ** 120
# Weights scaled to their unit are kept within these.
cdef double HEAVY = 2.0 ** 60, LIGHT = 2.0 ** -60

cdef int64_t[9] FACTORIAL
cdef int64_t[9][9] CHOOSE
cdef int64_t[9][9] SCALE  # b! / a!


cdef void fill_tables() noexcept nogil:
    cdef int n, k
    FACTORIAL[0] = 1
    for n in range(1, MOST + 1):
        FACTORIAL[n] = n * FACTORIAL[n - 1]
    for n in range(MOST + 1):
        for k in range(n + 1):
            SCALE[n][k] = FACTORIAL[n] // FACTORIAL[k]
            CHOOSE[n][k] = SCALE[n][k] // FACTORIAL[n - k]


fill_tables()


cdef inline uint32_t *tags_of(const Node *leaf) noexcept nogil:
    """The cells of a leaf: the class of a single event, or TIED + a row."""
    return <uint32_t *> leaf.cells


cdef inline int at(int a, int b) noexcept nogil:
    """Where [a][b], a < b, stands: column by column."""
    return b * (b - 1) // 2 + a


cdef inline void multiply(Number *product, const Number *right, int r) noexcept nogil:
    """Multiply by a matrix from the right, in place: a column needs only columns before it."""
    cdef int a, b, k
    cdef Number entry
    for b in range(r, 0, -1):
        for a in range(b):
            entry = product[at(a, b)] + right[at(a, b)]
            for k in range(a + 1, b):
                entry += product[at(a, k)] * right[at(k, b)]
            product[at(a, b)] = entry


cdef inline void multiply_all(
    Number *product, Node **children, uint32_t size, int r
) noexcept nogil:
    """Multiply the summaries of children; `r` is a constant where this is compiled."""
    cdef uint32_t i
    memcpy(product, children[0].summary, r * (r + 1) // 2 * sizeof(Number))
    for i in range(1, size):
        multiply[Number](product, <const Number *> children[i].summary, r)


cdef void fold_inner(Number *product, Node **children, uint32_t size, int r) noexcept nogil:
    if r == 2:
        multiply_all[Number](product, children, size, 2)
    elif r == 3:
        multiply_all[Number](product, children, size, 3)
    elif r == 4:
        multiply_all[Number](product, children, size, 4)
    elif r == 5:
        multiply_all[Number](product, children, size, 5)
    elif r == 6:
        multiply_all[Number](product, children, size, 6)
    elif r == 7:
        multiply_all[Number](product, children, size, 7)
    else:
        multiply_all[Number](product, children, size, 8)


cdef inline void multiply_event(Number *product, int label, Number weight) noexcept nogil:
    """Multiply by the block of one class: only the column behind it changes."""
    cdef int a
    for a in range(label):
        product[at(a, label + 1)] += weight * (label + 1) * product[at(a, label)]
    product[at(label, label + 1)] += weight * (label + 1)


cdef inline void multiply_block(Number *product, const Number *weights, int r) noexcept nogil:
    """Multiply by the block of several classes at one score."""
    cdef int a, b, k
    cdef Number through
    cdef Number[8] column
    for b in range(r, 0, -1):
        through = 1
        for k in range(b - 1, -1, -1):
            through *= weights[k]
            column[k] = through * CHOOSE[b][k]
        if weights[b - 1] == 0:
            continue
        for a in range(b):
            through = product[at(a, b)] + column[a]
            for k in range(a + 1, b):
                through += product[at(a, k)] * column[k]
            product[at(a, b)] = through


cdef void fold_ties(
    Number *product, const Node *leaf, const char *rows, const double *units, int r
) noexcept nogil:
    """Multiply the blocks of a leaf, whatever they hold; `rows` are the weights of tied scores."""
    cdef Number[8] weights
    cdef uint32_t i, tag
    cdef const double *row
    cdef int k
    for k in range(r * (r + 1) // 2):
        product[k] = 0
    for i in range(leaf.size):
        tag = tags_of(leaf)[i]
        if tag < TIED:
            multiply_event[Number](product, <int> tag, <Number> (units[tag] if Number is double else 1))
        else:
            row = <const double *> rows + (tag - TIED) * r
            for k in range(r):
                if Number is double:
                    weights[k] = row[k] * units[k]
                else:
                    weights[k] = <Number> <int64_t> row[k]
            multiply_block[Number](product, weights, r)


cdef inline bint fold_columns(uint32_t *columns, const Node *leaf) noexcept nogil:
    cdef const uint32_t *tags = tags_of(leaf)
    cdef uint32_t *column
    cdef uint32_t i, tag
    cdef int j
    for i in range(leaf.size):
        tag = tags[i]
        if tag >= TIED:
            return False
        column = columns + tag * ROW
        for j in range(ROW):
            column[ROW + j] += column[j]
    return True


cdef bint fold_singles(uint32_t *columns, const Node *leaf, int r) noexcept nogil:
    """Multiply the blocks of a leaf of single events, column by column; False if some tie.

    Without ties no factor is needed, and the chains through 64 events stay within 32 bits.
    """
    cdef int k
    if r <= 4:
        return fold_four(columns, tags_of(leaf), leaf.size)
    memset(columns, 0, (r + 1) * ROW * sizeof(uint32_t))
    for k in range(r):
        columns[k * ROW + k] = 1
    return fold_columns(columns, leaf)


cdef class ProductTree(FoldTree):
    """Distinct scores with the weights of up to eight classes, and the product of their matrices."""

    def __cinit__(self, int classes):
        cdef int k
        self.classes = classes
        self.cell_bytes = sizeof(uint32_t)
        self.summary_bytes = classes * (classes + 1) // 2 * sizeof(Whole)
        self.row_bytes = classes * sizeof(double)
        self.real_state = LONG_STATE + 1
        for k in range(MOST):
            self.units[k] = 1

    # Events

    cdef Status enter(self, double score, int label) noexcept nogil:
        """Count one event of weight 1; anything but DONE leaves the events as they were."""
        cdef uint32_t rank
        cdef Status status
        cdef Node *leaf = self.reach_to_add(score, &rank)
        if leaf == NULL:
            return NO_MEMORY
        if rank == leaf.size or leaf.keys[rank] != score:
            self.open(leaf, rank, score)
            tags_of(leaf)[rank] = label
        else:
            status = self.tie(leaf, rank)
            if status != DONE:
                return status
            (<double *> self.row(tags_of(leaf)[rank] - TIED))[label] += 1
        self.counts[label] += 1
        return DONE

    cdef Status leave(self, double score, int label) noexcept nogil:
        """Forget one event of weight 1; ABSENT leaves the events as they were."""
        cdef uint32_t rank
        cdef double *row
        cdef Node *leaf = self.reach_to_remove(score, &rank)
        if leaf == NULL:
            return ABSENT
        if tags_of(leaf)[rank] < TIED:
            if <int> tags_of(leaf)[rank] != label:
                return ABSENT
            self.close(leaf, rank)
        else:
            row = <double *> self.row(tags_of(leaf)[rank] - TIED)
            if row[label] < 1:
                return ABSENT
            row[label] -= 1
            self.untie(leaf, rank)
        self.counts[label] -= 1
        return DONE

    cdef Status put(self, double score, const double *weights) noexcept nogil:
        """Set the weight of every class at a score; none of any takes the score out.

        NO_MEMORY leaves the events as they were; at a score with a row none is needed.
        """
        cdef uint32_t rank, row = NO_ROW
        cdef int k
        cdef double heaviest = 0
        cdef Node *leaf = self.reach_to_remove(score, &rank)
        cdef bint fresh = leaf == NULL
        for k in range(self.classes):
            heaviest = fmax(heaviest, weights[k])
        if heaviest == 0:
            if leaf != NULL:
                if tags_of(leaf)[rank] >= TIED:
                    self.drop_row(tags_of(leaf)[rank] - TIED)
                self.close(leaf, rank)
            return DONE
        # All that takes memory comes first: what is entered need not be taken back.
        if fresh or tags_of(leaf)[rank] < TIED:
            row = self.new_row()
            if row == NO_ROW:
                return NO_MEMORY
        if fresh:
            leaf = self.reach_to_add(score, &rank)
            if leaf == NULL:
                self.drop_row(row)
                return NO_MEMORY
            self.open(leaf, rank, score)
        if row != NO_ROW:
            tags_of(leaf)[rank] = TIED + row
        memcpy(self.row(tags_of(leaf)[rank] - TIED), weights, self.row_bytes)
        self.untie(leaf, rank)
        return DONE

    cdef Status tie(self, Node *leaf, uint32_t rank) noexcept nogil:
        """Give a score a row of weights."""
        cdef uint32_t row
        if tags_of(leaf)[rank] >= TIED:
            return DONE
        row = self.new_row()
        if row == NO_ROW:
            return NO_MEMORY
        (<double *> self.row(row))[tags_of(leaf)[rank]] = 1
        tags_of(leaf)[rank] = TIED + row
        return DONE

    cdef void untie(self, Node *leaf, uint32_t rank) noexcept nogil:
        """Take a score's row back if it says no more than one event of weight 1 does."""
        cdef const double *row = <const double *> self.row(tags_of(leaf)[rank] - TIED)
        cdef int k, label = 0, there = 0
        for k in range(self.classes):
            if row[k]:
                there += 1
                label = k
        if there == 1 and row[label] == 1:
            self.drop_row(tags_of(leaf)[rank] - TIED)
            tags_of(leaf)[rank] = label

    # Folding

    cdef bint fold(self, Node *node, uint32_t state) noexcept nogil:
        if state == SHORT_STATE:
            self.fold_whole[uint64_t](<uint64_t *> node.summary, node)
        elif state == LONG_STATE:
            self.fold_whole[Whole](<Whole *> node.summary, node)
        elif node.level:
            fold_inner[double](<double *> node.summary, node.children, node.size, self.classes)
        else:
            fold_ties[double](<double *> node.summary, node, self.rows, self.units, self.classes)
        return True

    cdef void fold_whole(self, Exact *product, const Node *node) noexcept nogil:
        """Fold a node into whole numbers."""
        cdef uint32_t[9 * 8] columns
        cdef int r = self.classes, a, b
        if node.level:
            fold_inner[Exact](product, node.children, node.size, r)
        elif fold_singles(columns, node, r):
            for b in range(1, r + 1):
                for a in range(b):
                    product[at(a, b)] = <Exact> columns[b * ROW + a] * <Exact> SCALE[b][a]
        else:
            fold_ties[Exact](product, node, self.rows, self.units, r)

    # Reading

    cdef double vuhs(self) except? -1:
        """The volume; nan while a class is absent. O(changes * r^3 * log n)."""
        cdef int k
        cdef double bound = <double> FACTORIAL[self.classes]
        cdef Whole whole = FACTORIAL[self.classes], part
        for k in range(self.classes):
            bound *= <double> max(self.counts[k], 1)
        if self.large != (bound >= (SMALL_ENOUGH if self.large else TOO_LARGE)):
            self.large = not self.large
        for k in range(self.classes):
            if self.counts[k] == 0:
                return NAN
        if self.large or self.weighted:
            return self.real_vuhs()
        for k in range(self.classes):
            whole *= <Whole> self.counts[k]
        if bound < TOO_LONG:
            self.refresh(self.root, SHORT_STATE)
            part = (<uint64_t *> self.root.summary)[at(0, self.classes)]
        else:
            self.refresh(self.root, LONG_STATE)
            part = (<Whole *> self.root.summary)[at(0, self.classes)]
        return wide_ratio(part, whole)

    cdef double real_vuhs(self) except? -1:
        """The volume from products of doubles."""
        cdef int k, tries
        cdef double whole = 0, weight
        cdef const double *product
        for tries in range(2):
            self.refresh(self.root, self.real_state)
            product = <const double *> self.root.summary
            whole = <double> FACTORIAL[self.classes]
            for k in range(self.classes):
                # What stands above the diagonal is the weight of the class.
                weight = product[at(k, k + 1)] / (k + 1)
                if weight < LIGHT and tries == 0:
                    self.choose_units()
                    break
                whole *= weight
            else:
                break
        return fmin(product[at(0, self.classes)] / whole, 1.0)

    cdef void choose_units(self) noexcept nogil:
        """Scale every class so that its heaviest weight lies between 1/2 and 1. O(n)."""
        cdef Node *leaf = self.next_leaf(True)
        cdef uint32_t i, tag
        cdef int k, exponent
        cdef const double *row
        cdef double[8] heaviest
        memset(heaviest, 0, sizeof(heaviest))
        while leaf != NULL:
            for i in range(leaf.size):
                tag = tags_of(leaf)[i]
                if tag < TIED:
                    heaviest[tag] = fmax(heaviest[tag], 1)
                    continue
                row = <const double *> self.row(tag - TIED)
                for k in range(self.classes):
                    heaviest[k] = fmax(heaviest[k], row[k])
            leaf = self.next_leaf(False)
        for k in range(self.classes):
            frexp(heaviest[k], &exponent)
            self.units[k] = ldexp(1, min(-exponent, 1023))
        self.real_state += 1

    def _check(self):
        """Assert the invariants of cells and rows; O(n)."""
        cdef Node *leaf = self.next_leaf(True)
        cdef uint32_t i, tag, rows = 0, free = 0
        cdef const double *row
        super()._check()
        weights = [0.0] * self.classes
        while leaf != NULL:
            for i in range(leaf.size):
                tag = tags_of(leaf)[i]
                if tag < TIED:
                    assert <int> tag < self.classes
                    weights[tag] += 1
                    continue
                rows += 1
                row = <const double *> self.row(tag - TIED)
                here = [row[k] for k in range(self.classes)]
                assert min(here) >= 0
                assert sorted(here)[-2:] != [0, 1]
                assert max(here) > 0
                weights = [sum(pair) for pair in zip(weights, here)]
            leaf = self.next_leaf(False)
        tag = self.free_row
        while tag != NO_ROW:
            free += 1
            tag = (<uint32_t *> self.row(tag))[0]
        assert rows + free == self.rows_used
        if not self.weighted:
            assert weights == [self.counts[k] for k in range(self.classes)]


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
        self.add_event(score_of(score), class_of(label, self.tree.classes), weight_of(weight))

    def remove(self, score, label, weight=1):
        """Take an event out; O(log n).

        Raises
        ------
        KeyError
            When that class has less weight at that score; nothing has changed then.
        ValueError
            As for `add`.
        """
        self.remove_event(score_of(score), class_of(label, self.tree.classes), weight_of(weight))

    def extend(self, scores, labels, weights=None):
        """Put many events in, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad as for `add`, or the lengths are unequal.
        """
        columns = ordinal_columns_of(scores, labels, self.tree.classes, weights)
        cdef Py_ssize_t size = len(columns.scores), i, undo
        if size == 0:
            return
        cdef const double *s = <double *> pointer_of(columns.scores)
        cdef const unsigned char *y = <unsigned char *> pointer_of(columns.labels)
        cdef const double *w = NULL
        if columns.weights is not None:
            w = <double *> pointer_of(columns.weights)
        i = 0
        try:
            for i in range(size):
                self.add_event(s[i], y[i], 1 if w == NULL else w[i])
        except BaseException:
            for undo in range(i - 1, -1, -1):
                self.remove_event(s[undo], y[undo], 1 if w == NULL else w[undo])
            raise

    # Copies and pickles

    def __reduce__(self):
        return type(self)._of_rows, (self.tree.classes, self.rows(), self.cells)

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
        return self.tree.vuhs()

    # Below Python

    cdef int add_event(self, double score, int label, double weight) except -1:
        if weight == 1 and self.cells is None:
            refuse(self.tree.enter(score, label), score, label)
            self.events += 1
            return 0
        if self.cells is None:
            self.to_weights()
        try:
            self.change_cell(score, label, exact(weight), True)
        finally:
            if self.uneven == 0:
                self.to_counts()
        return 0

    cdef int remove_event(self, double score, int label, double weight) except -1:
        if weight == 1 and self.cells is None:
            refuse(self.tree.leave(score, label), score, label)
            self.events -= 1
            return 0
        if self.cells is None:
            self.to_weights()
        try:
            self.change_cell(score, label, exact(weight), False)
        finally:
            if self.uneven == 0:
                self.to_counts()
        return 0

    # With weights: exact sums per score and class, and what they round to in the tree.

    cdef int change_cell(self, double score, int label, object mass, bint enters) except -1:
        """Add the weight of one event at a score, or take it back. All or nothing."""
        cdef double[8] weights
        cdef int k
        key = score
        row = self.cells.get(key)
        fresh = row is None
        if fresh:
            row = [Cell() for _ in range(self.tree.classes)]
        old = row[label]
        if not enters and old.weight < mass:
            raise KeyError(f"class {label} has less weight than {float(mass)!r} at {score!r}")
        # All that takes memory comes first, so that nothing is half done where it is out.
        new = Cell()
        new.events, new.weight = old.events, old.weight
        if enters:
            new.add(mass)
        else:
            new.remove(mass)
        cdef Py_ssize_t events = new.events - old.events
        cdef int uneven = <int> new.uneven - <int> old.uneven
        for k in range(self.tree.classes):
            weights[k] = float(row[k].weight)
        weights[label] = float(new.weight)
        if fresh:
            self.cells[key] = row
        try:
            refuse(self.tree.put(score, weights), score, label)
        except BaseException:
            if fresh:
                del self.cells[key]
            raise
        row[label] = new
        self.events += events
        self.tree.counts[label] += events
        self.uneven += uneven
        for k in range(self.tree.classes):
            if weights[k]:
                break
        else:
            del self.cells[key]
        if weights[label] * self.tree.units[label] > HEAVY:
            self.tree.choose_units()
        return 0

    cdef int to_weights(self) except -1:
        """Let weights differ. O(n)."""
        cells = {}
        for score, row in self.rows():
            cells[score] = here = [Cell() for _ in row]
            for cell, count in zip(here, row):
                cell.events = cell.weight = int(count)
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
