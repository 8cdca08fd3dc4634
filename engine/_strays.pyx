"""Events of a time window that came far behind their time, in a heap: the first to leave on top.

A timeline moves what is younger out of the way of an event that comes late, which is the cheapest for
the few that mostly are; whatever would move more goes here, in O(log n).

What has left stands behind the heap until the call ends that let it go, so that the call can be taken
back: then those go that came in it, which their ordinals tell.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc

from engine._batch cimport Batch


cdef class Strays:
    """A heap by time, and behind it what left since `begin`."""

    def __dealloc__(self):
        free(self.heap)

    cdef int insert(self, Stray stray) except -1:
        """Put an event in; without memory nothing has changed. O(log n)."""
        cdef Py_ssize_t at = self.size, above, capacity
        cdef void *grown
        if self.size + self.left == self.capacity:
            capacity = self.capacity + self.capacity // 2 + 16
            grown = realloc(self.heap, capacity * sizeof(Stray))
            if grown == NULL:
                raise MemoryError
            self.heap = <Stray *> grown
            self.capacity = capacity
        # The first of those that left makes room.
        self.heap[self.size + self.left] = self.heap[self.size]
        self.size += 1
        while at:
            above = (at - 1) // 2
            if self.heap[above].time <= stray.time:
                break
            self.heap[at] = self.heap[above]
            at = above
        self.heap[at] = stray
        return 0

    cdef Stray pop(self) noexcept nogil:
        """Let go of the one on top; there is one. O(log n)."""
        cdef Stray first = self.heap[0]
        self.size -= 1
        self.left += 1
        self.heap[0] = self.heap[self.size]
        self.heap[self.size] = first
        self.sink(0)
        return first

    cdef void sink(self, Py_ssize_t at) noexcept nogil:
        """Move an event down to where none below it is older."""
        cdef Stray stray
        cdef Py_ssize_t below
        if at >= self.size:
            return
        stray = self.heap[at]
        while True:
            below = 2 * at + 1
            if below >= self.size:
                break
            if below + 1 < self.size and self.heap[below + 1].time < self.heap[below].time:
                below += 1
            if self.heap[below].time >= stray.time:
                break
            self.heap[at] = self.heap[below]
            at = below
        self.heap[at] = stray

    cdef void begin(self) noexcept nogil:
        """Forget what has left: there is no going back before this."""
        self.left = 0

    cdef void go_back(self, int64_t seen) noexcept nogil:
        """Take out what came from ordinal `seen` on, and back what left since `begin`. O(n)."""
        cdef Py_ssize_t kept = 0, i
        for i in range(self.size + self.left):
            if self.heap[i].ordinal < seen:
                self.heap[kept] = self.heap[i]
                kept += 1
        self.size = kept
        self.left = 0
        for i in range(kept // 2 - 1, -1, -1):
            self.sink(i)

    cdef Batch content(self):
        """All that is inside, as a batch of its own without times."""
        cdef Batch batch = Batch()
        cdef Py_ssize_t i
        cdef double *heavy
        cdef int64_t *clock
        batch.allot(self.size, True, False, &heavy, &clock)
        for i in range(self.size):
            batch.scores[i] = self.heap[i].score
            batch.labels[i] = self.heap[i].label
            heavy[i] = self.heap[i].weight
            if heavy[i] != 1:
                batch.weights = heavy
        return batch

    cdef list rows(self):
        """Score, label, weight and time of every event, in no order."""
        cdef Py_ssize_t i
        rows = []
        for i in range(self.size):
            rows.append(
                (self.heap[i].score, self.heap[i].label, self.heap[i].weight, self.heap[i].time)
            )
        return rows

    cdef size_t bytes(self) noexcept nogil:
        return self.capacity * sizeof(Stray)

    def _check(self):
        """Assert that none stands below a younger one; O(n)."""
        cdef Py_ssize_t i
        assert self.size + self.left <= self.capacity
        for i in range(1, self.size):
            assert self.heap[(i - 1) // 2].time <= self.heap[i].time
