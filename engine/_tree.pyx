"""A counted B+-tree over distinct scores: the ordered multiset under every exact reading.

Scores lie in leaves of 64, sorted. Most scores occur once, so a leaf keeps their classes as the bits
of one word: the counts below a rank are a popcount. Only a leaf that holds ties has a *side*, an
array of running counts, and gives it back when its last tie is gone. An inner node holds for each of
64 children where it begins and how many events of each class lie before it, both in two levels of
eight: a search is 7 + 8 compares without a branch, an update an addition to 8 + 8 words.

Counts of the two classes travel in one word, positives above negatives (*packed*). With them goes
2 U, where U = sum over blocks of equal scores d1 * (n0 below + d0 / 2) is the Mann-Whitney statistic;
each event changes it by propositions 1 and 2 of Tatti (2018, section 4). Everything is an integer:
what a tree reads depends on the events inside and on nothing else.

Nodes are numbers into three growing blocks of memory; an update in steady state allocates nothing.
What can fail for want of memory is reserved before anything is changed.
"""

cimport cython
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

cdef extern from "stdlib.h" nogil:
    void *aligned_alloc(size_t alignment, size_t size)

cdef enum:
    BUILT = 56  # scores in a leaf, or children in a node, of a tree built in bulk

# AFTER_GROUP + 7 - i are eight words, all ones behind place i: they mask an addition to places > i.
cdef uint64_t[16] AFTER_GROUP


cdef void fill_masks() noexcept nogil:
    cdef int i
    for i in range(16):
        AFTER_GROUP[i] = 0 if i < 8 else ~<uint64_t> 0


fill_masks()


cdef inline void add_after(Inner *inner, uint32_t slot, uint64_t counts) noexcept nogil:
    """Add packed counts to what lies before each child behind `slot`."""
    cdef uint64_t *within = inner.within + (slot & ~7u)
    cdef const uint64_t *mask = AFTER_GROUP + 7 - (slot & 7)
    cdef int j
    for j in range(8):
        within[j] += mask[j] & counts
    mask = AFTER_GROUP + 7 - (slot >> 3)
    for j in range(8):
        inner.before[j] += mask[j] & counts


cdef inline void add_from(
    uint64_t *counts, uint32_t rank, uint32_t size, uint64_t more
) noexcept nogil:
    """Add packed counts to the running counts of a leaf from `rank` up to its size."""
    cdef uint32_t j
    for j in range(rank, size):
        counts[j] += more


cdef inline uint64_t insert_bit(uint64_t bits, uint32_t rank, uint64_t bit) noexcept nogil:
    cdef uint64_t low = bits_below(rank)
    return (bits & low) | ((bits & ~low) << 1) | (bit << rank)


cdef inline uint64_t delete_bit(uint64_t bits, uint32_t rank) noexcept nogil:
    cdef uint64_t low = bits_below(rank)
    return (bits & low) | ((bits >> 1) & ~low)


cdef void unpack(const Inner *inner, uint64_t *starts) noexcept nogil:
    """Counts before each child, in one level."""
    cdef uint32_t i
    for i in range(inner.size):
        starts[i] = counts_before(inner, i)


cdef void pack(Inner *inner, const uint64_t *starts, uint32_t size) noexcept nogil:
    """Set the counts of `size` children from one level, and what follows from `first`."""
    cdef uint32_t group, i
    cdef uint64_t base = 0
    inner.size = size
    for group in range(8):
        if 8 * group < size:
            base = starts[8 * group]
        elif size:
            base = starts[size - 1]
        inner.before[group] = base
        for i in range(8 * group, 8 * group + 8):
            inner.within[i] = starts[i] - base if i < size else 0
    for i in range(size, FAN):
        inner.first[i] = INFINITY
    for group in range(7):
        inner.samples[group] = inner.first[8 * group + 8]
    inner.samples[7] = INFINITY


