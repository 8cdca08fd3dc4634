"""Which point of the ROC curve lies furthest below a chord: a walk over the counted tree.

The curve is drawn as positives over negatives by increasing score, so its hull is the lower one. A
point (x, y) lies below the chord from (0, 0) to (X, Y) when X y - Y x < 0, and deeper the smaller that
is. A whole subtree lies within the box of the counts before it and after it, so it is skipped when
the box's lower right corner is no deeper than the best point yet: its counts alone decide. In a plain
leaf only a negative before a positive can be deepest; its label bits show where those are. They are
never between equal scores, of which the positives stand first.
All of it is integers under 2**63.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint32_t, uint64_t

from engine._boxes cimport deep_boxes, low_bits
from engine._counts cimport bits_below, events, negatives, popcount, positives, trailing_zeros
from engine._inner cimport Inner, counts_before, slot_of
from engine._leaf cimport LEAF, Head, rank_upto
from engine._pool cimport NONE


# Events up to which products of counts are doubles.
cdef uint64_t EXACT = <uint64_t> 1 << 26


cdef inline void offer(Query *query, int64_t x, int64_t y, double score) noexcept nogil:
    """Take a point if it is the deepest so far; of equal ones the first stays."""
    cdef int64_t depth = query.end_x * y - query.end_y * x
    if depth < query.depth:
        query.depth = depth
        query.x = x
        query.y = y
        query.score = score


cdef void search(Tree tree, Query *query, uint64_t start) noexcept nogil:
    """Find the deepest point at scores in (low, high] that is deeper than what `query` has.

    `start` is the packed counts of the edge's start.
    """
    search_node(
        tree,
        query,
        tree.root,
        tree.height,
        -negatives(start),
        -positives(start),
        tree.total,
        query.low != -INFINITY,
        query.high != INFINITY,
    )


cdef void search_node(
    Tree tree,
    Query *query,
    uint32_t node,
    uint32_t level,
    int64_t x,
    int64_t y,
    uint64_t whole,
    bint cut_low,
    bint cut_high,
) noexcept nogil:
    """Search a subtree with the counts (x, y) before it and the packed counts `whole`.

    `cut_low` and `cut_high` tell that the bound may lie inside the subtree.
    """
    cdef Inner *inner
    cdef uint32_t first, last, slot, group
    cdef uint64_t before, upto
    if level == 0:
        search_leaf(tree, query, node, x, y, cut_low, cut_high)
        return
    inner = &tree.inners[node]
    first = slot_of(inner, query.low) if cut_low else 0
    last = slot_of(inner, query.high) if cut_high else inner.size - 1
    slot = first
    before = counts_before(inner, slot)
    while slot <= last:
        group = slot >> 3
        if slot & 7 == 0 and (slot > first or not cut_low):
            # A group of eight in one box.
            upto = inner.before[group + 1] if 8 * group + 8 < inner.size else whole
            if (
                query.end_x * (y + positives(before)) - query.end_y * (x + negatives(upto))
                >= query.depth
                and (8 * group + 7 < last or not cut_high)
            ):
                slot += 8
                before = upto
                continue
            if 8 * group + 7 < last + (not cut_high) and events(tree.total) < EXACT:
                search_group(tree, query, inner, group, level, x, y, upto)
                slot += 8
                before = upto
                continue
        upto = counts_before(inner, slot + 1) if slot + 1 < inner.size else whole
        if (
            (cut_low and slot == first)
            or (cut_high and slot == last)
            or query.end_x * (y + positives(before)) - query.end_y * (x + negatives(upto))
            < query.depth
        ):
            search_node(
                tree,
                query,
                inner.child[slot],
                level - 1,
                x + negatives(before),
                y + positives(before),
                upto - before,
                cut_low and slot == first,
                cut_high and slot == last,
            )
        slot += 1
        before = upto


cdef void search_group(
    Tree tree,
    Query *query,
    const Inner *inner,
    uint32_t group,
    uint32_t level,
    int64_t x,
    int64_t y,
    uint64_t end,
) noexcept nogil:
    """Search those of eight children whose boxes are deep; `end` is the packed counts behind them."""
    cdef uint64_t base = inner.before[group], before, upto
    cdef uint32_t i
    cdef uint64_t deep = deep_boxes(
        inner.within + 8 * group,
        end - base,
        <double> query.end_x,
        <double> query.end_y,
        <double> (x + negatives(base)),
        <double> (y + positives(base)),
        <double> query.depth,
    )
    while deep:
        i = trailing_zeros(deep)
        deep &= deep - 1
        before = base + inner.within[8 * group + i]
        upto = base + inner.within[8 * group + i + 1] if i < 7 else end
        if (
            query.end_x * (y + positives(before)) - query.end_y * (x + negatives(upto))
            < query.depth
        ):
            search_node(
                tree,
                query,
                inner.child[8 * group + i],
                level - 1,
                x + negatives(before),
                y + positives(before),
                upto - before,
                False,
                False,
            )


cdef void search_leaf(
    Tree tree, Query *query, uint32_t leaf, int64_t x, int64_t y, bint cut_low, bint cut_high
) noexcept nogil:
    """Search a leaf with the counts (x, y) before it."""
    cdef const double *keys = tree.leaves[leaf].keys
    cdef Head *head = &tree.heads[leaf]
    cdef uint32_t low = rank_upto(keys, query.low) if cut_low else 0
    cdef uint32_t high = rank_upto(keys, query.high) if cut_high else head.size
    cdef const uint64_t *counts
    cdef uint32_t rank
    if low >= high:
        return
    if head.side == NONE:
        search_labels(query, keys, head.labels, low, high, x, y)
        return
    counts = tree.sides[head.side].counts
    for rank in range(low, high):
        offer(query, x + negatives(counts[rank]), y + positives(counts[rank]), keys[rank])


cdef inline void search_labels(
    Query *query,
    const double *keys,
    uint64_t labels,
    uint32_t low,
    uint32_t high,
    int64_t x,
    int64_t y,
) noexcept nogil:
    """Search ranks [low, high) of a plain leaf."""
    # Negatives before a positive, and the last one of the range.
    cdef uint64_t turns = ~labels & ((labels >> 1) | (<uint64_t> 1 << (high - 1)))
    cdef uint32_t rank
    cdef int64_t ones
    turns &= bits_below(high) & ~bits_below(low)
    turns &= low_bits(
        labels,
        high,
        query.end_x * y - query.end_y * x - query.depth,
        query.end_x,
        query.end_y,
    )
    while turns:
        rank = trailing_zeros(turns)
        ones = popcount(labels & (turns ^ (turns - 1)))  # up to the lowest bit of `turns`
        turns &= turns - 1
        offer(query, x + rank + 1 - ones, y + ones, keys[rank])
