"""A counted B+-tree over distinct scores: the ordered multiset under every exact reading.

Scores lie in leaves of 64, sorted (`_leaf`). Most scores occur once, so a leaf keeps the classes of its
events as the bits of one word: the counts below a rank are a popcount. A few ties repeat their key;
where ties fill a leaf it has a *side*, an array of running counts, until few are left. An inner node
(`_inner`) holds for each of 64 children where it begins and how many events of each class lie before
it, both in two levels of eight: a search is 7 + 8 compares without a branch, an update an addition to
8 + 8 words. `_build` makes whole trees at once.

Counts of the two classes travel in one word (`_counts`). With them goes 2 U, where U = sum over blocks of
equal scores d1 * (n0 below + d0 / 2) is the Mann-Whitney statistic; each event changes it by
propositions 1 and 2 of Tatti (2018, section 4). Everything is an integer: what a tree reads depends on
the events inside and on nothing else.

Nodes are numbers into three growing blocks of memory (`_pool`); an update in steady state allocates
nothing. What can fail for want of memory is reserved before anything is changed.
"""

cimport cython
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from engine._counts cimport (
    LIMIT,
    bits_below,
    count_bits,
    delete_bit,
    events,
    insert_bit,
    negatives,
    one_event,
    positives,
)
from engine._inner cimport (
    FAN,
    Inner,
    add_after,
    append_children,
    counts_before,
    cut_children,
    insert_child,
    pack,
    remove_child,
    slot_of,
)
from engine._leaf cimport (
    LEAF,
    SPREAD,
    Head,
    Leaf,
    Side,
    add_from,
    close_count,
    close_key,
    distinct_keys,
    end_of_tie,
    fold_ties,
    middle_cut,
    open_count,
    open_key,
    rank_below,
    rank_upto,
    spread_ties,
)
from engine._pool cimport NONE, Pool, empty, grow, has_room, larger, take
from engine._ratio cimport ratio


cdef inline void drop_key(double *keys, Head *head, uint32_t rank) noexcept nogil:
    """Take a key out of a leaf."""
    close_key(keys, rank, head.size)
    head.size -= 1
    keys[head.size] = INFINITY


