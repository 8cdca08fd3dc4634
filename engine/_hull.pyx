"""The lower convex hull of the counted scores: one list of edges, repaired where it is read.

By increasing score, neighbouring blocks join until negatives per positive fall strictly from edge to
edge (Tatti 2018, section 5). That list is the ROC curve's convex hull, read from its upper right end.
Comparisons are of integers, so ties and parallel edges need no care. A sweep makes the list of those
points alone that `_outline` leaves, which are few.

An event only adds to the counts of the edge whose scores hold its own, and notes where a point may
have come below that edge: a positive that enters or a negative that leaves lifts the edge over points
to its left, the other two over points to its right. A read asks the tree for the deepest point below
each touched edge, splits the edge there, asks again on both sides, and then joins neighbours that are
not convex any more.

H is a sum over edges of terms that depend on that edge alone. It is kept in fixed point, where adding
and taking away do not round: the reading is that of a fresh sweep, to the last bit. Where events
between two reads are many for the size of the window a sweep is cheaper than following them, and the
list rests.
"""

cimport cython
from libc.math cimport INFINITY, NAN, fmax, fmin, nextafter
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove

import numpy as np

from engine._counts cimport negatives, positives
from engine._edges cimport hull_of_blocks
from engine._outline cimport Chord, Outline, chord_of, depth, draw, erase, joins, points_below
from engine._query cimport Query, search

# Under this expected loss of no skill (a severity far off the data) fixed point has too few digits.
cdef double SMALL = 2.0 ** -10

cdef enum:
    # To follow n / SWEEP_SHARE + SWEEP_LEAST events costs as much as a sweep of n scores.
    SWEEP_SHARE = 512
    SWEEP_LEAST = 4


cdef inline Fixed fixed(double term) noexcept nogil:
    cdef double scaled = term * 1048576.0
    cdef Fixed result
    result.coarse = <int64_t> scaled
    result.fine = <int64_t> ((scaled - <double> result.coarse) * 1099511627776.0)
    return result


cdef inline double as_double(Fixed value) noexcept nogil:
    return (<double> value.coarse + <double> value.fine / 1099511627776.0) / 1048576.0


