"""Whole trees at once: of events in any order, and of blocks of equal scores in increasing order.

Events are parted by class, each class is sorted as whole numbers (`_sort`), both are merged into blocks,
and blocks are laid into leaves from left to right, then the levels above them.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from engine._counts cimport LIMIT, NEGATIVE, POSITIVE, bits_below, events, negatives, positives
from engine._inner cimport FAN, Inner, pack
from engine._leaf cimport LEAF, Head
from engine._sort cimport key_of, score_of, sort_keys
from engine._tree cimport DONE, NO_MEMORY, TOO_MANY, Status, Tree

cdef enum:
    BUILT = 56  # scores in a leaf, or children in a node

# Above the key of every finite score.
cdef uint64_t END = ~<uint64_t> 0

cdef struct Branch:
    # A finished subtree while a tree is built: its number, smallest score and packed counts.
    uint32_t node
    double first
    uint64_t counts


cdef Status build_of_events(
    Tree tree, const double *scores, const uint8_t *labels, uint64_t size
) noexcept nogil:
    """Fill an empty tree; anything but DONE leaves it empty. O(n)."""
    cdef uint64_t positive = 0, i
    cdef uint64_t *memory
    cdef uint64_t *keys
    cdef uint64_t *spare
    cdef uint64_t *negatives_end
    cdef uint64_t *positives_end
    cdef Status status
    if size > LIMIT:
        return TOO_MANY
    memory = <uint64_t *> malloc((2 * size + 3) * sizeof(uint64_t))
    if memory == NULL:
        return NO_MEMORY
    keys = memory
    for i in range(size):
        positive += labels[i]
    # Negatives, END, positives, END.
    negatives_end = keys
    positives_end = keys + size - positive + 1
    for i in range(size):
        # Written to both ends, and one of them moves on: no branch.
        negatives_end[0] = positives_end[0] = key_of(scores[i])
        negatives_end += 1 - labels[i]
        positives_end += labels[i]
    negatives_end[0] = positives_end[0] = END
    spare = keys + size + 2
    sort_keys(keys, spare, size - positive)
    sort_keys(keys + size - positive + 1, spare, positive)
    status = build_of_classes(tree, keys, keys + size - positive + 1, size)
    free(memory)
    return status


cdef Status build_of_classes(
    Tree tree, const uint64_t *negative, const uint64_t *positive, uint64_t size
) noexcept nogil:
    """Build of `size` sorted keys in all, both classes ended by END."""
    cdef double *scores = <double *> malloc(size * sizeof(double) + 1)
    cdef uint64_t *counts = <uint64_t *> malloc(size * sizeof(uint64_t) + 1)
    cdef Status status = NO_MEMORY
    if scores != NULL and counts != NULL:
        status = build_of_blocks(tree, scores, counts, merge(negative, positive, scores, counts))
    free(scores)
    free(counts)
    return status


cdef uint64_t merge(
    const uint64_t *negative, const uint64_t *positive, double *scores, uint64_t *counts
) noexcept nogil:
    """Merge sorted keys into distinct scores with packed counts; their number. No branch on keys."""
    cdef uint64_t size = 0, last = END, block = 0, a = negative[0], b = positive[0], key
    cdef bint takes_a, takes_b
    while a != END or b != END:
        takes_a = a <= b
        takes_b = b <= a
        key = a if takes_a else b
        block = (block if key == last else 0) + takes_a * NEGATIVE + takes_b * POSITIVE
        size += key != last
        last = key
        scores[size - 1] = score_of(key)
        counts[size - 1] = block
        negative += takes_a
        positive += takes_b
        a = negative[0]
        b = positive[0]
    return size


cdef Status build_of_blocks(
    Tree tree, const double *scores, const uint64_t *counts, uint64_t size
) noexcept nogil:
    """Fill an empty tree with ascending distinct scores and their packed counts. O(n)."""
    cdef uint64_t low = 0, high, part, parts = 0, counted = 0, held, total = 0
    cdef Branch *branches
    cdef Status status
    if size == 0:
        return DONE
    while low < size:
        low = part_end(counts, low, size, &held)
        counted += held > LEAF
        total += held
        parts += 1
        if total > LIMIT:
            return TOO_MANY
    branches = <Branch *> malloc(parts * sizeof(Branch))
    if branches == NULL:
        return NO_MEMORY
    status = NO_MEMORY
    if tree.reserve_leaves(parts) and tree.reserve_sides(counted):
        low = 0
        for part in range(parts):
            high = part_end(counts, low, size, &held)
            branches[part].node = tree.new_leaf()
            branches[part].first = scores[low]
            branches[part].counts = fill_leaf(
                tree, branches[part].node, scores + low, counts + low, high - low, held
            )
            low = high
        tree.distinct = size
        status = build_inners(tree, branches, parts)
    free(branches)
    if status != DONE:
        tree.clear()
    return status


cdef inline uint64_t part_end(
    const uint64_t *counts, uint64_t low, uint64_t size, uint64_t *held
) noexcept nogil:
    """Where the leaf ends that begins at block `low`, and how many events it holds.

    It is a plain one with up to BUILT events, unless so few blocks fit in that it had better count.
    """
    cdef uint64_t high = low, block
    held[0] = 0
    while high < size and high - low < BUILT:
        block = events(counts[high])
        if held[0] + block > BUILT and held[0] <= BUILT and high - low > BUILT // 2:
            break
        held[0] += block
        high += 1
    return high


cdef inline uint64_t fill_leaf(
    Tree tree,
    uint32_t leaf,
    const double *scores,
    const uint64_t *counts,
    uint32_t size,
    uint64_t held,
) noexcept nogil:
    """Lay blocks above all others into an empty leaf and count their pairs; their packed counts."""
    cdef double *keys = tree.leaves[leaf].keys
    cdef Head *head = &tree.heads[leaf]
    cdef uint64_t *running = NULL
    cdef uint64_t labels = 0, sum = 0, below = negatives(tree.total), block
    cdef uint32_t i, j, rank = 0
    if held > LEAF:
        head.side = tree.new_side()
        running = tree.sides[head.side].counts
    for i in range(size):
        block = counts[i]
        tree.twice_u += positives(block) * (2 * (below + negatives(sum)) + negatives(block))
        sum += block
        keys[rank] = scores[i]
        if running != NULL:
            running[rank] = sum
            rank += 1
        elif events(block) == 1:
            labels |= <uint64_t> positives(block) << rank
            rank += 1
        else:
            labels |= bits_below(<uint32_t> positives(block)) << rank
            for j in range(1, <uint32_t> events(block)):
                keys[rank + j] = scores[i]
            rank += <uint32_t> events(block)
    head.labels = labels
    head.size = rank
    tree.total += sum
    return sum


cdef Status build_inners(Tree tree, Branch *branches, uint64_t size) noexcept nogil:
    """Build the levels above `size` subtrees, which it overwrites level by level."""
    cdef uint64_t starts[FAN]
    cdef uint64_t parts, part, low, high, i, running
    cdef Inner *inner
    cdef uint32_t node
    while size > 1:
        parts = (size + BUILT - 1) // BUILT
        if not tree.reserve_inners(parts):
            return NO_MEMORY
        for part in range(parts):
            low = part * size // parts
            high = (part + 1) * size // parts
            running = 0
            node = tree.new_inner()
            inner = &tree.inners[node]
            for i in range(low, high):
                inner.child[i - low] = branches[i].node
                inner.first[i - low] = branches[i].first
                starts[i - low] = running
                running += branches[i].counts
            pack(inner, starts, high - low)
            branches[part].node = node
            branches[part].first = branches[low].first
            branches[part].counts = running
        size = parts
        tree.height += 1
    tree.root = branches[0].node
    return DONE