@cython.final
cdef class Tree:
    """Distinct scores in order with the counts of both classes; everything in O(log n)."""

    def __cinit__(self):
        self.leaves = NULL
        self.heads = NULL
        self.sides = NULL
        self.inners = NULL
        self.clear()

    def __dealloc__(self):
        self.clear()

    cdef void clear(self) noexcept nogil:
        """Forget everything and give the memory back."""
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
        self.distinct = 0
        self.total = 0
        self.twice_u = 0

    # Events

    cdef Status add(self, double score, bint label) noexcept nogil:
        """Count one event; anything but DONE leaves the tree as it was."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t event = one_event(label)
        cdef uint64_t below, before, at = 0
        cdef uint64_t *counts
        cdef uint32_t leaf, rank, end, size, level
        cdef Status status
        if self.root == NONE:
            if not self.reserve_leaves(1):
                return NO_MEMORY
            self.root = self.new_leaf()
        elif events(self.total) == LIMIT:
            return TOO_MANY
        leaf = self.descend(score, path, &below)
        cdef double *keys = self.leaves[leaf].keys
        cdef Head *head = &self.heads[leaf]
        size = head.size
        rank = rank_below(keys, score)
        end = end_of_tie(keys, rank, size, score)
        if size == LEAF and (head.side == NONE or rank == end):
            status = self.make_room(path, leaf, rank, score)
            return status if status != DONE else self.add(score, label)
        if head.side == NONE:
            before = count_bits(head.labels, rank)
            if rank == end:
                self.distinct += 1
            else:
                at = count_bits(head.labels, end) - before
                rank = rank if label else end
            open_key(keys, rank, size, score)
            head.labels = insert_bit(head.labels, rank, label)
            head.size = size + 1
        else:
            counts = self.sides[head.side].counts
            if rank == end:
                self.distinct += 1
                open_key(keys, rank, size, score)
                open_count(counts, rank, size)
                size += 1
                head.size = size
            before = counts[rank - 1] if rank else 0
            at = counts[rank] - before
            add_from(counts, rank, size, event)
        self.count_pairs(below + before, at, label, 1)
        self.total += event
        for level in range(self.height):
            add_after(&self.inners[path[level].node], path[level].slot, event)
        return DONE

    cdef Status remove(self, double score, bint label) noexcept nogil:
        """Forget one event; ABSENT leaves the tree as it was. Never needs memory."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t event = one_event(label)
        cdef uint64_t below, before, at = event
        cdef uint64_t *counts
        cdef uint32_t leaf, rank, end, level
        if self.root == NONE:
            return ABSENT
        leaf = self.descend(score, path, &below)
        cdef double *keys = self.leaves[leaf].keys
        cdef Head *head = &self.heads[leaf]
        rank = rank_below(keys, score)
        end = end_of_tie(keys, rank, head.size, score)
        if rank == end:
            return ABSENT
        if head.side == NONE:
            before = count_bits(head.labels, rank)
            if end > rank + 1:
                at = count_bits(head.labels, end) - before
                rank = rank if label else end - 1
            if (head.labels >> rank & 1) != label:
                return ABSENT
            at -= event
            head.labels = delete_bit(head.labels, rank)
            drop_key(keys, head, rank)
        else:
            counts = self.sides[head.side].counts
            before = counts[rank - 1] if rank else 0
            at = counts[rank] - before
            if (positives(at) if label else negatives(at)) == 0:
                return ABSENT
            at -= event
            add_from(counts, rank, head.size, 0 - event)
            if at == 0:
                close_count(counts, rank, head.size)
                drop_key(keys, head, rank)
        self.distinct -= at == 0
        self.total -= event
        if self.total == 0:
            self.clear()
            return DONE
        self.count_pairs(below + before, at, label, -1)
        for level in range(self.height):
            add_after(&self.inners[path[level].node], path[level].slot, 0 - event)
        if head.side != NONE:
            self.spread_out(leaf)
        if head.size < LEAF * 5 // 16 and self.height:
            self.fill_up(path, 0)
        return DONE

    cdef inline void count_pairs(
        self, uint64_t below, uint64_t at, bint label, int sign
    ) noexcept nogil:
        """Change 2 U by an event with packed counts `below` it and `at` its score beside it.

        Call it while `self.total` does not count the event.
        """
        # A positive meets the negatives below, a negative the positives above; labels are hard to
        # foretell, so both ways are one.
        cdef uint64_t mask = 0 - <uint64_t> label
        cdef uint64_t met = (below & mask) | ((self.total - below - at) & ~mask)
        cdef int shift = 32 & ~<int> mask
        self.twice_u += sign * (2 * negatives(met >> shift) + negatives(at >> shift))

    # Readings

    cdef double auc(self) noexcept nogil:
        """U / (n0 n1), correctly rounded; nan while a class is absent. O(1)."""
        cdef uint64_t pairs = <uint64_t> positives(self.total) * <uint64_t> negatives(self.total)
        if pairs == 0:
            return NAN
        return ratio(self.twice_u, 2 * pairs)

    cdef inline uint32_t descend(self, double score, Step *path, uint64_t *below) noexcept nogil:
        """The leaf whose range holds `score`, the way there, the counts before that leaf."""
        cdef uint32_t node = self.root, level = self.height
        cdef uint64_t counts = 0
        cdef Inner *inner
        while level:
            level -= 1
            inner = &self.inners[node]
            path[level].node = node
            path[level].slot = slot_of(inner, score)
            counts += counts_before(inner, path[level].slot)
            node = inner.child[path[level].slot]
        below[0] = counts
        return node

    cdef inline uint64_t prefix(self, uint32_t leaf, uint32_t rank) noexcept nogil:
        """Packed counts at the first `rank` keys of a leaf."""
        cdef Head *head = &self.heads[leaf]
        if head.side == NONE:
            return count_bits(head.labels, rank)
        return self.sides[head.side].counts[rank - 1] if rank else 0

    cdef uint64_t counts_upto(self, double score) noexcept nogil:
        """Packed counts of the events at or below `score`."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t below
        cdef uint32_t leaf
        if self.root == NONE:
            return 0
        if score == INFINITY:
            return self.total
        leaf = self.descend(score, path, &below)
        return below + self.prefix(leaf, rank_upto(self.leaves[leaf].keys, score))

    cdef uint32_t next_leaf(self, Step *path, bint first) noexcept nogil:
        """Walk the leaves in order: the first one, then the next after `path`; NONE at the end."""
        cdef uint32_t level = 0, node
        if self.root == NONE:
            return NONE
        if first:
            level = self.height
            node = self.root
        else:
            while level < self.height and path[level].slot + 1 == self.inners[path[level].node].size:
                level += 1
            if level == self.height:
                return NONE
            path[level].slot += 1
            node = self.inners[path[level].node].child[path[level].slot]
        while level:
            level -= 1
            path[level].node = node
            path[level].slot = 0
            node = self.inners[node].child[0]
        return node

    cdef void blocks(self, double *scores, double *negative, double *positive) noexcept nogil:
        """Write each distinct score, ascending, with the weight of both classes there."""
        cdef Step path[MAX_HEIGHT]
        cdef uint32_t leaf = self.next_leaf(path, True), rank, size
        cdef uint64_t before, upto
        cdef const double *keys
        cdef Py_ssize_t i = 0
        while leaf != NONE:
            keys = self.leaves[leaf].keys
            size = self.heads[leaf].size
            before = 0
            for rank in range(1, size + 1):
                if rank < size and keys[rank] == keys[rank - 1]:
                    continue
                upto = self.prefix(leaf, rank)
                scores[i] = keys[rank - 1]
                negative[i] = <double> negatives(upto - before)
                positive[i] = <double> positives(upto - before)
                before = upto
                i += 1
            leaf = self.next_leaf(path, False)

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
            return DONE if self.count_ties(leaf) else NO_MEMORY
        return self.split_leaf(path, leaf, rank, score)

    cdef Status split_leaf(
        self, Step *path, uint32_t leaf, uint32_t rank, double score
    ) noexcept nogil:
        """Move half of a full leaf, into which `score` would go at `rank`, to a new one behind it.

        At either end of all scores everything stays on one side, so that scores which arrive in
        order fill their leaves.
        """
        cdef uint32_t fresh, cut, i, full = 0
        cdef uint64_t left
        cdef double first
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
            cut = LEAF
        elif score < keys[0] and self.is_outermost(path, False):
            cut = 0
        else:
            cut = middle_cut(keys)
        fresh = self.new_leaf()
        left = self.prefix(leaf, cut)
        cdef double *moved = self.leaves[fresh].keys
        cdef Head *head = &self.heads[leaf]
        cdef Head *tail = &self.heads[fresh]
        cdef const uint64_t *counts
        first = score if cut == LEAF else keys[cut]
        if head.side == NONE:
            tail.labels = head.labels >> cut if cut < LEAF else 0
            head.labels &= bits_below(cut)
        elif cut < LEAF:
            tail.side = self.new_side()
            counts = self.sides[head.side].counts
            for i in range(cut, LEAF):
                self.sides[tail.side].counts[i - cut] = counts[i] - left
        for i in range(cut, LEAF):
            moved[i - cut] = keys[i]
            keys[i] = INFINITY
        head.size = cut
        tail.size = LEAF - cut
        if head.side != NONE:
            self.spread_out(leaf)
        if tail.side != NONE:
            self.spread_out(fresh)
        self.link(path, 0, fresh, first, left)
        return DONE

    cdef bint is_outermost(self, const Step *path, bint right) noexcept nogil:
        cdef uint32_t level
        for level in range(self.height):
            if path[level].slot != (self.inners[path[level].node].size - 1 if right else 0):
                return False
        return True

    cdef void link(
        self, Step *path, uint32_t level, uint32_t node, double first, uint64_t left
    ) noexcept nogil:
        """Enter `node` behind the child at `path[level]`, which keeps the packed counts `left`."""
        if level == self.height:
            self.raise_root(node, first, left)
            return
        if self.inners[path[level].node].size == FAN:
            self.split_inner(path, level)
        insert_child(&self.inners[path[level].node], path[level].slot + 1, node, first, left)

    cdef void split_inner(self, Step *path, uint32_t level) noexcept nogil:
        """Move half of a full inner node to a new one behind it; `path` follows its child."""
        cdef uint32_t here = path[level].node, cut = FAN // 2, fresh
        cdef double first
        cdef uint64_t left
        if path[level].slot == FAN - 1 and self.is_outermost(path, True):
            cut = FAN - 1
        fresh = self.new_inner()
        first = self.inners[here].first[cut]
        left = cut_children(&self.inners[here], cut, &self.inners[fresh])
        self.link(path, level + 1, fresh, first, left)
        if path[level].slot >= cut:
            path[level].node = fresh
            path[level].slot -= cut

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

    # Memory

    cdef bint reserve_leaves(self, uint32_t more) noexcept nogil:
        """Have so many leaves for `new_leaf` to give; False without memory."""
        cdef Pool *pool = &self.leaf_pool
        cdef uint32_t capacity
        if has_room(pool, more):
            return True
        capacity = larger(pool, more)
        if not grow(<void **> &self.leaves, pool.used, capacity, sizeof(Leaf)):
            return False
        if not grow(<void **> &self.heads, pool.used, capacity, sizeof(Head)):
            return False
        pool.capacity = capacity
        return True

    cdef bint reserve_sides(self, uint32_t more) noexcept nogil:
        cdef Pool *pool = &self.side_pool
        cdef uint32_t capacity
        if has_room(pool, more):
            return True
        capacity = larger(pool, more)
        if not grow(<void **> &self.sides, pool.used, capacity, sizeof(Side)):
            return False
        pool.capacity = capacity
        return True

    cdef bint reserve_inners(self, uint32_t more) noexcept nogil:
        cdef Pool *pool = &self.inner_pool
        cdef uint32_t capacity
        if has_room(pool, more):
            return True
        capacity = larger(pool, more)
        if not grow(<void **> &self.inners, pool.used, capacity, sizeof(Inner)):
            return False
        pool.capacity = capacity
        return True

    cdef uint32_t new_leaf(self) noexcept nogil:
        """An empty leaf out of what was reserved; a free one is linked through its side."""
        cdef uint32_t leaf = self.leaf_pool.free, i
        if leaf == NONE:
            leaf = take(&self.leaf_pool)
        else:
            self.leaf_pool.free = self.heads[leaf].side
            self.leaf_pool.free_size -= 1
        for i in range(LEAF):
            self.leaves[leaf].keys[i] = INFINITY
        self.heads[leaf].labels = 0
        self.heads[leaf].size = 0
        self.heads[leaf].side = NONE
        return leaf

    cdef uint32_t new_side(self) noexcept nogil:
        """A zeroed side out of what was reserved; a free one is linked through its first count."""
        cdef uint32_t side = self.side_pool.free
        if side == NONE:
            side = take(&self.side_pool)
        else:
            self.side_pool.free = <uint32_t> self.sides[side].counts[0]
            self.side_pool.free_size -= 1
        memset(&self.sides[side], 0, sizeof(Side))
        return side

    cdef uint32_t new_inner(self) noexcept nogil:
        """An inner node out of what was reserved; a free one is linked through its first child."""
        cdef uint32_t node = self.inner_pool.free
        if node == NONE:
            node = take(&self.inner_pool)
        else:
            self.inner_pool.free = self.inners[node].child[0]
            self.inner_pool.free_size -= 1
        memset(&self.inners[node], 0, sizeof(Inner))
        return node

    cdef void free_leaf(self, uint32_t leaf) noexcept nogil:
        if self.heads[leaf].side != NONE:
            self.free_side(self.heads[leaf].side)
        self.heads[leaf].side = self.leaf_pool.free
        self.leaf_pool.free = leaf
        self.leaf_pool.free_size += 1

    cdef void free_side(self, uint32_t side) noexcept nogil:
        self.sides[side].counts[0] = self.side_pool.free
        self.side_pool.free = side
        self.side_pool.free_size += 1

    cdef void free_inner(self, uint32_t node) noexcept nogil:
        self.inners[node].child[0] = self.inner_pool.free
        self.inner_pool.free = node
        self.inner_pool.free_size += 1

    cdef size_t bytes(self) noexcept nogil:
        """Memory held for nodes, free ones included."""
        return (
            self.leaf_pool.capacity * (sizeof(Leaf) + sizeof(Head))
            + self.side_pool.capacity * sizeof(Side)
            + self.inner_pool.capacity * sizeof(Inner)
        )

    def _check(self):
        """Assert every invariant, see `engine._tree_check`; O(n)."""
        from engine._tree_check import check

        check(self)
