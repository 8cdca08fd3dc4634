"""The lower convex hull of the counted scores: the edges the H-measure sums over.

By increasing score, neighbouring blocks join until negatives per positive fall strictly from edge to
edge. That list is the ROC curve's convex hull, read from its upper right end; ties need no care, and
with unit weights every comparison is of integers.
"""

from libc.math cimport NAN, fmax, fmin
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc

import numpy as np

from engine._tree cimport MAX_HEIGHT, NONE, Step, negatives, positives, trailing_zeros


# Under this expected loss of no skill (a severity far off the data) fixed point has too few digits.
cdef double SMALL = 2.0 ** -10


cdef inline bint joins(uint64_t left, uint64_t right) noexcept nogil:
    """Whether two neighbouring edges are not strictly convex and so make one."""
    return positives(left) * negatives(right) >= positives(right) * negatives(left)


cdef inline Fixed fixed(double term) noexcept nogil:
    cdef double scaled = term * 1048576.0
    cdef Fixed result
    result.coarse = <int64_t> scaled
    result.fine = <int64_t> ((scaled - <double> result.coarse) * 1099511627776.0)
    return result


cdef inline double as_double(Fixed value) noexcept nogil:
    return (<double> value.coarse + <double> value.fine / 1099511627776.0) / 1048576.0


