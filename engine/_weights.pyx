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

from engine._fold cimport LEAF, NEVER, NO_ROW, FoldTree, Node
from engine._severity cimport Severity
from engine._tree cimport DONE, NO_MEMORY, Status

cdef enum:
    SINGLE = 0xFFFFFFFF  # the tag of a score with one event; others are a row

# What an addition to a sum of two doubles errs by at most, and what a sum may err by, as shares of it.
cdef double STEP = 2.0 ** -104, SLACK = 2.0 ** -56


cdef void add_exactly(double *high, double *low, double *slack, double weight) noexcept nogil:
    """Add to the sum high + low (Knuth's two-sum), and its error to `slack`."""
    cdef double sum = high[0] + weight
    cdef double part = sum - high[0]
    cdef double rest = low[0] + ((high[0] - (sum - part)) + (weight - part))
    slack[0] += fmax(fabs(sum), fabs(high[0])) * STEP
    high[0] = sum + rest
    low[0] = rest - (high[0] - sum)


cdef inline void append(Sums *sums, double negative, double positive, double u) noexcept nogil:
    """Merge what lies above into sums."""
    sums.u += u + sums.negative * positive
    sums.negative += negative
    sums.positive += positive


cdef void sum_up(Sums *sums, const double *cells, uint32_t size) noexcept nogil:
    """Sum up the cells of a leaf: four quarters side by side, as each only waits for itself."""
    cdef double[4] negative, positive, u
    cdef uint32_t quarter = size // 4, i, part
    cdef const double *cell
    for part in range(4):
        negative[part] = positive[part] = u[part] = 0
    for i in range(quarter):
        for part in range(4):
            cell = cells + 2 * (part * quarter + i)
            u[part] += cell[1] * (negative[part] + cell[0] / 2)
            negative[part] += cell[0]
            positive[part] += cell[1]
    for part in range(4):
        append(sums, negative[part], positive[part], u[part])
    for i in range(4 * quarter, size):
        cell = cells + 2 * i
        append(sums, cell[0], cell[1], cell[0] * cell[1] / 2)


