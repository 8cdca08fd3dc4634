"""The hull of a tree of weights, found from the root down without the hulls of its nodes.

The ends of some nodes in a row are points of the curve, so the hull of those points lies above the
curve's own or on it. A node none of whose points can lie below that, by the corner of the box that its
sums span, has no corner of the hull and is not looked into. Level by level few are left.

Where many events came since the last reading that is less work than making the hulls anew that lie
on their ways: they are of all parts of the curve, and mostly of parts far above the hull.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc

from engine._fold cimport LEAF, Node, cells_of, children_of
from engine._sums cimport Edge, Sums, Tie, push, sums_of, weights_of


cdef class Corners:
    """Edges of a hull, and room for finding them."""

    def __dealloc__(self):
        free(self.edges)
        free(self.ends)
        free(self.stretches)
        free(self.finer)

    cdef bint find(self, const Node *root, const Tie *ties) noexcept nogil:
        """Find the edges of a tree whose sums hold; False without memory."""
        cdef uint32_t level
        if not self.reserve(LEAF):
            return False
        self.made = 0
        self.add(sums_of(root).negative, sums_of(root).positive, root)
        self.join()
        for level in range(root.level + 1):
            if not self.refine(ties):
                return False
            self.join()
        return True

    cdef bint reserve(self, uint32_t capacity) noexcept nogil:
        """Have room for so many stretches; False without memory."""
        cdef void *grown
        if capacity <= self.capacity:
            return True
        capacity += capacity // 2
        grown = realloc(self.edges, capacity * sizeof(Edge))
        if grown == NULL:
            return False
        self.edges = <Edge *> grown
        grown = realloc(self.ends, capacity * sizeof(uint32_t))
        if grown == NULL:
            return False
        self.ends = <uint32_t *> grown
        grown = realloc(self.stretches, capacity * sizeof(Stretch))
        if grown == NULL:
            return False
        self.stretches = <Stretch *> grown
        grown = realloc(self.finer, capacity * sizeof(Stretch))
        if grown == NULL:
            return False
        self.finer = <Stretch *> grown
        self.capacity = capacity
        return True

    cdef inline void add(self, double negative, double positive, const Node *node) noexcept nogil:
        """Put a finer stretch behind the others."""
        cdef Stretch *stretch = self.finer + self.made
        stretch.sums.negative = negative
        stretch.sums.positive = positive
        stretch.node = node
        self.made += 1

    cdef void join(self) noexcept nogil:
        """Go on with the finer stretches, and join them to edges."""
        cdef Stretch *stretches = self.finer
        cdef uint32_t i, size = 0
        self.finer = self.stretches
        self.stretches = stretches
        self.held = self.made
        for i in range(self.held):
            size = push(self.edges, size, stretches[i].sums.negative, stretches[i].sums.positive)
            self.ends[size - 1] = i + 1
        self.size = size

    cdef bint refine(self, const Tie *ties) noexcept nogil:
        """Open what may have points below its edge and join the rest; False without memory."""
        cdef uint32_t i = 0, k
        cdef double x, y
        cdef Edge edge, rest
        cdef Stretch stretch
        self.made = 0
        for k in range(self.size):
            edge = self.edges[k]
            rest.negative = rest.positive = x = y = 0
            while i < self.ends[k]:
                stretch = self.stretches[i]
                i += 1
                if (
                    stretch.node == NULL
                    or edge.positive * (x + stretch.sums.negative) <= edge.negative * y
                ):
                    rest.negative += stretch.sums.negative
                    rest.positive += stretch.sums.positive
                else:
                    # As many as a leaf may have, what was joined before, and what is behind.
                    if not self.reserve(self.made + LEAF + 2):
                        return False
                    if rest.negative > 0 or rest.positive > 0:
                        self.add(rest.negative, rest.positive, NULL)
                        rest.negative = rest.positive = 0
                    self.open(stretch.node, &edge, x, y, ties)
                x += stretch.sums.negative
                y += stretch.sums.positive
            if rest.negative > 0 or rest.positive > 0:
                if not self.reserve(self.made + 1):
                    return False
                self.add(rest.negative, rest.positive, NULL)
        return True

    cdef void open(
        self, const Node *node, const Edge *edge, double x, double y, const Tie *ties
    ) noexcept nogil:
        """Put what a node has, which begins at (x, y) from its edge on, behind the others."""
        cdef uint32_t i
        cdef const Sums *sums
        if node.level == 0:
            self.open_leaf(node, edge, x, y, ties)
            return
        for i in range(node.size):
            sums = sums_of(children_of(node)[i])
            self.add(sums.negative, sums.positive, children_of(node)[i])

    cdef void open_leaf(
        self, const Node *leaf, const Edge *edge, double x, double y, const Tie *ties
    ) noexcept nogil:
        """As `open`; of a leaf only points below the edge may be corners, and its end."""
        cdef const double *cells = <const double *> cells_of(leaf)
        cdef double negative = 0, positive = 0
        cdef Edge weights
        cdef uint32_t i
        for i in range(leaf.size):
            weights = weights_of(cells[i], ties)
            if weights.positive > 0 and edge.positive * x > edge.negative * y and i:
                self.add(negative, positive, NULL)
                negative = positive = 0
            negative += weights.negative
            positive += weights.positive
            x += weights.negative
            y += weights.positive
        self.add(negative, positive, NULL)