cdef class Hull:
    """Edges of the hull of a `Tree`, from low scores to high."""

    def __dealloc__(self):
        free(self.last)
        free(self.counts)

    cdef inline bint push(self, double last, uint64_t counts) noexcept nogil:
        """Put an edge behind the others and join what is not convex; False without memory."""
        cdef Py_ssize_t capacity
        cdef void *grown
        while self.size and joins(self.counts[self.size - 1], counts):
            self.size -= 1
            counts += self.counts[self.size]
        if self.size == self.capacity:
            capacity = 2 * self.capacity + 8
            grown = realloc(self.last, capacity * sizeof(double))
            if grown == NULL:
                return False
            self.last = <double *> grown
            grown = realloc(self.counts, capacity * sizeof(uint64_t))
            if grown == NULL:
                return False
            self.counts = <uint64_t *> grown
            self.capacity = capacity
        self.last[self.size] = last
        self.counts[self.size] = counts
        self.size += 1
        return True

    cdef bint sweep(self, Tree tree) noexcept nogil:
        """Make the hull anew from every block of the tree; False without memory. O(n)."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t before, upto, bits
        cdef uint32_t leaf = tree.next_leaf(path, True)
        cdef int rank, size, ones, zeros
        cdef double *keys
        self.size = 0
        while leaf != NONE:
            keys = tree.leaves[leaf].keys
            size = tree.heads[leaf].size
            rank = 0
            before = 0
            bits = tree.heads[leaf].labels
            while rank < size:
                if tree.heads[leaf].side == NONE:
                    # A run of positives and the negatives behind it make one edge.
                    ones = trailing_zeros(~(bits >> rank)) if ~(bits >> rank) else 64
                    rank += ones
                    zeros = 0
                    if rank < size:
                        zeros = trailing_zeros(bits >> rank) if bits >> rank else 64
                        zeros = min(zeros, size - rank)
                    rank += zeros
                    upto = (<uint64_t> ones << 32) | <uint64_t> zeros
                else:
                    rank += 1
                    upto = tree.prefix(leaf, rank) - before
                    before += upto
                if not self.push(keys[rank - 1], upto):
                    return False
            leaf = tree.next_leaf(path, False)
        return True

    cdef double h_measure(self, Tree tree, Severity severity) noexcept nogil:
        """H of the edges at hand, priors from the data; nan with one class only."""
        cdef Py_ssize_t i
        cdef Fixed sum, term
        cdef double worst, loss
        if positives(tree.total) == 0 or negatives(tree.total) == 0:
            return NAN
        worst = severity.loss(negatives(tree.total), positives(tree.total))
        if worst == 0:
            return NAN
        if worst < SMALL:
            loss = 0
            for i in range(self.size):
                loss += severity.loss(negatives(self.counts[i]), positives(self.counts[i]))
        else:
            sum.coarse = sum.fine = 0
            for i in range(self.size):
                term = fixed(severity.loss(negatives(self.counts[i]), positives(self.counts[i])))
                sum.coarse += term.coarse
                sum.fine += term.fine
            loss = as_double(sum)
            worst = as_double(fixed(worst))
        return fmin(fmax(1 - loss / worst, 0.0), 1.0)

    cdef tuple arrays(self):
        """Last score, negatives and positives of each edge, ascending."""
        cdef Py_ssize_t i
        last, negative, positive = np.empty(self.size), np.empty(self.size), np.empty(self.size)
        cdef double[::1] k = last, n = negative, p = positive
        for i in range(self.size):
            k[i] = self.last[i]
            n[i] = <double> negatives(self.counts[i])
            p[i] = <double> positives(self.counts[i])
        return last, negative, positive

    cdef size_t bytes(self) noexcept nogil:
        return self.capacity * (sizeof(double) + sizeof(uint64_t))

    def _check(self, Tree tree):
        """Assert that the edges are the hull of the tree, strictly convex."""
        cdef Hull fresh = Hull()
        cdef Py_ssize_t i
        assert fresh.sweep(tree)
        assert fresh.size == self.size
        for i in range(self.size):
            assert fresh.last[i] == self.last[i]
            assert fresh.counts[i] == self.counts[i]
            assert i == 0 or not joins(self.counts[i - 1], self.counts[i])


# Over weights


cdef tuple hull_of_blocks(object scores, object negative, object positive):
    """The edges of the hull of weighted blocks: last score, negatives, positives of each. O(n)."""
    cdef Py_ssize_t size = 0, i
    last, merged_negative, merged_positive = scores.copy(), negative.copy(), positive.copy()
    cdef double[::1] k = last, n = merged_negative, p = merged_positive
    cdef double more_negative, more_positive
    for i in range(len(scores)):
        more_negative = n[i]
        more_positive = p[i]
        while size and p[size - 1] * more_negative >= more_positive * n[size - 1]:
            size -= 1
            more_negative += n[size]
            more_positive += p[size]
        k[size] = k[i]
        n[size] = more_negative
        p[size] = more_positive
        size += 1
    return last[:size], merged_negative[:size], merged_positive[:size]


cdef tuple thin(object negative, object positive, double epsilon):
    """Merge edges so that no cost's least loss grows by more than the factor 1 + epsilon.

    Of each run of vertices over which both losses at a vertex, the negatives above it and the
    positives below it, stay within that factor the first one is kept; at most
    2 log n / epsilon are (Tatti 2018, section 6).
    """
    above = np.concatenate([np.cumsum(negative[::-1])[::-1], [0.0]])
    below = np.concatenate([[0.0], np.cumsum(positive)])
    kept = [0]
    at = 0
    last = len(above) - 1
    while at < last:
        # First vertices that leave the run: `above` falls, `below` rises.
        by_above = np.searchsorted(-above, -above[at] / (1 + epsilon), side="right")
        by_below = np.searchsorted(below, below[at] * (1 + epsilon), side="right")
        at = max(at + 1, min(int(by_above), int(by_below), last))
        kept.append(at)
    return -np.diff(above[kept]), np.diff(below[kept])


cdef double loss_share(object negative, object positive, Severity severity) except? -1:
    """H of edges given by their weights."""
    cdef const double[::1] n = negative, p = positive
    cdef double loss = 0, all_negative = 0, all_positive = 0, worst
    cdef Py_ssize_t i
    for i in range(n.shape[0]):
        loss += severity.loss(n[i], p[i])
        all_negative += n[i]
        all_positive += p[i]
    worst = severity.loss(all_negative, all_positive)
    if worst == 0:
        return NAN
    return fmin(fmax(1 - loss / worst, 0.0), 1.0)
