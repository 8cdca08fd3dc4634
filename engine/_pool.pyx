"""Memory for the nodes of the counted tree: blocks that grow by an eighth."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

cdef extern from "stdlib.h" nogil:
    void *aligned_alloc(size_t alignment, size_t size)


cdef void empty(Pool *pool) noexcept nogil:
    """Make a pool one that has nothing."""
    pool.capacity = pool.used = pool.free_size = 0
    pool.free = NONE


cdef bint reserve(
    Pool *pool, uint32_t more, void **block, size_t width, void **beside, size_t beside_width
) noexcept nogil:
    """Have so many nodes to give, each with bytes in one block and, unless NULL, in one beside.

    Blocks grow by an eighth, or by what is asked. False where memory is out; nothing is lost then.
    """
    cdef uint32_t spare = pool.used // 8, capacity
    if pool.free_size + pool.capacity - pool.used >= more:
        return True
    capacity = pool.used + max(spare, more)
    if not grow(block, pool.used, capacity, width):
        return False
    if beside != NULL and not grow(beside, pool.used, capacity, beside_width):
        return False
    pool.capacity = capacity
    return True


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
