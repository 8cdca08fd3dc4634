"""A B+-tree over distinct scores whose nodes sum up what lies below them, when it is read.

Some readings are a fold from low scores to high of parts that merge: the matrices of ordered classes,
the sums and hulls of weights. Each node keeps the fold of its part. An event only marks the nodes on
its way as stale; a reading makes the stale ones anew from their children. So nothing is ever taken
back from a sum, nothing drifts, and events between two readings share the work.

What a score carries is the user's: a cell of some bytes in the leaf and, where events tie, a row in a
block of rows. Splits and joins happen on the way down, each complete in itself: where memory is out,
what was done is still the same multiset.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove, memset

from engine._counts cimport trailing_zeros
from engine._eights cimport upto_in_eight
from engine._leaf cimport rank_below

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void *) noexcept nogil

cdef extern from "stdlib.h" nogil:
    void *aligned_alloc(size_t alignment, size_t size)

cdef enum:
    HEAD = 16  # bytes of a node before its keys
    LOW = LEAF * 5 // 16  # under so many scores a leaf looks for a neighbour to join
    FULL = LEAF * 13 // 16  # and up to so many it joins with it
    LOW_FAN = FAN // 4
    FULL_FAN = FAN * 3 // 4


cdef inline uint32_t child_of(const Node *node, double score) noexcept nogil:
    """Place of the child whose range holds `score`."""
    return <uint32_t> upto_in_eight(firsts_of(node), score) - 1


cdef class FoldTree:
    """Distinct scores in order; a subclass says what they carry and how that folds."""

    def __cinit__(self):
        self.root = NULL
        self.rows = NULL
        self.free_row = NO_ROW

    def __dealloc__(self):
        self.empty()

    # For the subclass to say

    cdef bint fold(self, Node *node, uint32_t state) noexcept nogil:
        """Make the summary of a node whose children's hold; False without memory."""
        return True

    cdef void forget(self, Node *node) noexcept nogil:
        """Give back what a summary has beside its own bytes."""

    # Readings

    cdef bint refresh(self, Node *node, uint32_t state) noexcept nogil:
        """Make all summaries hold that do not; False without memory. O(changes * log n)."""
        cdef uint64_t stale = node.stale if node.state == state else ALL
        if stale == 0:
            return True
        if node.level:
            # Clean children are not even looked at: they may be far from any cache, and a branch on
            # each would be hard to foretell.
            stale &= (1 << node.size) - 1
            while stale:
                if not self.refresh(children_of(node)[trailing_zeros(stale)], state):
                    return False
                stale &= stale - 1
        if not self.fold(node, state):
            return False
        node.state = state
        node.stale = 0
        return True

    cdef Node *find(self, double score, uint32_t *rank) noexcept nogil:
        """The leaf with a score, and where in it; NULL when it is not there."""
        cdef Node *node = self.root
        if node == NULL:
            return NULL
        while node.level:
            node = children_of(node)[child_of(node, score)]
        rank[0] = rank_below(node.keys, score)
        return node if rank[0] < node.size and node.keys[rank[0]] == score else NULL

    cdef void foresee(self, const double *scores, uint32_t count) noexcept nogil:
        """Fetch what walks to some scores will touch, all side by side: they wait together."""
        cdef Node *nodes[FORESEEN]
        cdef const char *line
        cdef uint32_t i, j, level
        if self.root == NULL:
            return
        for i in range(count):
            nodes[i] = self.root
        for level in range(self.root.level, 0, -1):
            for i in range(count):
                nodes[i] = children_of(nodes[i])[child_of(nodes[i], scores[i])]
                line = <const char *> nodes[i].keys
                prefetch(line - 64)
                prefetch(line)
                prefetch(line + 64)
            if level == 2:
                # Of nodes over leaves: what sums are made of.
                for i in range(count):
                    for j in range(nodes[i].size):
                        prefetch(<const char *> children_of(nodes[i])[j])
        for i in range(count):
            line = <const char *> nodes[i].keys
            for j in range(2, LEAF // 4):
                prefetch(line + 64 * j)

    cdef Node *next_leaf(self, bint first) noexcept nogil:
        """Walk the leaves in order: the first one, then the next; NULL at the end."""
        cdef Node *node = self.root
        if first:
            self.depth = 0
            if node == NULL:
                return NULL
        else:
            while self.depth:
                if self.path[self.depth - 1].slot + 1 < self.path[self.depth - 1].node.size:
                    break
                self.depth -= 1
            if self.depth == 0:
                return NULL
            self.path[self.depth - 1].slot += 1
            node = children_of(self.path[self.depth - 1].node)[self.path[self.depth - 1].slot]
        while node.level:
            self.path[self.depth].node = node
            self.path[self.depth].slot = 0
            self.depth += 1
            node = children_of(node)[0]
        return node

    # Ways down

    cdef Node *reach_to_add(self, double score, uint32_t *rank) noexcept nogil:
        """The leaf for a score, with room for it, and where; NULL without memory. O(log n).

        All nodes on the way are stale then.
        """
        cdef Node *node = self.root
        cdef Node *child
        cdef uint32_t slot
        cdef bint last = True
        if node == NULL:
            node = self.root = self.new_node(0)
            if node == NULL:
                return NULL
        if node.size == (FAN if node.level else LEAF):
            child = node
            node = self.new_node(child.level + 1)
            if node == NULL:
                return NULL
            node.size = 1
            firsts_of(node)[0] = -INFINITY
            children_of(node)[0] = child
            self.root = node
        while node.level:
            slot = child_of(node, score)
            child = children_of(node)[slot]
            last = last and slot + 1 == node.size
            if child.size == (FAN if child.level else LEAF):
                if not self.split(node, slot, last, score):
                    return NULL
                slot += firsts_of(node)[slot + 1] <= score
                last = last and slot + 1 == node.size
                child = children_of(node)[slot]
            node.stale |= 1 << slot
            node = child
        node.stale = ALL
        rank[0] = rank_below(node.keys, score)
        return node

    cdef Node *reach_to_remove(self, double score, uint32_t *rank) noexcept nogil:
        """The leaf with a score, and where in it; NULL when it is not there. O(log n).

        All nodes on the way are stale then.
        """
        cdef Node *node = self.root
        cdef Node *child
        cdef uint32_t slot
        self.depth = 0
        if node == NULL:
            return NULL
        while node.level and node.size == 1:
            self.root = children_of(node)[0]
            self.free_node(node)
            node = self.root
        while node.level:
            slot = child_of(node, score)
            child = children_of(node)[slot]
            if child.size < <uint32_t> (LOW_FAN if child.level else LOW):
                slot = self.fill_up(node, slot)
                child = children_of(node)[slot]
            node.stale |= 1 << slot
            self.path[self.depth].node = node
            self.path[self.depth].slot = slot
            self.depth += 1
            node = child
        node.stale = ALL
        rank[0] = rank_below(node.keys, score)
        return node if rank[0] < node.size and node.keys[rank[0]] == score else NULL

    cdef void open(self, Node *leaf, uint32_t rank, double score) noexcept nogil:
        """Enter a new score where `reach_to_add` said; its cell is the caller's to set."""
        cdef uint32_t behind = leaf.size - rank
        cdef char *cell = cells_of(leaf) + rank * self.cell_bytes
        memmove(leaf.keys + rank + 1, leaf.keys + rank, behind * sizeof(double))
        memmove(cell + self.cell_bytes, cell, behind * self.cell_bytes)
        leaf.keys[rank] = score
        leaf.size += 1
        self.distinct += 1

    cdef void close(self, Node *leaf, uint32_t rank) noexcept nogil:
        """Take a score out where `reach_to_remove` found it, as the last walk down there was."""
        cdef uint32_t behind = leaf.size - rank - 1
        cdef char *cell = cells_of(leaf) + rank * self.cell_bytes
        memmove(leaf.keys + rank, leaf.keys + rank + 1, behind * sizeof(double))
        memmove(cell, cell + self.cell_bytes, behind * self.cell_bytes)
        leaf.size -= 1
        leaf.keys[leaf.size] = INFINITY
        self.distinct -= 1
        # What is empty goes, and so may its parents.
        while leaf.size == 0:
            self.free_node(leaf)
            if self.depth == 0:
                self.root = NULL
                return
            self.depth -= 1
            leaf = self.path[self.depth].node
            self.unlink(leaf, self.path[self.depth].slot)

    # Splits and joins

    cdef bint split(self, Node *parent, uint32_t slot, bint append, double score) noexcept nogil:
        """Move the upper half of a full child to a new one behind it; False without memory.

        Where scores only grow the new child starts empty, or nearly so: the old one stays full.
        """
        cdef Node *node = children_of(parent)[slot]
        cdef Node *fresh = self.new_node(node.level)
        cdef uint32_t cut, moved, i
        cdef double first
        if fresh == NULL:
            return False
        if node.level:
            cut = FAN - 1 if append else FAN // 2
            moved = FAN - cut
            first = firsts_of(node)[cut]
            memcpy(firsts_of(fresh), firsts_of(node) + cut, moved * sizeof(double))
            memcpy(children_of(fresh), children_of(node) + cut, moved * sizeof(void *))
            firsts_of(fresh)[0] = -INFINITY
            for i in range(cut, FAN):
                firsts_of(node)[i] = INFINITY
        else:
            append = append and score > node.keys[LEAF - 1]
            cut = LEAF if append else LEAF // 2
            moved = LEAF - cut
            first = score if append else node.keys[cut]
            memcpy(fresh.keys, node.keys + cut, moved * sizeof(double))
            memcpy(cells_of(fresh), cells_of(node) + cut * self.cell_bytes, moved * self.cell_bytes)
            for i in range(cut, LEAF):
                node.keys[i] = INFINITY
        node.size = cut
        node.stale = ALL
        fresh.size = moved
        for i in range(parent.size, slot + 1, -1):
            firsts_of(parent)[i] = firsts_of(parent)[i - 1]
            children_of(parent)[i] = children_of(parent)[i - 1]
        parent.stale = ALL
        firsts_of(parent)[slot + 1] = first
        children_of(parent)[slot + 1] = fresh
        parent.size += 1
        return True

    cdef uint32_t fill_up(self, Node *parent, uint32_t slot) noexcept nogil:
        """Join a child that runs low with a neighbour, if both fit into one; its place then."""
        cdef uint32_t size = children_of(parent)[slot].size
        cdef uint32_t full = FULL_FAN if parent.level > 1 else FULL
        if slot + 1 < parent.size and size + children_of(parent)[slot + 1].size <= full:
            self.join(parent, slot)
        elif slot and size + children_of(parent)[slot - 1].size <= full:
            slot -= 1
            self.join(parent, slot)
        return slot

    cdef void join(self, Node *parent, uint32_t at) noexcept nogil:
        """Move all that the child behind `at` holds into the child there."""
        cdef Node *left = children_of(parent)[at]
        cdef Node *right = children_of(parent)[at + 1]
        cdef uint32_t size = left.size
        if left.level:
            memcpy(firsts_of(left) + size, firsts_of(right), right.size * sizeof(double))
            memcpy(children_of(left) + size, children_of(right), right.size * sizeof(void *))
            firsts_of(left)[size] = firsts_of(parent)[at + 1]
        else:
            memcpy(left.keys + size, right.keys, right.size * sizeof(double))
            memcpy(
                cells_of(left) + size * self.cell_bytes, cells_of(right), right.size * self.cell_bytes
            )
        left.size += right.size
        left.stale = ALL
        self.free_node(right)
        self.unlink(parent, at + 1)

    cdef void unlink(self, Node *parent, uint32_t slot) noexcept nogil:
        """Take a child out of its parent."""
        cdef uint32_t i
        parent.stale = ALL
        parent.size -= 1
        for i in range(slot, parent.size):
            firsts_of(parent)[i] = firsts_of(parent)[i + 1]
            children_of(parent)[i] = children_of(parent)[i + 1]
        firsts_of(parent)[parent.size] = INFINITY
        if parent.size:
            firsts_of(parent)[0] = -INFINITY

    # Memory

    cdef inline size_t front(self) noexcept nogil:
        """Bytes from where a node's memory begins to its keys: whole cache lines."""
        return (self.summary_bytes + HEAD + 63) // 64 * 64

    cdef Node *new_node(self, uint32_t level) noexcept nogil:
        """An empty node; NULL without memory. Its parts lie in one piece."""
        cdef size_t size = FAN * (sizeof(double) + sizeof(void *))
        cdef uint32_t i, keys = FAN if level else LEAF
        cdef char *block
        cdef Node *node
        if level == 0:
            size = LEAF * (sizeof(double) + self.cell_bytes)
        block = <char *> aligned_alloc(64, (self.front() + size + 63) // 64 * 64)
        if block == NULL:
            return NULL
        memset(block, 0, self.front())
        node = <Node *> (block + self.front() - HEAD)
        node.level = level
        node.state = NEVER
        node.stale = ALL
        for i in range(keys):
            node.keys[i] = INFINITY
        self.nodes += 1
        return node

    cdef void free_node(self, Node *node) noexcept nogil:
        self.forget(node)
        self.nodes -= 1
        free(<char *> node + HEAD - self.front())

    cdef void clear(self, Node *node) noexcept nogil:
        """Give back a subtree."""
        cdef uint32_t i
        if node.level:
            for i in range(node.size):
                self.clear(children_of(node)[i])
        self.free_node(node)

    cdef void empty(self) noexcept nogil:
        """Forget everything and give the memory back."""
        if self.root != NULL:
            self.clear(self.root)
        self.root = NULL
        self.distinct = 0
        free(self.rows)
        self.rows = NULL
        self.rows_used = self.rows_capacity = 0
        self.free_row = NO_ROW

    cdef inline char *row(self, uint32_t number) noexcept nogil:
        return self.rows + number * self.row_bytes

    cdef uint32_t new_row(self) noexcept nogil:
        """Number of a zeroed row; NO_ROW without memory. A free one is linked through its start."""
        cdef uint32_t number = self.free_row, capacity
        cdef void *grown
        if number != NO_ROW:
            self.free_row = (<uint32_t *> self.row(number))[0]
        else:
            if self.rows_used == self.rows_capacity:
                capacity = self.rows_capacity + self.rows_capacity // 4 + 16
                grown = realloc(self.rows, capacity * self.row_bytes)
                if grown == NULL:
                    return NO_ROW
                self.rows = <char *> grown
                self.rows_capacity = capacity
            number = self.rows_used
            self.rows_used += 1
        memset(self.row(number), 0, self.row_bytes)
        return number

    cdef void drop_row(self, uint32_t number) noexcept nogil:
        (<uint32_t *> self.row(number))[0] = self.free_row
        self.free_row = number

    cdef size_t bytes(self) noexcept nogil:
        """Memory held, at most: nodes count as leaves."""
        return (
            self.nodes * (self.front() + LEAF * (sizeof(double) + self.cell_bytes))
            + self.rows_capacity * self.row_bytes
        )

    # Invariants

    def _check(self):
        """Assert the invariants of the tree; O(n)."""
        cdef Py_ssize_t distinct = 0
        if self.root != NULL:
            distinct = self.check_node(self.root, -INFINITY, INFINITY)
        assert distinct == self.distinct

    cdef Py_ssize_t check_node(self, Node *node, double low, double high) except -1:
        """Assert the invariants of a subtree over scores in [low, high); its distinct scores."""
        cdef Py_ssize_t distinct = 0
        cdef uint32_t i
        if node.level == 0:
            assert node.size <= LEAF
            for i in range(LEAF):
                assert node.keys[i] == INFINITY if i >= node.size else low <= node.keys[i] < high
                assert i == 0 or i >= node.size or node.keys[i - 1] < node.keys[i]
            return node.size
        assert 0 < node.size <= FAN
        assert firsts_of(node)[0] == -INFINITY
        for i in range(FAN):
            if i >= node.size:
                assert firsts_of(node)[i] == INFINITY
                continue
            assert children_of(node)[i].level + 1 == node.level
            if node.state != NEVER and not node.stale >> i & 1:
                assert children_of(node)[i].state == node.state
                assert children_of(node)[i].stale == 0
            assert i == 0 or low <= firsts_of(node)[i] < high
            distinct += self.check_node(
                children_of(node)[i],
                firsts_of(node)[i] if i else low,
                firsts_of(node)[i + 1] if i + 1 < node.size else high,
            )
        return distinct
