"""A counted B+-tree over distinct scores: the ordered multiset under every exact reading.

Scores lie in leaves of 64, sorted (`_leaf`). Most scores occur once, so a leaf keeps the classes of its
events as the bits of one word: the counts below a rank are a popcount. A few ties repeat their key;
where ties fill a leaf it has a *side*, an array of running counts, until few are left. An inner node
(`_inner`) holds for each of 64 children where it begins and how many events of each class lie before
it, both in two levels of eight: a search is 7 + 8 compares without a branch, an update an addition to
8 + 8 words. `_balance` splits and joins nodes, `_build` makes whole trees at once.

Counts of the two classes travel in one word (`_counts`). With them goes 2 U, where U = sum over blocks of
equal scores d1 * (n0 below + d0 / 2) is the Mann-Whitney statistic; each event changes it by
propositions 1 and 2 of Tatti (2018, section 4). Everything is an integer: what a tree reads depends on
the events inside and on nothing else.
"""

cimport cython
from libc.math cimport INFINITY, NAN
from libc.stdint cimport uint32_t, uint64_t

from engine._counts cimport (
    LIMIT,
    count_bits,
    delete_bit,
    events,
    insert_bit,
    negatives,
    one_event,
    positives,
)
from engine._inner cimport Inner, add_after, counts_before, slot_of
from engine._keys cimport drop_key, enter_key, find_key
from engine._leaf cimport LEAF, Head, add_from, close_count, open_count, rank_upto
from engine._pool cimport NONE
from engine._ratio cimport ratio


@cython.final
cdef class Tree(Balanced):
    """Distinct scores in order with the counts of both classes; everything in O(log n)."""

    cdef void clear(self) noexcept nogil:
        """Forget everything and give the memory back."""
        self.give_back()
        self.distinct = 0
        self.total = 0
        self.twice_u = 0

    # Events

    cdef Status add(self, double score, bint label) noexcept nogil:
        """Count one event; anything but DONE leaves the tree as it was."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t below
        cdef uint32_t leaf
        if self.root == NONE:
            if not self.reserve_leaves(1):
                return NO_MEMORY
            self.root = self.new_leaf()
        elif events(self.total) == LIMIT:
            return TOO_MANY
        leaf = self.descend(score, path, &below)
        return self.put_in(path, leaf, below, score, label)

    cdef Status remove(self, double score, bint label) noexcept nogil:
        """Forget one event; ABSENT leaves the tree as it was. Never needs memory."""
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t below
        cdef uint32_t leaf
        if self.root == NONE:
            return ABSENT
        leaf = self.descend(score, path, &below)
        return self.take_out(path, leaf, below, score, label)

    cdef Status exchange(
        self, double old, bint its_label, double score, bint label
    ) noexcept nogil:
        """Forget one event and count another.

        ABSENT leaves the tree as it was, NO_MEMORY without the old event. As `remove` and `add`, but
        that both ways down are gone at a time, so that the processor need not wait for one to go
        the other.
        """
        cdef Step its_path[MAX_HEIGHT]
        cdef Step path[MAX_HEIGHT]
        cdef uint64_t its_below = 0, below = 0
        cdef uint32_t its_node = self.root, node = self.root, level = self.height, free
        cdef Inner *its_inner
        cdef Inner *inner
        cdef Status status
        if self.root == NONE:
            return ABSENT
        while level:
            level -= 1
            its_inner = &self.inners[its_node]
            inner = &self.inners[node]
            its_path[level].node = its_node
            path[level].node = node
            its_path[level].slot = slot_of(its_inner, old)
            path[level].slot = slot_of(inner, score)
            its_below += counts_before(its_inner, its_path[level].slot)
            below += counts_before(inner, path[level].slot)
            its_node = its_inner.child[its_path[level].slot]
            node = inner.child[path[level].slot]
        free = self.leaf_pool.free_size
        status = self.take_out(its_path, its_node, its_below, old, its_label)
        if status != DONE:
            return status
        if self.root == NONE or self.leaf_pool.free_size != free:
            # Leaves have joined: there is another way down.
            return self.add(score, label)
        if node != its_node and old < score:
            below -= one_event(its_label)
        return self.put_in(path, node, below, score, label)

    cdef Status put_in(
        self, Step *path, uint32_t leaf, uint64_t below, double score, bint label
    ) noexcept nogil:
        """Count an event in the leaf of its score, given the way and the counts before it."""
        cdef uint64_t event = one_event(label)
        cdef uint64_t before, found, at = 0
        cdef uint64_t *counts
        cdef double *keys = self.leaves[leaf].keys
        cdef Head *head = &self.heads[leaf]
        cdef uint32_t size = head.size, rank, end, level
        cdef Status status
        found = find_key(keys, size, score)
        rank = <uint32_t> found
        end = found >> 32
        if size == LEAF and (head.side == NONE or rank == end):
            status = self.make_room(path, leaf, rank, score)
            return status if status != DONE else self.add(score, label)
        if head.side == NONE:
            before = count_bits(head.labels, rank)
            enter_key(keys, rank, size, score)
            if rank == end:
                self.distinct += 1
            else:
                at = count_bits(head.labels, end) - before
                rank = rank if label else end
            head.labels = insert_bit(head.labels, rank, label)
            head.size = size + 1
        else:
            counts = self.sides[head.side].counts
            if rank == end:
                self.distinct += 1
                enter_key(keys, rank, size, score)
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

    cdef Status take_out(
        self, Step *path, uint32_t leaf, uint64_t below, double score, bint label
    ) noexcept nogil:
        """Forget an event of the leaf of its score, given as for `put_in`."""
        cdef uint64_t event = one_event(label)
        cdef uint64_t before, found, at = event
        cdef uint64_t *counts
        cdef double *keys = self.leaves[leaf].keys
        cdef Head *head = &self.heads[leaf]
        cdef uint32_t rank, end, level
        found = find_key(keys, head.size, score)
        rank = <uint32_t> found
        end = found >> 32
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
            drop_key(keys, rank, head.size, score)
            head.size -= 1
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
                drop_key(keys, rank, head.size, score)
                head.size -= 1
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

    def _check(self):
        """Assert every invariant, see `engine._tree_check`; O(n)."""
        from engine._tree_check import check

        check(self)