cdef uint32_t take(Pool *pool) noexcept nogil:
    """Number of a node never used; the pool has one."""
    pool.used += 1
    return pool.used - 1


cdef uint32_t larger(const Pool *pool, uint32_t more) noexcept nogil:
    """The capacity to grow to: a quarter more, at least what is asked."""
    cdef uint32_t spare = pool.used // 4
    return pool.used + (spare if spare > more else more)


cdef bint grow(void **block, size_t used, size_t capacity, size_t width) noexcept nogil:
    """Move a block of nodes to a larger one; where memory is out it stays as it was."""
    cdef void *fresh = aligned_alloc(64, (capacity * width + 63) // 64 * 64)
    if fresh == NULL:
        return False
    if used:
        memcpy(fresh, block[0], used * width)
    free(block[0])
    block[0] = fresh
    return True


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
        memset(&self.leaf_pool, 0, sizeof(Pool))
        memset(&self.side_pool, 0, sizeof(Pool))
        memset(&self.inner_pool, 0, sizeof(Pool))
        self.leaf_pool.free = self.side_pool.free = self.inner_pool.free = NONE
        self.root = NONE
        self.height = 0
        self.distinct = 0
        self.total = 0
        self.twice_u = 0

    # Events

    cdef Status add(self, double score, bint label) noexcept nogil:
        """Count one event; anything but DONE leaves the tree as it was."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t event = POSITIVE if label else NEGATIVE
        cdef uint64_t below, before
        cdef uint64_t *counts
        cdef uint32_t leaf, rank, size, level
        cdef Status status
        if self.root == NONE:
            if not self.reserve_leaves(1):
                return NO_MEMORY
            self.root = self.new_leaf()
        elif <uint64_t> (positives(self.total) + negatives(self.total)) == LIMIT:
            return TOO_MANY
        leaf = self.descend(score, path, &below)
        cdef double *keys = self.leaves[leaf].keys
        cdef Head *head = &self.heads[leaf]
        size = head.size
        rank = rank_below(keys, score)
        if rank < size and keys[rank] == score:
            if head.side == NONE and not self.give_side(leaf):
                return NO_MEMORY
            counts = self.sides[head.side].counts
            before = counts[rank - 1] if rank else 0
            self.count_pairs(below + before, counts[rank] - before, label, 1)
            add_from(counts, rank, size, event)
        else:
            if size == LEAF:
                status = self.split_leaf(path, leaf, rank, score)
                return status if status != DONE else self.add(score, label)
            self.count_pairs(below + self.prefix(leaf, rank), 0, label, 1)
            self.distinct += 1
            memmove(keys + rank + 1, keys + rank, sizeof(double) * (size - rank))
            keys[rank] = score
            head.size = size + 1
            if head.side == NONE:
                head.labels = insert_bit(head.labels, rank, label)
            else:
                counts = self.sides[head.side].counts
                before = counts[rank - 1] if rank else 0
                memmove(counts + rank + 1, counts + rank, sizeof(uint64_t) * (size - rank))
                counts[rank] = before
                add_from(counts, rank, size + 1, event)
        self.total += event
        for level in range(self.height):
            add_after(&self.inners[path[level].node], path[level].slot, event)
        return DONE

    cdef Status remove(self, double score, bint label) noexcept nogil:
        """Forget one event; ABSENT leaves the tree as it was. Never needs memory."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t event = POSITIVE if label else NEGATIVE
        cdef uint64_t below, before, at
        cdef uint64_t *counts = NULL
        cdef uint32_t leaf, rank, size, level
        if self.root == NONE:
            return ABSENT
        leaf = self.descend(score, path, &below)
        cdef double *keys = self.leaves[leaf].keys
        cdef Head *head = &self.heads[leaf]
        size = head.size
        rank = rank_below(keys, score)
        if rank >= size or keys[rank] != score:
            return ABSENT
        if head.side == NONE:
            if (head.labels >> rank & 1) != label:
                return ABSENT
            before = self.prefix(leaf, rank)
            at = 0
            head.labels = delete_bit(head.labels, rank)
        else:
            counts = self.sides[head.side].counts
            before = counts[rank - 1] if rank else 0
            at = counts[rank] - before
            if (positives(at) if label else negatives(at)) == 0:
                return ABSENT
            at -= event
            add_from(counts, rank, size, 0 - event)
        self.total -= event
        self.count_pairs(below + before, at, label, -1)
        for level in range(self.height):
            add_after(&self.inners[path[level].node], path[level].slot, 0 - event)
        if self.total == 0:
            self.clear()
            return DONE
        if at == 0:
            self.distinct -= 1
            size -= 1
            memmove(keys + rank, keys + rank + 1, sizeof(double) * (size - rank))
            keys[size] = INFINITY
            head.size = size
            if counts != NULL:
                memmove(counts + rank, counts + rank + 1, sizeof(uint64_t) * (size - rank))
        if counts != NULL:
            at = counts[size - 1] if size else 0
            if positives(at) + negatives(at) == size:
                self.drop_side(leaf)
        if size < LEAF * 5 // 16 and self.height:
            self.fill_up(path, leaf)
        return DONE

    cdef inline void count_pairs(
        self, uint64_t below, uint64_t at, bint label, int sign
    ) noexcept nogil:
        """Change 2 U by an event with packed counts `below` it and `at` its score beside it.

        Call it while `self.total` does not count the event.
        """
        cdef int64_t pairs
        if label:
            pairs = 2 * negatives(below) + negatives(at)
        else:
            pairs = 2 * (positives(self.total) - positives(below) - positives(at)) + positives(at)
        self.twice_u += sign * pairs

    # Readings

    cdef double auc(self) noexcept nogil:
        """U / (n0 n1); nan while a class is absent. O(1)."""
        cdef double pairs = <double> positives(self.total) * <double> negatives(self.total)
        if pairs == 0:
            return NAN
        return <double> self.twice_u / (2 * pairs)

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
        """Packed counts of the first `rank` scores of a leaf."""
        cdef Head *head = &self.heads[leaf]
        cdef uint64_t ones
        if head.side == NONE:
            ones = popcount(head.labels & bits_below(rank))
            return (ones << 32) | (rank - ones)
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

    cdef uint64_t counts_at(self, double score) noexcept nogil:
        """Packed counts of the events with exactly this score."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t below
        cdef uint32_t leaf, rank
        if self.root == NONE:
            return 0
        leaf = self.descend(score, path, &below)
        rank = rank_below(self.leaves[leaf].keys, score)
        if rank == self.heads[leaf].size or self.leaves[leaf].keys[rank] != score:
            return 0
        return self.prefix(leaf, rank + 1) - self.prefix(leaf, rank)

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
        cdef uint32_t leaf = self.next_leaf(path, True), rank
        cdef uint64_t before, upto
        cdef Py_ssize_t i = 0
        while leaf != NONE:
            before = 0
            for rank in range(self.heads[leaf].size):
                upto = self.prefix(leaf, rank + 1)
                scores[i] = self.leaves[leaf].keys[rank]
                negative[i] = <double> negatives(upto - before)
                positive[i] = <double> positives(upto - before)
                before = upto
                i += 1
            leaf = self.next_leaf(path, False)

    # Bulk building

    cdef Status build(
        self, const double *scores, const uint64_t *counts, uint64_t size
    ) noexcept nogil:
        """Fill an empty tree with ascending distinct scores and their packed counts. O(n)."""
        cdef uint64_t parts = (size + BUILT - 1) // BUILT, i, part, low, high, events = 0
        cdef uint64_t tied = 0, ties
        cdef Status status
        if size == 0:
            return DONE
        for i in range(size):
            events += positives(counts[i]) + negatives(counts[i])
            if events > LIMIT:
                return TOO_MANY
        for part in range(parts):
            ties = 0
            for i in range(part * size // parts, (part + 1) * size // parts):
                ties += positives(counts[i]) + negatives(counts[i]) > 1
            tied += ties > 0
        cdef Branch *branches = <Branch *> malloc(parts * sizeof(Branch))
        if branches == NULL:
            return NO_MEMORY
        status = DONE if self.reserve_leaves(parts) and self.reserve_sides(tied) else NO_MEMORY
        if status == DONE:
            for part in range(parts):
                low = part * size // parts
                high = (part + 1) * size // parts
                branches[part].node = self.new_leaf()
                branches[part].first = scores[low]
                self.build_leaf(branches[part].node, scores + low, counts + low, high - low)
                branches[part].counts = self.prefix(branches[part].node, high - low)
            status = self.build_inners(branches, parts)
        free(branches)
        if status != DONE:
            self.clear()
            return status
        self.distinct = size
        for i in range(size):
            self.count_block(counts[i])
        return DONE

    cdef void build_leaf(
        self, uint32_t leaf, const double *scores, const uint64_t *counts, uint32_t size
    ) noexcept nogil:
        cdef Head *head = &self.heads[leaf]
        cdef uint64_t running = 0
        cdef uint32_t i
        memcpy(self.leaves[leaf].keys, scores, size * sizeof(double))
        head.size = size
        for i in range(size):
            head.labels |= <uint64_t> (positives(counts[i]) > 0) << i
            running += counts[i]
        if positives(running) + negatives(running) == size:
            return
        head.side = self.new_side()
        running = 0
        for i in range(size):
            running += counts[i]
            self.sides[head.side].counts[i] = running

    cdef Status build_inners(self, Branch *branches, uint64_t size) noexcept nogil:
        """Build the levels above `size` subtrees, which it overwrites level by level."""
        cdef uint64_t starts[FAN]
        cdef uint64_t parts, part, low, high, i, running
        cdef Inner *inner
        cdef uint32_t node
        while size > 1:
            parts = (size + BUILT - 1) // BUILT
            if not self.reserve_inners(parts):
                return NO_MEMORY
            for part in range(parts):
                low = part * size // parts
                high = (part + 1) * size // parts
                running = 0
                node = self.new_inner()
                inner = &self.inners[node]
                for i in range(low, high):
                    inner.child[i - low] = branches[i].node
                    inner.first[i - low] = branches[i].first
                    starts[i - low] = running
                    running += branches[i].counts
                inner.first[0] = -INFINITY
                pack(inner, starts, high - low)
                branches[part].node = node
                branches[part].first = branches[low].first
                branches[part].counts = running
            size = parts
            self.height += 1
        self.root = branches[0].node
        return DONE

    cdef inline void count_block(self, uint64_t counts) noexcept nogil:
        """Count a block of equal scores above all others into the total and 2 U."""
        self.twice_u += positives(counts) * (2 * negatives(self.total) + negatives(counts))
        self.total += counts

    # Ties

    cdef bint give_side(self, uint32_t leaf) noexcept nogil:
        """Give a leaf its running counts, for its first tie; False when memory is out."""
        cdef Head *head = &self.heads[leaf]
        cdef uint64_t running = 0
        cdef uint64_t *counts
        cdef uint32_t i, side
        if head.side != NONE:
            return True
        if not self.reserve_sides(1):
            return False
        side = self.new_side()
        counts = self.sides[side].counts
        for i in range(head.size):
            running += POSITIVE if head.labels >> i & 1 else NEGATIVE
            counts[i] = running
        head.side = side
        return True

    cdef void drop_side(self, uint32_t leaf) noexcept nogil:
        """Go back to labels as bits: every score of the leaf occurs once."""
        cdef Head *head = &self.heads[leaf]
        cdef Side *side = &self.sides[head.side]
        cdef uint64_t labels = 0, before = 0
        cdef uint32_t i
        for i in range(head.size):
            labels |= <uint64_t> positives(side.counts[i] - before) << i
            before = side.counts[i]
        head.labels = labels
        side.counts[0] = self.side_pool.free
        self.side_pool.free = head.side
        self.side_pool.free_size += 1
        head.side = NONE

    # Splits

    cdef Status split_leaf(
        self, Step *path, uint32_t leaf, uint32_t rank, double score
    ) noexcept nogil:
        """Make room for `score` at `rank` of a full leaf: half of it moves to a new leaf behind.

        At either end of all scores everything stays on one side, so that scores which arrive in
        order fill their leaves.
        """
        cdef uint32_t fresh, cut = LEAF // 2, i
        cdef uint64_t left
        cdef double first
        if (
            not self.reserve_leaves(1)
            or not self.reserve_sides(1)
            or not self.reserve_inners(self.height + 1)
        ):
            return NO_MEMORY
        if rank == LEAF and self.is_outermost(path, True):
            cut = LEAF
        elif rank == 0 and self.is_outermost(path, False):
            cut = 0
        fresh = self.new_leaf()
        left = self.prefix(leaf, cut)
        cdef double *keys = self.leaves[leaf].keys
        cdef double *moved = self.leaves[fresh].keys
        cdef Head *head = &self.heads[leaf]
        cdef Head *tail = &self.heads[fresh]
        cdef uint64_t *counts
        cdef uint64_t *moved_counts
        first = score if cut == LEAF else keys[cut]
        if head.side == NONE:
            tail.labels = head.labels >> cut if cut < LEAF else 0
            head.labels &= bits_below(cut)
        elif cut < LEAF:
            tail.side = self.new_side()
            counts = self.sides[head.side].counts
            moved_counts = self.sides[tail.side].counts
            for i in range(cut, LEAF):
                moved_counts[i - cut] = counts[i] - left
        for i in range(cut, LEAF):
            moved[i - cut] = keys[i]
            keys[i] = INFINITY
        head.size = cut
        tail.size = LEAF - cut
        if head.side != NONE and negatives(left) + positives(left) == cut:
            self.drop_side(leaf)
        if tail.side != NONE:
            left = self.sides[tail.side].counts[LEAF - cut - 1]
            if negatives(left) + positives(left) == LEAF - cut:
                self.drop_side(fresh)
            left = self.prefix(leaf, cut)
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
        cdef uint64_t starts[FAN + 1]
        cdef uint64_t upper[FAN]
        cdef uint64_t base
        cdef uint32_t here, fresh, slot, size, cut, i
        cdef double fresh_first
        cdef Inner *inner
        cdef Inner *other
        if level == self.height:
            fresh = self.new_inner()
            inner = &self.inners[fresh]
            inner.child[0] = self.root
            inner.child[1] = node
            inner.first[0] = -INFINITY
            inner.first[1] = first
            starts[0] = 0
            starts[1] = left
            pack(inner, starts, 2)
            self.root = fresh
            self.height += 1
            return
        here = path[level].node
        slot = path[level].slot
        size = self.inners[here].size
        if size == FAN:
            cut = FAN // 2
            if slot == FAN - 1 and self.is_outermost(path, True):
                cut = FAN - 1
            fresh = self.new_inner()
            inner = &self.inners[here]
            other = &self.inners[fresh]
            unpack(inner, starts)
            base = starts[cut]
            fresh_first = inner.first[cut]
            for i in range(cut, FAN):
                other.first[i - cut] = inner.first[i]
                other.child[i - cut] = inner.child[i]
                upper[i - cut] = starts[i] - base
            other.first[0] = -INFINITY
            pack(inner, starts, cut)
            pack(other, upper, FAN - cut)
            self.link(path, level + 1, fresh, fresh_first, base)
            if slot >= cut:
                here = fresh
                slot -= cut
            size = self.inners[here].size
        inner = &self.inners[here]
        unpack(inner, starts)
        for i in range(size, slot + 1, -1):
            inner.first[i] = inner.first[i - 1]
            inner.child[i] = inner.child[i - 1]
            starts[i] = starts[i - 1]
        inner.first[slot + 1] = first
        inner.child[slot + 1] = node
        starts[slot + 1] = starts[slot] + left
        pack(inner, starts, size + 1)

    # Merges

    cdef void fill_up(self, Step *path, uint32_t leaf) noexcept nogil:
        """Join a leaf that runs low with a neighbour, if the two fit well into one."""
        cdef uint32_t parent = path[0].node, slot = path[0].slot, left, right, side, i, size, more
        cdef uint64_t base
        cdef uint64_t *counts
        cdef uint64_t *moved
        for side in range(2):
            if (slot + 1 == self.inners[parent].size) if side == 0 else slot == 0:
                continue
            left = self.inners[parent].child[slot - side]
            right = self.inners[parent].child[slot - side + 1]
            size = self.heads[left].size
            more = self.heads[right].size
            if size + more > LEAF * 13 // 16:
                continue
            if self.heads[left].side != NONE or self.heads[right].side != NONE:
                if not self.give_side(left) or not self.give_side(right):
                    return
                counts = self.sides[self.heads[left].side].counts
                moved = self.sides[self.heads[right].side].counts
                base = counts[size - 1] if size else 0
                for i in range(more):
                    counts[size + i] = moved[i] + base
            else:
                self.heads[left].labels |= self.heads[right].labels << size
            memcpy(
                self.leaves[left].keys + size, self.leaves[right].keys, sizeof(double) * more
            )
            self.heads[left].size = size + more
            self.free_leaf(right)
            self.unlink(path, 0, slot - side + 1)
            return
        if self.heads[leaf].size == 0:
            self.free_leaf(leaf)
            self.unlink(path, 0, slot)

    cdef void unlink(self, Step *path, uint32_t level, uint32_t slot) noexcept nogil:
        """Take the child at `slot` out of its node; the one before takes over its events."""
        cdef uint64_t starts[FAN]
        cdef uint32_t here = path[level].node, i
        cdef Inner *inner = &self.inners[here]
        cdef uint32_t size = inner.size - 1
        if size == 0:
            self.free_inner(here)
            self.unlink(path, level + 1, path[level + 1].slot)
            return
        unpack(inner, starts)
        for i in range(slot, size):
            inner.first[i] = inner.first[i + 1]
            inner.child[i] = inner.child[i + 1]
            starts[i] = starts[i + 1]
        inner.first[0] = -INFINITY
        pack(inner, starts, size)
        if level + 1 == self.height:
            while self.height and self.inners[self.root].size == 1:
                here = self.root
                self.root = self.inners[here].child[0]
                self.free_inner(here)
                self.height -= 1
        elif size < FAN // 4:
            self.fill_up_inner(path, level)

    cdef void fill_up_inner(self, Step *path, uint32_t level) noexcept nogil:
        """Join an inner node that runs low with a neighbour, if the two fit well into one."""
        cdef uint64_t starts[FAN]
        cdef uint32_t slot = path[level + 1].slot, side, at, i, size, more
        cdef Inner *parent = &self.inners[path[level + 1].node]
        cdef Inner *left
        cdef Inner *right
        cdef uint64_t base
        for side in range(2):
            if (slot + 1 == parent.size) if side == 0 else slot == 0:
                continue
            at = slot - side
            left = &self.inners[parent.child[at]]
            right = &self.inners[parent.child[at + 1]]
            size = left.size
            more = right.size
            if size + more > FAN * 3 // 4:
                continue
            base = counts_before(parent, at + 1) - counts_before(parent, at)
            unpack(left, starts)
            for i in range(more):
                left.first[size + i] = right.first[i]
                left.child[size + i] = right.child[i]
                starts[size + i] = counts_before(right, i) + base
            left.first[size] = parent.first[at + 1]
            pack(left, starts, size + more)
            self.free_inner(parent.child[at + 1])
            self.unlink(path, level + 1, at + 1)
            return

    # Memory

    cdef bint reserve_leaves(self, uint32_t more) noexcept nogil:
        cdef Pool *pool = &self.leaf_pool
        cdef uint32_t capacity
        if pool.free_size + pool.capacity - pool.used >= more:
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
        if pool.free_size + pool.capacity - pool.used >= more:
            return True
        capacity = larger(pool, more)
        if not grow(<void **> &self.sides, pool.used, capacity, sizeof(Side)):
            return False
        pool.capacity = capacity
        return True

    cdef bint reserve_inners(self, uint32_t more) noexcept nogil:
        cdef Pool *pool = &self.inner_pool
        cdef uint32_t capacity
        if pool.free_size + pool.capacity - pool.used >= more:
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
        cdef uint32_t side = self.heads[leaf].side
        if side != NONE:
            self.sides[side].counts[0] = self.side_pool.free
            self.side_pool.free = side
            self.side_pool.free_size += 1
        self.heads[leaf].side = self.leaf_pool.free
        self.leaf_pool.free = leaf
        self.leaf_pool.free_size += 1

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

    # Invariants

    def _check(self):
        """Assert every invariant of the structure against a walk over all of it. O(n)."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t total = 0
        cdef uint64_t distinct = 0
        cdef uint32_t leaf
        cdef object twice_u = 0
        if self.root == NONE:
            assert self.total == 0 and self.height == 0 and self.leaves == NULL
        else:
            total = self.check_node(self.root, self.height, -INFINITY, INFINITY)
        leaf = self.next_leaf(path, True)
        below = 0
        while leaf != NONE:
            distinct += self.heads[leaf].size
            for rank in range(self.heads[leaf].size):
                at = self.prefix(leaf, rank + 1) - self.prefix(leaf, rank)
                twice_u += positives(at) * (2 * below + negatives(at))
                below += negatives(at)
            leaf = self.next_leaf(path, False)
        assert total == self.total
        assert distinct == self.distinct
        assert twice_u == self.twice_u

    cdef uint64_t check_node(
        self, uint32_t node, uint32_t level, double low, double high
    ) except? 0:
        """Assert the invariants of a subtree over scores in [low, high); its packed counts."""
        cdef uint32_t i
        cdef uint64_t total = 0
        cdef Inner *inner
        cdef double *keys
        cdef Head *head
        cdef double first, last
        if level == 0:
            keys = self.leaves[node].keys
            head = &self.heads[node]
            assert head.size <= LEAF
            for i in range(head.size):
                assert low <= keys[i] < high
                assert i == 0 or keys[i - 1] < keys[i]
                assert self.prefix(node, i + 1) != self.prefix(node, i)
            for i in range(head.size, LEAF):
                assert keys[i] == INFINITY
            total = self.prefix(node, head.size)
            if head.side == NONE:
                assert head.labels & ~bits_below(head.size) == 0
            else:
                assert negatives(total) + positives(total) > head.size
            return total
        inner = &self.inners[node]
        assert 1 <= inner.size <= FAN
        assert level < self.height or inner.size > 1
        assert inner.first[0] == -INFINITY
        for i in range(FAN):
            if i >= inner.size:
                assert inner.first[i] == INFINITY
                continue
            assert counts_before(inner, i) == total
            if i and not i & 7:
                assert inner.samples[(i >> 3) - 1] == inner.first[i]
            first = inner.first[i] if i else low
            last = inner.first[i + 1] if i + 1 < inner.size else high
            assert first < last
            total += self.check_node(inner.child[i], level - 1, first, last)
        return total
