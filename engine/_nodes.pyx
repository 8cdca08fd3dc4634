"""The nodes of the counted tree: leaves, sides and inner nodes as numbers into growing blocks.

An update in steady state allocates nothing. What can fail for want of memory is reserved before
anything is changed; a new node then comes out of what was reserved, and a free one is linked to the
next free one through its own bytes.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from engine._pool cimport NONE, Pool, empty, put_back, reserve, take, take_back


cdef class Nodes:
    """What a counted tree consists of, and the memory for more."""

    def __cinit__(self):
        self.give_back()

    def __dealloc__(self):
        self.give_back()

    cdef void give_back(self) noexcept nogil:
        """Give all memory back; no node is left."""
        free(self.leaves)
        free(self.heads)
        free(self.sides)
        free(self.inners)
        self.leaves = NULL
        self.heads = NULL
        self.sides = NULL
        self.inners = NULL
        empty(&self.leaf_pool)
        empty(&self.side_pool)
        empty(&self.inner_pool)
        self.root = NONE
        self.height = 0

    cdef bint reserve_leaves(self, uint32_t more) noexcept nogil:
        """Have so many leaves for `new_leaf` to give; False without memory."""
        return reserve(
            &self.leaf_pool, more,
            <void **> &self.leaves, sizeof(Leaf), <void **> &self.heads, sizeof(Head),
        )

    cdef bint reserve_sides(self, uint32_t more) noexcept nogil:
        return reserve(&self.side_pool, more, <void **> &self.sides, sizeof(Side), NULL, 0)

    cdef bint reserve_inners(self, uint32_t more) noexcept nogil:
        return reserve(&self.inner_pool, more, <void **> &self.inners, sizeof(Inner), NULL, 0)

    cdef uint32_t new_leaf(self) noexcept nogil:
        """An empty leaf; a free one is linked through its side."""
        cdef Pool *pool = &self.leaf_pool
        cdef uint32_t leaf, i
        leaf = take(pool) if pool.free == NONE else take_back(pool, self.heads[pool.free].side)
        for i in range(LEAF):
            self.leaves[leaf].keys[i] = INFINITY
        self.heads[leaf].labels = 0
        self.heads[leaf].size = 0
        self.heads[leaf].side = NONE
        return leaf

    cdef uint32_t new_side(self) noexcept nogil:
        """A zeroed side; a free one is linked through its first count."""
        cdef Pool *pool = &self.side_pool
        cdef uint32_t side
        if pool.free == NONE:
            side = take(pool)
        else:
            side = take_back(pool, <uint32_t> self.sides[pool.free].counts[0])
        memset(&self.sides[side], 0, sizeof(Side))
        return side

    cdef uint32_t new_inner(self) noexcept nogil:
        """An inner node without children; a free one is linked through its first child."""
        cdef Pool *pool = &self.inner_pool
        cdef uint32_t node
        node = take(pool) if pool.free == NONE else take_back(pool, self.inners[pool.free].child[0])
        memset(&self.inners[node], 0, sizeof(Inner))
        return node

    cdef void free_leaf(self, uint32_t leaf) noexcept nogil:
        if self.heads[leaf].side != NONE:
            self.free_side(self.heads[leaf].side)
        self.heads[leaf].side = self.leaf_pool.free
        put_back(&self.leaf_pool, leaf)

    cdef void free_side(self, uint32_t side) noexcept nogil:
        self.sides[side].counts[0] = self.side_pool.free
        put_back(&self.side_pool, side)

    cdef void free_inner(self, uint32_t node) noexcept nogil:
        self.inners[node].child[0] = self.inner_pool.free
        put_back(&self.inner_pool, node)

    cdef size_t bytes(self) noexcept nogil:
        """Memory held for nodes, free ones included."""
        return (
            self.leaf_pool.capacity * (sizeof(Leaf) + sizeof(Head))
            + self.side_pool.capacity * sizeof(Side)
            + self.inner_pool.capacity * sizeof(Inner)
        )
