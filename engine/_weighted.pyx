"""Blocks of equal scores with real weights: what a Roc keeps once a weight other than 1 is inside.

Scores lie in chunks of up to 64, sorted. Each chunk sums up its own weights and its own U, anew
whenever it changed, and a reading combines the chunks from left to right by
U = U_left + U_right + n0_left * n1_right (Tatti 2018, section 4). Only positive terms are added and
nothing is ever taken back from a sum, so nothing drifts, whatever the number of events.

Where several events share score and class their sum is kept exactly, as floats that do not overlap
(Shewchuk 1997): removing what was added leaves exactly the rest, also for 1e12 beside 1e-12.
"""

from libc.math cimport INFINITY, NAN, fmin
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

from math import fsum

from engine._leaf cimport LEAF, rank_below

# No product or sum of sums leaves the doubles within these weights.
LOWEST, HIGHEST = 2.0**-400, 2.0**400


cdef list plus(list parts, double value):
    """Add a value to a sum held exactly as floats that do not overlap."""
    cdef double x = value, y, high, low
    cdef list result = []
    for y in parts:
        if abs(x) < abs(y):
            x, y = y, x
        high = x + y
        low = y - (high - x)
        if low != 0:
            result.append(low)
        x = high
    if x != 0:
        result.append(x)
    return result


