"""Blocks of equal scores with real weights, their AUC and their hull, kept in a tree.

Each node has the weights of both classes, U and, once it was asked for, the hull of its part of the
curve (Tatti 2018, sections 4 and 5: U = U_left + U_right + n0_left * n1_right, and a hull is the hull of
its parts' edges in a row). An event makes stale what lies on its way, a reading makes that anew from the
children: only positive terms are added and nothing is taken back from a sum, so nothing drifts.

The one place where weights leave a sum is a score with several events of one class. That sum has twice
the digits of a double, with a bound of its error; where too little is left of it for the bound, whoever
knows the events is asked to sum them up anew.
"""

from libc.math cimport INFINITY, NAN, fabs, fmax, fmin, ldexp
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

import numpy as np

from engine._corners cimport Corners
from engine._fold cimport NEVER, NO_ROW, FoldTree, Node, cells_of, children_of
from engine._severity cimport Severity
from engine._singles cimport sum_four
from engine._sums cimport TIED, Edge, Part, Sums, Tie, push, row_of, single, sums_of, weights_of
from engine._tree cimport DONE, NO_MEMORY, Status

# What an addition to a sum of two doubles errs by at most, and what a sum may err by, as shares of it.
cdef double STEP = 2.0 ** -104, SLACK = 2.0 ** -56

# Hulls on the ways of up to sqrt(n / FEW) events are made anew; of more the hull is found from above.
cdef enum:
    FEW = 25


cdef void add_exactly(double *high, double *low, double *slack, double weight) noexcept nogil:
    """Add to the sum high + low (Knuth's two-sum), and its error to `slack`."""
    cdef double sum = high[0] + weight
    cdef double part = sum - high[0]
    cdef double rest = low[0] + ((high[0] - (sum - part)) + (weight - part))
    slack[0] += fmax(fabs(sum), fabs(high[0])) * STEP
    high[0] = sum + rest
    low[0] = rest - (high[0] - sum)


cdef inline void append(Part *part, double negative, double positive, double u) noexcept nogil:
    """Merge what lies above into a part."""
    part.u += u + part.negative * positive
    part.negative += negative
    part.positive += positive


cdef inline Part sum_singles(const double *cells, uint32_t size) noexcept nogil:
    """Sum up single events."""
    cdef double[4][3] runs
    cdef uint32_t run = size // 4, i
    cdef Part part = [0, 0, 0]
    cdef Edge cell
    sum_four(cells, run, runs)
    for i in range(4):
        append(&part, runs[i][0], runs[i][1], runs[i][2])
    for i in range(4 * run, size):
        cell = single(cells[i])
        append(&part, cell.negative, cell.positive, 0)
    return part


cdef inline Part sum_leaf(const Node *leaf, const Tie *ties) noexcept nogil:
    """Sum up the cells of a leaf."""
    cdef const double *cells = <const double *> cells_of(leaf)
    cdef uint32_t i
    cdef Part part = sum_singles(cells, leaf.size)
    cdef Edge cell
    if part.positive < TIED:
        return part
    part.negative = part.positive = part.u = 0
    for i in range(leaf.size):
        cell = weights_of(cells[i], ties)
        append(&part, cell.negative, cell.positive, cell.negative * cell.positive / 2)
    return part


cdef inline Part sum_children(const Node *node) noexcept nogil:
    """Sum up what the children of an inner node have."""
    cdef Part part = [0, 0, 0]
    cdef const Sums *child
    cdef uint32_t i
    for i in range(node.size):
        child = sums_of(children_of(node)[i])
        append(&part, child.negative, child.positive, child.u)
    return part


cdef inline uint32_t extend(
    Edge *edges, uint32_t size, const Edge *more, uint32_t more_size
) noexcept nogil:
    """Put a hull behind another; how many edges then.

    Once one of its edges stays as it is, so do those behind it.
    """
    cdef uint32_t i, before
    for i in range(more_size):
        before = size
        size = push(edges, size, more[i].negative, more[i].positive)
        if size > before:
            memcpy(edges + size, more + i + 1, (more_size - i - 1) * sizeof(Edge))
            return size + more_size - i - 1
    return size


