"""How the counted tree keeps its shape: leaves count their ties or split, and low nodes join.

Leaves and inner nodes split and join in one way (`split`, `fill_up`); what of a leaf or of an inner node
moves is said beside. A leaf with few ties repeats their key, one full of them has counts (`_leaf`).
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from engine._counts cimport bits_below, count_bits, events
from engine._inner cimport (
    FAN,
    Inner,
    append_children,
    counts_before,
    cut_children,
    insert_child,
    pack,
    remove_child,
)
from engine._leaf cimport LEAF, SPREAD, Head, cut_keys, distinct_keys, fold_ties, middle_cut, spread_ties
from engine._nodes cimport Nodes
from engine._pool cimport NONE


cdef class Balanced(Nodes):
    """Nodes in the shape of a tree in which every way down has the same length."""

    cdef inline uint64_t prefix(self, uint32_t leaf, uint32_t rank) noexcept nogil:
        """Packed counts at the first `rank` keys of a leaf."""
        cdef Head *head = &self.heads[leaf]
        if head.side == NONE:
            return count_bits(head.labels, rank)
        return self.sides[head.side].counts[rank - 1] if rank else 0

    # Ties

    cdef bint count_ties(self, uint32_t leaf) noexcept nogil:
        """Make a leaf a counted one; False when memory is out."""
        cdef Head *head = &self.heads[leaf]
        cdef uint32_t side
        if head.side != NONE:
            return True
        if not self.reserve_sides(1):
            return False
        side = self.new_side()
        fold_ties(self.leaves[leaf].keys, head, self.sides[side].counts)
        head.side = side
        return True

    cdef void spread_out(self, uint32_t leaf) noexcept nogil:
        """Make a counted leaf a plain one if few events are left in it."""
        cdef Head *head = &self.heads[leaf]
        cdef uint32_t side = head.side
        if events(self.prefix(leaf, head.size)) > SPREAD:
            return
        spread_ties(self.leaves[leaf].keys, head, self.sides[side].counts)
        head.side = NONE
        self.free_side(side)

    # Splits

    cdef Status make_room(
        self, Step *path, uint32_t leaf, uint32_t rank, double score
    ) noexcept nogil:
        """Let a full leaf take one more score: count its ties, or split it."""
        if self.heads[leaf].side == NONE and (
            distinct_keys(self.leaves[leaf].keys, LEAF) <= LEAF // 2
        ):
            if not self.count_ties(leaf):
                return NO_MEMORY
            # It has half as many keys now, and its neighbours may have as few.
            if self.height:
                self.fill_up(path, 0)
            return DONE
        return self.split_leaf(path, leaf, rank, score)

    cdef Status split_leaf(
        self, Step *path, uint32_t leaf, uint32_t rank, double score
    ) noexcept nogil:
        """Move half of a full leaf, into which `score` would go at `rank`, to a new one behind it.

        At either end of all scores everything stays on one side, so that scores which arrive in
        order fill their leaves.
        """
        cdef uint32_t cut, full = 0
        # Inner nodes split with it as far up as they are full, and over a full root comes another.
        while full < self.height and self.inners[path[full].node].size == FAN:
            full += 1
        if (
            not self.reserve_leaves(1)
            or not (self.heads[leaf].side == NONE or self.reserve_sides(1))
            or not self.reserve_inners(full + (full == self.height))
        ):
            return NO_MEMORY
        cdef double *keys = self.leaves[leaf].keys
        if rank == LEAF and self.is_outermost(path, True):
            self.split(path, 0, leaf, LEAF, score)
        elif score < keys[0] and self.is_outermost(path, False):
            self.split(path, 0, leaf, 0, keys[0])
        else:
            cut = middle_cut(keys)
            self.split(path, 0, leaf, cut, keys[cut])
        return DONE

    cdef uint32_t split(
        self, Step *path, uint32_t level, uint32_t node, uint32_t cut, double first
    ) noexcept nogil:
        """Move what the child at `path[level]` has from `cut` on to a new one behind it; that one.

        `first` is the smallest score it may hold. The memory for it has been reserved, and for its
        parent to split if that is full.
        """
        cdef uint32_t fresh
        cdef uint64_t left
        if level:
            fresh = self.new_inner()
            left = cut_children(&self.inners[node], cut, &self.inners[fresh])
        else:
            fresh = self.new_leaf()
            left = self.cut_leaf(node, cut, fresh)
        if level == self.height:
            self.raise_root(fresh, first, left)
            return fresh
        if self.inners[path[level].node].size == FAN:
            self.split_parent(path, level)
        insert_child(&self.inners[path[level].node], path[level].slot + 1, fresh, first, left)
        return fresh

    cdef uint64_t cut_leaf(self, uint32_t leaf, uint32_t cut, uint32_t fresh) noexcept nogil:
        """Move the keys of a full leaf from `cut` on to an empty one; packed counts of what stays."""
        cdef Head *head = &self.heads[leaf]
        cdef Head *tail = &self.heads[fresh]
        cdef uint64_t left = self.prefix(leaf, cut)
        cdef const uint64_t *counts
        cdef uint32_t i
        if head.side == NONE:
            tail.labels = head.labels >> cut if cut < LEAF else 0
            head.labels &= bits_below(cut)
        elif cut < LEAF:
            tail.side = self.new_side()
            counts = self.sides[head.side].counts
            for i in range(cut, LEAF):
                self.sides[tail.side].counts[i - cut] = counts[i] - left
        cut_keys(self.leaves[leaf].keys, cut, self.leaves[fresh].keys)
        head.size = cut
        tail.size = LEAF - cut
        if head.side != NONE:
            self.spread_out(leaf)
        if tail.side != NONE:
            self.spread_out(fresh)
        return left

    cdef void split_parent(self, Step *path, uint32_t level) noexcept nogil:
        """Split the full node at `path[level]`; the path goes on to the same child."""
        cdef uint32_t cut = FAN // 2, fresh
        cdef uint32_t here = path[level].node
        if path[level].slot == FAN - 1 and self.is_outermost(path, True):
            cut = FAN - 1
        fresh = self.split(path, level + 1, here, cut, self.inners[here].first[cut])
        if path[level].slot >= cut:
            path[level].node = fresh
            path[level].slot -= cut

    cdef bint is_outermost(self, const Step *path, bint right) noexcept nogil:
        cdef uint32_t level
        for level in range(self.height):
            if path[level].slot != (self.inners[path[level].node].size - 1 if right else 0):
                return False
        return True

    cdef void raise_root(self, uint32_t node, double first, uint64_t left) noexcept nogil:
        """Put a root over the old one, which keeps the packed counts `left`, and `node`."""
        cdef uint64_t[2] starts = [0, left]
        cdef uint32_t root = self.new_inner()
        cdef Inner *inner = &self.inners[root]
        inner.child[0] = self.root
        inner.child[1] = node
        inner.first[1] = first
        pack(inner, starts, 2)
        self.root = root
        self.height += 1

    # Joins

    cdef void fill_up(self, Step *path, uint32_t level) noexcept nogil:
        """Join a child of `path[level]` that runs low with a neighbour, if the two fit well into one.

        A leaf that is empty goes in any case.
        """
        cdef Inner *parent = &self.inners[path[level].node]
        cdef uint32_t slot = path[level].slot, child = parent.child[slot], side, at
        cdef bint joined
        for side in range(2):
            if slot < side or slot - side + 1 == parent.size:
                continue
            at = slot - side
            if level:
                joined = self.join_inners(parent, at)
            else:
                joined = self.join_leaves(parent.child[at], parent.child[at + 1])
            if joined:
                self.unlink(path, level, at + 1)
                return
        if level == 0 and self.heads[child].size == 0:
            self.free_leaf(child)
            self.unlink(path, 0, slot)

    cdef bint join_leaves(self, uint32_t left, uint32_t right) noexcept nogil:
        """Move what a leaf holds into the one before it, if the two fit well into one."""
        cdef Head *head = &self.heads[left]
        cdef Head *tail = &self.heads[right]
        cdef uint64_t *counts
        cdef const uint64_t *moved
        cdef uint64_t base
        cdef uint32_t i
        if head.size + tail.size > LEAF * 13 // 16:
            return False
        if head.side != NONE or tail.side != NONE:
            if not self.count_ties(left) or not self.count_ties(right):
                return False
            counts = self.sides[head.side].counts + head.size
            moved = self.sides[tail.side].counts
            base = self.prefix(left, head.size)
            for i in range(tail.size):
                counts[i] = moved[i] + base
        else:
            head.labels |= tail.labels << head.size
        memcpy(
            self.leaves[left].keys + head.size,
            self.leaves[right].keys,
            sizeof(double) * tail.size,
        )
        head.size += tail.size
        self.free_leaf(right)
        return True

    cdef bint join_inners(self, Inner *parent, uint32_t slot) noexcept nogil:
        """Move the children of the inner node behind `slot` into the one there, if they fit well."""
        cdef uint32_t right = parent.child[slot + 1]
        cdef Inner *inner = &self.inners[parent.child[slot]]
        if inner.size + self.inners[right].size > FAN * 3 // 4:
            return False
        append_children(
            inner,
            &self.inners[right],
            parent.first[slot + 1],
            counts_before(parent, slot + 1) - counts_before(parent, slot),
        )
        self.free_inner(right)
        return True

    cdef void unlink(self, Step *path, uint32_t level, uint32_t slot) noexcept nogil:
        """Take the child at `slot` out of its node; the one before takes over its events."""
        cdef uint32_t here = path[level].node
        if self.inners[here].size == 1:
            self.free_inner(here)
            self.unlink(path, level + 1, path[level + 1].slot)
            return
        remove_child(&self.inners[here], slot)
        if level + 1 == self.height:
            self.lower_root()
        elif self.inners[here].size < FAN // 4:
            self.fill_up(path, level + 1)

    cdef void lower_root(self) noexcept nogil:
        """Let a root with a single child give way to it."""
        cdef uint32_t here
        while self.height and self.inners[self.root].size == 1:
            here = self.root
            self.root = self.inners[here].child[0]
            self.free_inner(here)
            self.height -= 1