cdef class Blocks:
    """Distinct scores in order with the weight and number of events of both classes."""

    def __cinit__(self):
        self.tails = {}

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            free(self.chunks[i])
        free(self.chunks)

    # Events

    cdef int add(self, double score, bint label, double weight, uint32_t events) except -1:
        """Add the weight of some events of a class at a score. O(n / 64) at worst, O(log n) mostly."""
        cdef Py_ssize_t at = self.chunk_of(score)
        cdef Chunk *chunk = NULL
        cdef int rank = 0
        if not LOWEST <= weight <= HIGHEST:
            raise ValueError(f"weight {weight!r} is outside 2**-400 to 2**400")
        if at >= 0:
            chunk = self.chunks[at]
            rank = rank_below(chunk.keys, score)
        if chunk == NULL or rank == <int> chunk.size or chunk.keys[rank] != score:
            chunk = self.make_room(at, score)
            rank = rank_below(chunk.keys, score)
            memmove(chunk.keys + rank + 1, chunk.keys + rank, 8 * (chunk.size - rank))
            memmove(chunk.negative + rank + 1, chunk.negative + rank, 8 * (chunk.size - rank))
            memmove(chunk.positive + rank + 1, chunk.positive + rank, 8 * (chunk.size - rank))
            memmove(chunk.events + 2 * rank + 2, chunk.events + 2 * rank, 8 * (chunk.size - rank))
            chunk.keys[rank] = score
            chunk.negative[rank] = chunk.positive[rank] = 0
            chunk.events[2 * rank] = chunk.events[2 * rank + 1] = 0
            chunk.size += 1
            self.distinct += 1
        parts = plus(self.parts_of(chunk, rank, label), weight)
        self.set_weight(chunk, rank, label, parts, chunk.events[2 * rank + label] + events)
        return 0

    cdef int remove(self, double score, bint label, double weight) except -1:
        """Take back the weight of one event; KeyError where there is less, with nothing changed."""
        cdef Py_ssize_t at = self.chunk_of(score)
        cdef Chunk *chunk = self.chunks[at] if at >= 0 else NULL
        cdef int rank = rank_below(chunk.keys, score) if chunk != NULL else 0
        cdef uint32_t events
        if chunk == NULL or rank == <int> chunk.size or chunk.keys[rank] != score:
            raise KeyError(score)
        parts = plus(self.parts_of(chunk, rank, label), -weight)
        if parts and fsum(parts) < 0:
            raise KeyError(score)
        events = chunk.events[2 * rank + label]
        # Part of an event may be taken: as long as weight is left, so is an event.
        events = 0 if not parts else max(events - 1, 1)
        self.set_weight(chunk, rank, label, parts, events)
        if chunk.events[2 * rank] == 0 and chunk.events[2 * rank + 1] == 0:
            self.drop(at, rank)
        return 0

    cdef object parts_of(self, Chunk *chunk, int rank, bint label):
        """The exact weight of a class at a score, as floats that do not overlap."""
        cdef double weight = chunk.positive[rank] if label else chunk.negative[rank]
        if weight == 0:
            return []
        return self.tails.get((chunk.keys[rank], label), [weight])

    cdef int set_weight(
        self, Chunk *chunk, int rank, bint label, object parts, uint32_t events
    ) except -1:
        cdef double *weights = &chunk.positive[0] if label else &chunk.negative[0]
        cdef uint32_t *held = chunk.events + 2 * rank + label
        key = chunk.keys[rank], label
        self.uneven -= weights[rank] != held[0] or key in self.tails
        self.events += <Py_ssize_t> events - <Py_ssize_t> held[0]
        weights[rank] = fsum(parts)
        held[0] = events
        if len(parts) > 1:
            self.tails[key] = parts
        else:
            self.tails.pop(key, None)
        self.uneven += weights[rank] != held[0] or key in self.tails
        chunk.dirty = True
        return 0

    # Chunks

    cdef Py_ssize_t chunk_of(self, double score) noexcept nogil:
        """The chunk that holds or would hold a score; -1 while there is none."""
        cdef Py_ssize_t low = 0, high = self.count, middle
        if high == 0:
            return -1
        while high - low > 1:
            middle = (low + high) // 2
            if self.chunks[middle].keys[0] <= score:
                low = middle
            else:
                high = middle
        return low

    cdef Chunk *make_room(self, Py_ssize_t at, double score) except NULL:
        """A chunk with room for one more score, split off or new."""
        cdef Chunk *chunk
        cdef Chunk *fresh
        cdef void *grown
        cdef uint32_t half = LEAF // 2, i
        if at >= 0 and self.chunks[at].size < LEAF:
            return self.chunks[at]
        if self.count == self.capacity:
            grown = realloc(self.chunks, (self.capacity + self.capacity // 4 + 1) * sizeof(void *))
            if grown == NULL:
                raise MemoryError
            self.chunks = <Chunk **> grown
            self.capacity += self.capacity // 4 + 1
        fresh = <Chunk *> malloc(sizeof(Chunk))
        if fresh == NULL:
            raise MemoryError
        fresh.size = 0
        fresh.dirty = True
        for i in range(LEAF):
            fresh.keys[i] = INFINITY
        if at >= 0:
            chunk = self.chunks[at]
            if at == self.count - 1 and score > chunk.keys[LEAF - 1]:
                half = LEAF
            fresh.size = LEAF - half
            memcpy(fresh.keys, chunk.keys + half, 8 * fresh.size)
            memcpy(fresh.negative, chunk.negative + half, 8 * fresh.size)
            memcpy(fresh.positive, chunk.positive + half, 8 * fresh.size)
            memcpy(fresh.events, chunk.events + 2 * half, 8 * fresh.size)
            for i in range(half, LEAF):
                chunk.keys[i] = INFINITY
            chunk.size = half
            chunk.dirty = True
        memmove(
            self.chunks + at + 2, self.chunks + at + 1, (self.count - at - 1) * sizeof(void *)
        )
        self.chunks[at + 1] = fresh
        self.count += 1
        return fresh if fresh.size == 0 or score >= fresh.keys[0] else self.chunks[at]

    cdef void drop(self, Py_ssize_t at, int rank) noexcept nogil:
        """Take a score out, and its chunk with it when that was its last."""
        cdef Chunk *chunk = self.chunks[at]
        cdef int behind = chunk.size - rank - 1
        memmove(chunk.keys + rank, chunk.keys + rank + 1, 8 * behind)
        memmove(chunk.negative + rank, chunk.negative + rank + 1, 8 * behind)
        memmove(chunk.positive + rank, chunk.positive + rank + 1, 8 * behind)
        memmove(chunk.events + 2 * rank, chunk.events + 2 * rank + 2, 8 * behind)
        chunk.size -= 1
        chunk.keys[chunk.size] = INFINITY
        chunk.dirty = True
        self.distinct -= 1
        if chunk.size == 0:
            free(chunk)
            self.count -= 1
            memmove(self.chunks + at, self.chunks + at + 1, (self.count - at) * sizeof(void *))

    cdef void refresh(self, Chunk *chunk) noexcept nogil:
        """Sum up a chunk anew."""
        cdef uint32_t i
        cdef double below = 0, positive = 0, u = 0
        for i in range(chunk.size):
            u += chunk.positive[i] * (below + chunk.negative[i] / 2)
            below += chunk.negative[i]
            positive += chunk.positive[i]
        chunk.sum_negative = below
        chunk.sum_positive = positive
        chunk.u = u
        chunk.dirty = False

    # Readings

    cdef double auc(self) noexcept nogil:
        """U / (n0 n1); nan while a class is absent. O(n / 64)."""
        cdef Py_ssize_t i
        cdef Chunk *chunk
        cdef double below = 0, positive = 0, u = 0
        for i in range(self.count):
            chunk = self.chunks[i]
            if chunk.dirty:
                self.refresh(chunk)
            u += chunk.u + below * chunk.sum_positive
            below += chunk.sum_negative
            positive += chunk.sum_positive
        if below == 0 or positive == 0:
            return NAN
        return fmin(u / (below * positive), 1.0)

    cdef double total(self, bint label) noexcept nogil:
        """Weight of a class. O(n / 64)."""
        cdef Py_ssize_t i
        cdef double sum = 0
        for i in range(self.count):
            if self.chunks[i].dirty:
                self.refresh(self.chunks[i])
            sum += self.chunks[i].sum_positive if label else self.chunks[i].sum_negative
        return sum

    cdef void write(self, double *scores, double *negative, double *positive) noexcept nogil:
        """Write each distinct score, ascending, with the weight of both classes there."""
        cdef Py_ssize_t i, at = 0
        cdef Chunk *chunk
        for i in range(self.count):
            chunk = self.chunks[i]
            memcpy(scores + at, chunk.keys, 8 * chunk.size)
            memcpy(negative + at, chunk.negative, 8 * chunk.size)
            memcpy(positive + at, chunk.positive, 8 * chunk.size)
            at += chunk.size

    cdef size_t bytes(self) noexcept nogil:
        return self.count * sizeof(Chunk) + self.capacity * sizeof(void *)

    def _check(self):
        """Assert every invariant of the structure against a walk over all of it. O(n)."""
        cdef Py_ssize_t i, distinct = 0, events = 0, uneven = 0
        cdef uint32_t j, held
        cdef Chunk *chunk
        cdef double last = -INFINITY, weight
        cdef bint label
        tails = set()
        for i in range(self.count):
            chunk = self.chunks[i]
            assert 0 < chunk.size <= LEAF
            distinct += chunk.size
            for j in range(LEAF):
                if j >= chunk.size:
                    assert chunk.keys[j] == INFINITY
                    continue
                assert last < chunk.keys[j]
                last = chunk.keys[j]
                assert chunk.events[2 * j] or chunk.events[2 * j + 1]
                for label in range(2):
                    weight = chunk.positive[j] if label else chunk.negative[j]
                    held = chunk.events[2 * j + label]
                    assert (weight > 0) == (held > 0)
                    assert weight == fsum(self.parts_of(chunk, j, label))
                    events += held
                    uneven += weight != held or (last, label) in self.tails
                    if (last, label) in self.tails:
                        tails.add((last, label))
        assert (distinct, events, uneven) == (self.distinct, self.events, self.uneven)
        assert tails == set(self.tails)