cdef bint make_room(Sums *sums, uint32_t size) noexcept nogil:
    """Let a node's hull have so many edges; False without memory."""
    cdef void *grown
    if size <= sums.capacity:
        return True
    grown = realloc(sums.edges, (size + size // 2) * sizeof(Edge))
    if grown == NULL:
        return False
    sums.edges = <Edge *> grown
    sums.capacity = size + size // 2
    return True


cdef double loss_of(const Edge *edges, uint32_t size, Severity severity) noexcept nogil:
    """The expected loss of a hull: see `engine._severity`."""
    cdef double loss = 0, share, product
    cdef uint32_t i
    if not severity.polynomial:
        for i in range(size):
            loss += severity.loss(edges[i].negative, edges[i].positive)
        return loss
    for i in range(size):
        share = 1 / (edges[i].negative + edges[i].positive)
        product = edges[i].negative * edges[i].positive * share
        loss += product * (1 + product * share)
    return loss / 2


cdef class WeightTree(FoldTree):
    """Distinct scores in order with the weights of both classes."""

    def __cinit__(self):
        self.cell_bytes = sizeof(double)
        self.summary_bytes = sizeof(Sums)
        self.row_bytes = sizeof(Tie)
        self.now = NEVER + 1
        self.corners = Corners()

    # Events

    cdef Status enter(self, double score, int label, double weight) noexcept nogil:
        """Put an event in; NO_MEMORY leaves the events as they were. O(log n)."""
        cdef uint32_t rank, row
        cdef double *cell
        cdef Tie *tie
        cdef Node *leaf = self.reach_to_add(score, &rank)
        self.since += 1
        if leaf == NULL:
            return NO_MEMORY
        cell = <double *> cells_of(leaf) + rank
        if rank == leaf.size or leaf.keys[rank] != score:
            self.open(leaf, rank, score)
            cell[0] = weight if label else -weight
            return DONE
        if cell[0] < TIED:
            row = self.new_row()
            if row == NO_ROW:
                return NO_MEMORY
            tie = <Tie *> self.row(row)
            tie.events[cell[0] > 0] = 1
            tie.high[cell[0] > 0] = fabs(cell[0])
            cell[0] = TIED * (1 + <double> row)
        tie = <Tie *> self.row(row_of(cell[0]))
        tie.events[label] += 1
        add_exactly(tie.high + label, tie.low + label, tie.slack + label, weight)
        return DONE

    cdef bint leave(self, double score, int label, double weight) noexcept nogil:
        """Take an event out that is inside; True asks for `set_sum`. O(log n)."""
        cdef uint32_t rank
        cdef Tie *tie
        cdef Node *leaf = self.reach_to_remove(score, &rank)
        cdef double *cell = <double *> cells_of(leaf) + rank
        self.since += 1
        if cell[0] < TIED:
            self.close(leaf, rank)
            return False
        tie = <Tie *> self.row(row_of(cell[0]))
        tie.events[label] -= 1
        if tie.events[label] == 0:
            tie.high[label] = tie.low[label] = tie.slack[label] = 0
        else:
            add_exactly(tie.high + label, tie.low + label, tie.slack + label, -weight)
        if tie.slack[label] > SLACK * tie.high[label]:
            return True
        self.untie(cell)
        return False

    cdef void set_sum(self, double score, int label, double high, double low) noexcept nogil:
        """Put right the weight of a class at a score where several events were."""
        cdef uint32_t rank
        cdef Node *leaf = self.find(score, &rank)
        cdef double *cell = <double *> cells_of(leaf) + rank
        cdef Tie *tie = <Tie *> self.row(row_of(cell[0]))
        tie.high[label] = high
        tie.low[label] = low
        tie.slack[label] = 0
        self.untie(cell)

    cdef void untie(self, double *cell) noexcept nogil:
        """Take the row of a score back if a single event is left there."""
        cdef uint32_t row = row_of(cell[0])
        cdef const Tie *tie = <const Tie *> self.row(row)
        if tie.events[0] + tie.events[1] == 1:
            cell[0] = tie.high[1] - tie.high[0]
            self.drop_row(row)

    cdef void scale(self, int exponent) noexcept nogil:
        """Multiply all weights by a power of two, which rounds none. O(n)."""
        cdef double factor = ldexp(1, exponent)
        cdef Node *leaf = self.next_leaf(True)
        cdef uint32_t i
        cdef int label
        cdef double *cells
        cdef Tie *tie
        while leaf != NULL:
            cells = <double *> cells_of(leaf)
            for i in range(leaf.size):
                if cells[i] < TIED:
                    cells[i] *= factor
                    continue
                tie = <Tie *> self.row(row_of(cells[i]))
                for label in range(2):
                    tie.high[label] *= factor
                    tie.low[label] *= factor
                    tie.slack[label] *= factor
            leaf = self.next_leaf(False)
        self.now += 1

    # Sums and hulls

    cdef bint fold(self, Node *node, uint32_t state) noexcept nogil:
        cdef Sums *sums = sums_of(node)
        # Through memory each addition would wait for the one before.
        cdef Part part
        part = sum_children(node) if node.level else sum_leaf(node, <const Tie *> self.rows)
        sums.negative = part.negative
        sums.positive = part.positive
        sums.u = part.u
        sums.hulled = False
        return True

    cdef void forget(self, Node *node) noexcept nogil:
        free(sums_of(node).edges)

    cdef bint hull(self, Node *node) noexcept nogil:
        """Make the hull of a node whose sums hold; False without memory."""
        cdef Sums *sums = sums_of(node)
        cdef const Sums *part
        cdef Edge[64] edges
        cdef Edge weights
        cdef const double *cells = <const double *> cells_of(node)
        cdef uint32_t i, size = 0
        cdef double negative = 0, positive = 0
        if sums.hulled:
            return True
        if node.level == 0:
            for i in range(node.size):
                # Positives and the negatives behind them always join.
                weights = weights_of(cells[i], <const Tie *> self.rows)
                if negative > 0 and weights.positive > 0:
                    size = push(edges, size, negative, positive)
                    negative = positive = 0
                negative += weights.negative
                positive += weights.positive
            if node.size:
                size = push(edges, size, negative, positive)
            if not make_room(sums, size):
                return False
            memcpy(sums.edges, edges, size * sizeof(Edge))
        else:
            for i in range(node.size):
                if not self.hull(children_of(node)[i]):
                    return False
                size += sums_of(children_of(node)[i]).size
            if not make_room(sums, size):
                return False
            size = 0
            for i in range(node.size):
                part = sums_of(children_of(node)[i])
                size = extend(sums.edges, size, part.edges, part.size)
        sums.size = size
        sums.hulled = True
        return True

    # Readings

    cdef Sums *sums(self) noexcept nogil:
        """Sums of all that is inside; NULL when that is nothing. O(changes * log n)."""
        if self.root == NULL:
            return NULL
        self.refresh(self.root, self.now)
        return sums_of(self.root)

    cdef double auc(self) noexcept nogil:
        """U / (n0 n1); nan while a class is absent."""
        cdef const Sums *sums = self.sums()
        if sums == NULL or sums.negative == 0 or sums.positive == 0:
            return NAN
        return fmin(sums.u / (sums.negative * sums.positive), 1.0)

    cdef const Edge *edges(self, uint32_t *size) except NULL:
        """Edges of the hull of all that is inside, which is not nothing, and how many they are."""
        cdef const Sums *sums = self.sums()
        cdef bint many = self.since * FEW * self.since > self.distinct, done
        self.since = 0
        if many:
            done = self.corners.find(self.root, <const Tie *> self.rows)
        else:
            done = self.hull(self.root)
        if not done:
            raise MemoryError("no memory for the hull; nothing has changed")
        if many:
            size[0] = self.corners.size
            return self.corners.edges
        size[0] = sums.size
        return sums.edges

    cdef double h_measure(self, Severity severity) except? -1:
        """H with priors from the data; nan while a class is absent."""
        cdef const Sums *sums = self.sums()
        cdef const Edge *edges
        cdef uint32_t size
        cdef double loss = 0, worst
        if sums == NULL or sums.negative == 0 or sums.positive == 0:
            return NAN
        edges = self.edges(&size)
        loss = loss_of(edges, size, severity)
        worst = severity.loss(sums.negative, sums.positive)
        if worst == 0:
            return NAN
        return fmin(fmax(1 - loss / worst, 0.0), 1.0)

    cdef void write(self, double *scores, double *negative, double *positive) noexcept nogil:
        """Write each distinct score, ascending, with the weight of both classes there."""
        cdef Node *leaf = self.next_leaf(True)
        cdef Py_ssize_t at = 0
        cdef uint32_t i
        cdef Edge weights
        while leaf != NULL:
            for i in range(leaf.size):
                scores[at] = leaf.keys[i]
                weights = weights_of((<double *> cells_of(leaf))[i], <const Tie *> self.rows)
                negative[at] = weights.negative
                positive[at] = weights.positive
                at += 1
            leaf = self.next_leaf(False)

    def _check(self):
        """Assert the invariants of cells, rows and sums; O(n)."""
        cdef Node *leaf
        cdef uint32_t i, row, rows = 0, free_rows = 0
        cdef double cell
        cdef const Tie *tie
        cdef int label
        super()._check()
        leaf = self.next_leaf(True)
        while leaf != NULL:
            for i in range(leaf.size):
                cell = (<const double *> cells_of(leaf))[i]
                if cell < TIED:
                    assert cell
                    continue
                rows += 1
                tie = <const Tie *> self.row(row_of(cell))
                assert tie.events[0] + tie.events[1] > 1
                for label in range(2):
                    assert (tie.high[label] > 0) == (tie.events[label] > 0)
                    assert tie.high[label] + tie.low[label] == tie.high[label]
                    assert tie.slack[label] <= SLACK * tie.high[label]
            leaf = self.next_leaf(False)
        row = self.free_row
        while row != NO_ROW:
            free_rows += 1
            row = (<uint32_t *> self.row(row))[0]
        assert rows + free_rows == self.rows_used
        if self.root == NULL:
            return
        scores, negative, positive = np.empty((3, self.distinct))
        cdef double[::1] s = scores, n = negative, p = positive
        self.write(&s[0], &n[0], &p[0])
        u = (positive * (np.cumsum(negative) - negative / 2)).sum()
        assert np.isclose(self.sums().negative, negative.sum(), rtol=1e-12, atol=0)
        assert np.isclose(self.sums().positive, positive.sum(), rtol=1e-12, atol=0)
        assert np.isclose(self.sums().u, u, rtol=1e-12, atol=0)