@cython.final
cdef class Hull:
    """Edges of the hull of a `Tree`, from low scores to high."""

    def __dealloc__(self):
        free(self.last)
        free(self.edges)
        free(self.touched)

    # Events

    cdef void touch(self, double score, uint64_t event, bint leftwards) noexcept nogil:
        """Follow an event, given as the packed counts that the tree has changed by."""
        cdef Py_ssize_t at, capacity
        cdef Edge *edge
        cdef void *grown
        at = self.find(score)
        edge = &self.edges[at]
        if edge.left == -INFINITY and edge.right == INFINITY:
            if self.touched_size == self.touched_capacity:
                capacity = 2 * self.touched_capacity + 8
                grown = realloc(self.touched, capacity * sizeof(double))
                if grown == NULL:
                    self.rest()
                    return
                self.touched = <double *> grown
                self.touched_capacity = capacity
            self.touched[self.touched_size] = self.last[at]
            self.touched_size += 1
        edge.counts += event
        if leftwards:
            edge.left = fmax(edge.left, score)
        else:
            edge.right = fmin(edge.right, score)

    cdef inline Py_ssize_t find(self, double score) noexcept nogil:
        """The edge that holds a score: the first whose last score is not below it."""
        cdef const double *base = self.last
        cdef Py_ssize_t size = self.size, half
        while size > 1:
            half = size >> 1
            base += half if base[half - 1] < score else 0
            size -= half
        return base - self.last

    cdef void rest(self) noexcept nogil:
        """Follow no more events; the next read sweeps."""
        self.live = False
        self.size = 0
        self.touched_size = 0

    # Readings

    cdef double h_measure(self, Tree tree, Severity severity) except? -1:
        """H with priors from the data; nan with one class only."""
        cdef Py_ssize_t i
        cdef double worst, loss
        if positives(tree.total) == 0 or negatives(tree.total) == 0:
            return NAN
        self.refresh(tree)
        if not severity.equals(self.severity):
            for i in range(self.size):
                self.forget_term(i)
            self.severity = severity
            for i in range(self.size):
                self.set_term(i)
        worst = severity.loss(negatives(tree.total), positives(tree.total))
        if worst == 0:
            return NAN
        if worst < SMALL:
            loss = 0
            for i in range(self.size):
                loss += self.edges[i].term
        else:
            loss = as_double(self.sum)
            worst = as_double(fixed(worst))
        return fmin(fmax(1 - loss / worst, 0.0), 1.0)

    cdef int refresh(self, Tree tree) except -1:
        """Make the list the hull of the tree; without memory it rests."""
        cdef Py_ssize_t i
        cdef bint done = True
        if self.live:
            for i in range(self.touched_size):
                done = done and self.repair(tree, self.find(self.touched[i]))
            self.touched_size = 0
        elif self.size == 0 or self.since:
            done = self.sweep(tree)
        if self.since:
            self.live = self.size > 0 and (
                (self.since - SWEEP_LEAST) * SWEEP_SHARE < <int64_t> tree.distinct
            )
        self.since = 0
        if not done:
            self.rest()
            raise MemoryError("no memory for the hull; nothing has changed")
        return 0

    cdef tuple arrays(self, Tree tree):
        """Last score, negatives and positives of each edge, ascending."""
        cdef Py_ssize_t i
        self.refresh(tree)
        last, negative, positive = np.empty(self.size), np.empty(self.size), np.empty(self.size)
        cdef double[::1] k = last, n = negative, p = positive
        for i in range(self.size):
            k[i] = self.last[i]
            n[i] = <double> negatives(self.edges[i].counts)
            p[i] = <double> positives(self.edges[i].counts)
        return last, negative, positive

    # From scratch

    cdef bint sweep(self, Tree tree) noexcept nogil:
        """Make the list anew; False without memory. O(leaves), and most are looked into."""
        cdef Outline outline
        cdef Chord chord
        cdef const uint64_t *corners
        cdef uint64_t[64] points
        cdef uint32_t[64] ranks
        cdef uint64_t before = 0, upto
        cdef uint32_t leaf, found, j
        cdef Py_ssize_t i
        cdef bint done = True
        self.size = 0
        self.touched_size = 0
        self.sum.coarse = self.sum.fine = 0
        if tree.total == 0:
            return True
        if not draw(&outline, tree):
            return False
        self.end = 0
        corners = outline.corners
        chord = chord_of(corners[0], corners[1])
        for i in range(outline.size):
            leaf = outline.leaves[i]
            upto = outline.ends[i]
            if depth(&chord, upto, before) < 0:
                found = points_below(tree, leaf, before, &chord, points, ranks)
                for j in range(found):
                    done = done and self.push(points[j], leaf, ranks[j])
            if upto == chord.end:
                done = done and self.push(upto, leaf, tree.heads[leaf].size - 1)
                if upto != tree.total:
                    corners += 1
                    chord = chord_of(corners[0], corners[1])
            before = upto
        erase(&outline)
        if not done:
            return False
        for i in range(self.size):
            self.last[i] = tree.leaves[<uint32_t> self.edges[i].left].keys[<int> self.edges[i].right]
            self.edges[i].left = -INFINITY
            self.edges[i].right = INFINITY
        self.last[self.size - 1] = INFINITY
        for i in range(self.size):
            self.set_term(i)
        return True

    cdef inline bint push(self, uint64_t upto, uint32_t leaf, uint32_t rank) noexcept nogil:
        """Put an edge behind the others and join what is not convex; False without memory.

        It ends at packed counts `upto`, behind a rank of a leaf. Where that is stands in `left` and
        `right` until the keys are read, for the edges that are left.
        """
        cdef Edge *edge
        cdef uint64_t counts = upto - self.end
        while self.size and joins(self.edges[self.size - 1].counts, counts):
            self.size -= 1
            counts += self.edges[self.size].counts
        if self.size == self.capacity and not self.make_room():
            return False
        self.end = upto
        edge = &self.edges[self.size]
        edge.counts = counts
        edge.term = -1
        edge.left = leaf
        edge.right = rank
        self.size += 1
        return True

    cdef bint make_room(self) noexcept nogil:
        """Let the list hold one more edge; False without memory."""
        cdef Py_ssize_t capacity = self.capacity + self.capacity // 8 + 4
        cdef void *grown = realloc(self.last, capacity * sizeof(double))
        if grown == NULL:
            return False
        self.last = <double *> grown
        grown = realloc(self.edges, capacity * sizeof(Edge))
        if grown == NULL:
            return False
        self.edges = <Edge *> grown
        self.capacity = capacity
        return True

    # Repairs

    cdef bint repair(self, Tree tree, Py_ssize_t at) noexcept nogil:
        """Make a touched edge right again; False without memory.

        An untouched neighbour is joined with it where that is due. A touched one is left alone: it
        looks at this edge in its own turn.
        """
        cdef double left = self.edges[at].left, right = self.edges[at].right
        cdef uint64_t start
        cdef Py_ssize_t end = at
        self.forget_term(at)
        self.edges[at].left = -INFINITY
        self.edges[at].right = INFINITY
        if self.edges[at].counts == 0:
            # Its scores fall to the next edge.
            if at and at + 1 == self.size:
                self.last[at - 1] = INFINITY
            self.erase(at)
            self.settle(at)
            return True
        start = tree.counts_upto(self.last[at - 1]) if at else 0
        if not self.split(tree, &end, start, left, right):
            return False
        self.settle(end + 1)
        while end >= at:
            self.settle(end)
            end -= 1
        return True

    cdef bint split(
        self, Tree tree, Py_ssize_t *at, uint64_t start, double left, double right
    ) noexcept nogil:
        """Split an edge at the deepest point below it, and the parts likewise, if there is one.

        `start` is the packed counts where the edge starts. In the end `at` is its last part.
        """
        cdef Edge *edge = &self.edges[at[0]]
        cdef double low = self.last[at[0] - 1] if at[0] else -INFINITY
        cdef double high = self.last[at[0]]
        cdef uint64_t part
        cdef Query query
        query.end_x = negatives(edge.counts)
        query.end_y = positives(edge.counts)
        query.depth = 0
        if query.end_x == 0 or query.end_y == 0:
            self.set_term(at[0])
            return True
        if right <= left:
            left = INFINITY
        if left > low:
            query.low = low
            query.high = fmin(left, high)
            search(tree, &query, start)
        if left < right <= high and right < INFINITY:
            query.low = fmax(nextafter(right, -INFINITY), low)
            query.high = high
            search(tree, &query, start)
        if query.depth == 0:
            self.set_term(at[0])
            return True
        if self.size == self.capacity and not self.make_room():
            return False
        part = (<uint64_t> query.y << 32) | <uint64_t> query.x
        memmove(
            self.last + at[0] + 1, self.last + at[0], (self.size - at[0]) * sizeof(double)
        )
        memmove(
            self.edges + at[0] + 1, self.edges + at[0], (self.size - at[0]) * sizeof(Edge)
        )
        self.size += 1
        self.last[at[0]] = query.score
        self.edges[at[0]].counts = part
        self.edges[at[0] + 1].counts -= part
        if not self.split(tree, at, start, left, right):
            return False
        at[0] += 1
        return self.split(tree, at, start + part, left, right)

    cdef void settle(self, Py_ssize_t at) noexcept nogil:
        """Join an edge with the one before, and what is left with its neighbours, where not convex."""
        cdef Edge *edge
        while 0 < at < self.size:
            edge = &self.edges[at]
            if edge.left > -INFINITY or edge.right < INFINITY:
                return
            if edge[-1].left > -INFINITY or edge[-1].right < INFINITY:
                return
            if not joins(edge[-1].counts, edge.counts):
                return
            self.forget_term(at - 1)
            self.forget_term(at)
            edge.counts += edge[-1].counts
            self.erase(at - 1)
            self.set_term(at - 1)
            self.settle(at)
            at -= 1

    cdef void erase(self, Py_ssize_t at) noexcept nogil:
        """Take an edge out of the list."""
        self.size -= 1
        memmove(self.last + at, self.last + at + 1, (self.size - at) * sizeof(double))
        memmove(self.edges + at, self.edges + at + 1, (self.size - at) * sizeof(Edge))

    # Terms of H

    cdef inline void forget_term(self, Py_ssize_t at) noexcept nogil:
        cdef Fixed term
        if self.edges[at].term >= 0:
            term = fixed(self.edges[at].term)
            self.sum.coarse -= term.coarse
            self.sum.fine -= term.fine
            self.edges[at].term = -1

    cdef inline void set_term(self, Py_ssize_t at) noexcept nogil:
        cdef Edge *edge = &self.edges[at]
        cdef Fixed term
        if self.severity is None or edge.term >= 0:
            return
        edge.term = self.severity.loss(negatives(edge.counts), positives(edge.counts))
        term = fixed(edge.term)
        self.sum.coarse += term.coarse
        self.sum.fine += term.fine

    cdef size_t bytes(self) noexcept nogil:
        return self.capacity * (sizeof(double) + sizeof(Edge)) + (
            self.touched_capacity * sizeof(double)
        )

    def _check(self, Tree tree):
        """Assert that the list is the hull of all blocks, as swept, and the sum that of its terms."""
        cdef Hull fresh = Hull()
        cdef Py_ssize_t i
        cdef Fixed total, term
        cdef uint64_t upto = 0
        self.refresh(tree)
        assert fresh.sweep(tree)
        scores, negative, positive = np.empty((3, tree.distinct))
        cdef double[::1] k = scores, n = negative, p = positive
        if tree.distinct:
            tree.blocks(&k[0], &n[0], &p[0])
        _, negative, positive = hull_of_blocks(scores, negative, positive)
        assert fresh.size == self.size == len(negative)
        n, p = negative, positive
        total.coarse = total.fine = 0
        for i in range(self.size):
            assert fresh.edges[i].counts == self.edges[i].counts
            assert (negatives(self.edges[i].counts), positives(self.edges[i].counts)) == (n[i], p[i])
            upto += self.edges[i].counts
            assert tree.counts_upto(self.last[i]) == tree.counts_upto(fresh.last[i]) == upto
            assert i == 0 or self.last[i - 1] < self.last[i]
            assert (self.edges[i].left, self.edges[i].right) == (-INFINITY, INFINITY)
            assert (fresh.edges[i].left, fresh.edges[i].right) == (-INFINITY, INFINITY)
            assert (self.edges[i].term >= 0) == (self.severity is not None)
            if self.severity is not None:
                term = fixed(self.edges[i].term)
                total.coarse += term.coarse
                total.fine += term.fine
        assert (total.coarse, total.fine) == (self.sum.coarse, self.sum.fine)