cdef inline uint32_t push(Edge *edges, uint32_t size, double negative, double positive) noexcept nogil:
    """Put an edge behind others, joined with those it is not strictly convex to; how many then."""
    while size and (
        edges[size - 1].positive * negative >= positive * edges[size - 1].negative
    ):
        size -= 1
        negative += edges[size].negative
        positive += edges[size].positive
    edges[size].negative = negative
    edges[size].positive = positive
    return size + 1


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
        self.cell_bytes = 2 * sizeof(double)
        self.summary_bytes = sizeof(Sums)
        self.row_bytes = sizeof(Tie)
        self.now = NEVER + 1

    # Events

    cdef Status enter(self, double score, int label, double weight) noexcept nogil:
        """Put an event in; NO_MEMORY leaves the events as they were. O(log n)."""
        cdef uint32_t rank, row
        cdef double *cell
        cdef Tie *tie
        cdef Node *leaf = self.reach_to_add(score, &rank)
        if leaf == NULL:
            return NO_MEMORY
        cell = <double *> leaf.cells + 2 * rank
        if rank == leaf.size or leaf.keys[rank] != score:
            self.open(leaf, rank, score)
            leaf.tags[rank] = SINGLE
            cell[label] = weight
            cell[1 - label] = 0
            return DONE
        if leaf.tags[rank] == SINGLE:
            row = self.new_row()
            if row == NO_ROW:
                return NO_MEMORY
            (<Tie *> self.row(row)).events[cell[1] > 0] = 1
            leaf.tags[rank] = row
        tie = <Tie *> self.row(leaf.tags[rank])
        tie.events[label] += 1
        add_exactly(cell + label, tie.low + label, tie.slack + label, weight)
        return DONE

    cdef bint leave(self, double score, int label, double weight) noexcept nogil:
        """Take an event out that is inside; True asks for `set_sum`. O(log n)."""
        cdef uint32_t rank
        cdef Tie *tie
        cdef Node *leaf = self.reach_to_remove(score, &rank)
        cdef double *cell = <double *> leaf.cells + 2 * rank
        cdef bint loose
        if leaf.tags[rank] == SINGLE:
            self.close(leaf, rank)
            return False
        tie = <Tie *> self.row(leaf.tags[rank])
        tie.events[label] -= 1
        if tie.events[label] == 0:
            cell[label] = tie.low[label] = tie.slack[label] = 0
        else:
            add_exactly(cell + label, tie.low + label, tie.slack + label, -weight)
        loose = tie.slack[label] > SLACK * cell[label]
        if tie.events[0] + tie.events[1] == 1 and not loose:
            self.drop_row(leaf.tags[rank])
            leaf.tags[rank] = SINGLE
        return loose

    cdef void set_sum(self, double score, int label, double high, double low) noexcept nogil:
        """Put right the weight of a class at a score where several events were."""
        cdef uint32_t rank
        cdef Node *leaf = self.find(score, &rank)
        cdef double *cell = <double *> leaf.cells + 2 * rank
        cdef Tie *tie = <Tie *> self.row(leaf.tags[rank])
        cell[label] = high
        tie.low[label] = low
        tie.slack[label] = 0
        if tie.events[0] + tie.events[1] == 1:
            self.drop_row(leaf.tags[rank])
            leaf.tags[rank] = SINGLE

    cdef void scale(self, int exponent) noexcept nogil:
        """Multiply all weights by a power of two, which rounds none. O(n)."""
        cdef double factor = ldexp(1, exponent)
        cdef Node *leaf = self.next_leaf(True)
        cdef uint32_t i
        cdef int label
        cdef Tie *tie
        while leaf != NULL:
            for i in range(leaf.size):
                for label in range(2):
                    (<double *> leaf.cells)[2 * i + label] *= factor
                    if leaf.tags[i] != SINGLE:
                        tie = <Tie *> self.row(leaf.tags[i])
                        tie.low[label] *= factor
                        tie.slack[label] *= factor
            leaf = self.next_leaf(False)
        self.now += 1

    # Sums and hulls

    cdef bint fold(self, Node *node, uint32_t state) noexcept nogil:
        cdef Sums *sums = <Sums *> node.summary
        cdef const Sums *part
        cdef uint32_t i
        sums.negative = sums.positive = sums.u = 0
        sums.hulled = False
        if node.level == 0:
            sum_up(sums, <const double *> node.cells, node.size)
            return True
        for i in range(node.size):
            part = <const Sums *> node.children[i].summary
            append(sums, part.negative, part.positive, part.u)
        return True

    cdef void forget(self, Node *node) noexcept nogil:
        free((<Sums *> node.summary).edges)

    cdef bint hull(self, Node *node) noexcept nogil:
        """Make the hull of a node whose sums hold; False without memory."""
        cdef Sums *sums = <Sums *> node.summary
        cdef const Sums *part
        cdef Edge[64] edges
        cdef const double *cells = <const double *> node.cells
        cdef uint32_t i, size = 0
        cdef double negative = 0, positive = 0
        if sums.hulled:
            return True
        if node.level == 0:
            for i in range(node.size):
                # Positives and the negatives behind them always join.
                if negative > 0 and cells[2 * i + 1] > 0:
                    size = push(edges, size, negative, positive)
                    negative = positive = 0
                negative += cells[2 * i]
                positive += cells[2 * i + 1]
            if node.size:
                size = push(edges, size, negative, positive)
            if not make_room(sums, size):
                return False
            memcpy(sums.edges, edges, size * sizeof(Edge))
        else:
            for i in range(node.size):
                if not self.hull(node.children[i]):
                    return False
                size += (<const Sums *> node.children[i].summary).size
            if not make_room(sums, size):
                return False
            size = 0
            for i in range(node.size):
                part = <const Sums *> node.children[i].summary
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
        return <Sums *> self.root.summary

    cdef double auc(self) noexcept nogil:
        """U / (n0 n1); nan while a class is absent."""
        cdef const Sums *sums = self.sums()
        if sums == NULL or sums.negative == 0 or sums.positive == 0:
            return NAN
        return fmin(sums.u / (sums.negative * sums.positive), 1.0)

    cdef int make_hull(self) except -1:
        """Make the hull of all that is inside, which is not nothing."""
        self.sums()
        if not self.hull(self.root):
            raise MemoryError("no memory for the hull; nothing has changed")
        return 0

    cdef double h_measure(self, Severity severity) except? -1:
        """H with priors from the data; nan while a class is absent."""
        cdef const Sums *sums = self.sums()
        cdef double loss = 0, worst
        if sums == NULL or sums.negative == 0 or sums.positive == 0:
            return NAN
        self.make_hull()
        loss = loss_of(sums.edges, sums.size, severity)
        worst = severity.loss(sums.negative, sums.positive)
        if worst == 0:
            return NAN
        return fmin(fmax(1 - loss / worst, 0.0), 1.0)

    cdef void write(self, double *scores, double *negative, double *positive) noexcept nogil:
        """Write each distinct score, ascending, with the weight of both classes there."""
        cdef Node *leaf = self.next_leaf(True)
        cdef Py_ssize_t at = 0
        cdef uint32_t i
        while leaf != NULL:
            for i in range(leaf.size):
                scores[at] = leaf.keys[i]
                negative[at] = (<double *> leaf.cells)[2 * i]
                positive[at] = (<double *> leaf.cells)[2 * i + 1]
                at += 1
            leaf = self.next_leaf(False)

    def _check(self):
        """Assert the invariants of cells, rows and sums; O(n)."""
        cdef Node *leaf
        cdef uint32_t i, row, rows = 0, free_rows = 0
        cdef const double *cell
        cdef const Tie *tie
        cdef int label
        super()._check()
        leaf = self.next_leaf(True)
        while leaf != NULL:
            for i in range(leaf.size):
                cell = <const double *> leaf.cells + 2 * i
                if leaf.tags[i] == SINGLE:
                    assert (cell[0] > 0) != (cell[1] > 0)
                    continue
                rows += 1
                tie = <const Tie *> self.row(leaf.tags[i])
                assert tie.events[0] + tie.events[1] > 1
                for label in range(2):
                    assert (cell[label] > 0) == (tie.events[label] > 0)
                    assert cell[label] + tie.low[label] == cell[label]
                    assert tie.slack[label] <= SLACK * cell[label]
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
