"""Blocks of equal scores with real weights: what a Roc keeps once a weight other than 1 is inside.

A tree whose nodes sum up their weights and their U when they are read (`_fold`), by
U = U_left + U_right + n0_left * n1_right (Tatti 2018, section 4). Only positive terms are added and
nothing is ever taken back from a sum, so nothing drifts, whatever the number of events.

Where several events share score and class their sum is kept exactly, as floats that do not overlap
(Shewchuk 1997): removing what was added leaves exactly the rest, also for 1e12 beside 1e-12.
"""

from libc.math cimport NAN, fmin
from libc.stdint cimport uint32_t
from libc.string cimport memset

from math import fsum

from engine._counts cimport LIMIT
from engine._fold cimport NEVER, FoldTree, Node, cells_of, children_of, firsts_of


cdef inline Part *part_of(const Node *node) noexcept nogil:
    return <Part *> node - 1


cdef inline void join(Part *sums, const Part *part) noexcept nogil:
    """Add what lies above."""
    sums.u += part.u + sums.negative * part.positive
    sums.negative += part.negative
    sums.positive += part.positive


cdef inline void enter(Part *sums, const Cell *cell) noexcept nogil:
    """Add a score that lies above."""
    sums.u += cell.weights[1] * (sums.negative + cell.weights[0] / 2)
    sums.negative += cell.weights[0]
    sums.positive += cell.weights[1]


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


cdef inline bint is_uneven(const Cell *cell, bint label) noexcept nogil:
    """Whether a weight other than 1 is inside, but for what rounding hides."""
    return cell.odd[label] > 0 or cell.weights[label] != cell.events[label]


cdef object absent(double score, bint label, double weight):
    return KeyError(f"class {int(label)} has less weight than {weight!r} at {score!r}")


cdef class Blocks(FoldTree):
    """Distinct scores in order with the weight and number of events of both classes."""

    def __cinit__(self):
        self.cell_bytes = sizeof(Cell)
        self.summary_bytes = sizeof(Part)
        self.tails = {}

    # Events

    cdef int add(self, double score, bint label, double weight) except -1:
        """Put an event in. O(log n)."""
        cdef const Cell *cell = self.cell_at(score)
        cdef uint32_t events = 1, odd = weight != 1
        if self.events == LIMIT:
            raise OverflowError(f"a Roc holds at most {LIMIT} events")
        if cell != NULL:
            events += cell.events[label]
            odd += cell.odd[label]
        return self.put(score, label, plus(self.parts_of(score, label), weight), events, odd)

    cdef int remove(self, double score, bint label, double weight) except -1:
        """Take back the weight of one event; KeyError where there is less, with nothing changed."""
        cdef const Cell *cell = self.cell_at(score)
        cdef uint32_t events, odd
        if cell == NULL:
            raise absent(score, label, weight)
        parts = plus(self.parts_of(score, label), -weight)
        if not parts:
            return self.put(score, label, parts, 0, 0)
        if fsum(parts) < 0:
            raise absent(score, label, weight)
        # Part of an event may be taken: as long as weight is left, so is an event. The weight of
        # the only one is known.
        if cell.events[label] <= 2:
            return self.put(score, label, parts, 1, parts != [1.0])
        events = cell.events[label] - 1
        odd = cell.odd[label] - (weight != 1 and cell.odd[label] > 0)
        return self.put(score, label, parts, events, min(odd, events))

    cdef int put(self, double score, bint label, list parts, uint32_t events, uint32_t odd) except -1:
        """Set the exact weight and the number of events of a class at a score. All or nothing."""
        cdef Node *leaf
        cdef Cell *cell
        cdef uint32_t rank
        cdef bint fresh
        cdef double weight = fsum(parts)
        key = score, label
        held = self.tails.get(key)
        if len(parts) > 1:
            self.tails[key] = parts
        # What is inside is found again without need of memory.
        leaf = self.reach_to_remove(score, &rank)
        fresh = leaf == NULL
        if fresh:
            leaf = self.reach_to_add(score, &rank)
        if leaf == NULL:
            if held is None:
                self.tails.pop(key, None)
            else:
                self.tails[key] = held
            raise MemoryError("no memory for one more event; nothing has changed")
        cell = <Cell *> cells_of(leaf) + rank
        if fresh:
            self.open(leaf, rank, score)
            cell.weights[0] = cell.weights[1] = 0
            cell.events[0] = cell.events[1] = cell.odd[0] = cell.odd[1] = 0
        self.uneven -= is_uneven(cell, label) or held is not None
        self.events += <Py_ssize_t> events - <Py_ssize_t> cell.events[label]
        cell.weights[label] = weight
        cell.events[label] = events
        cell.odd[label] = odd
        self.uneven += is_uneven(cell, label) or len(parts) > 1
        if len(parts) <= 1 and held is not None:
            del self.tails[key]
        if cell.events[0] == 0 and cell.events[1] == 0:
            self.close(leaf, rank)
        return 0

    cdef Cell *cell_at(self, double score) noexcept nogil:
        """What is kept of a score; NULL when it is not inside."""
        cdef uint32_t rank
        cdef Node *leaf = self.find(score, &rank)
        return NULL if leaf == NULL else <Cell *> cells_of(leaf) + rank

    cdef list parts_of(self, double score, bint label):
        """The exact weight of a class at a score, as floats that do not overlap."""
        cdef const Cell *cell = self.cell_at(score)
        if cell == NULL or cell.weights[label] == 0:
            return []
        return self.tails.get((score, label), [cell.weights[label]])

    # Sums

    cdef bint fold(self, Node *node, uint32_t state) noexcept nogil:
        cdef Part *sums = part_of(node)
        cdef uint32_t i
        sums.negative = sums.positive = sums.u = 0
        for i in range(node.size):
            if node.level:
                join(sums, part_of(children_of(node)[i]))
            else:
                enter(sums, <const Cell *> cells_of(node) + i)
        return True

    cdef const Part *sums(self) noexcept nogil:
        """Sums of all that is inside; NULL when that is nothing. O(changes * log n)."""
        if self.root == NULL:
            return NULL
        self.refresh(self.root, NEVER + 1)
        return part_of(self.root)

    # Readings

    cdef double auc(self) noexcept nogil:
        """U / (n0 n1); nan while a class is absent. O(changes * log n)."""
        cdef const Part *sums = self.sums()
        if sums == NULL or sums.negative == 0 or sums.positive == 0:
            return NAN
        return fmin(sums.u / (sums.negative * sums.positive), 1.0)

    cdef double total(self, bint label) noexcept nogil:
        """Weight of a class. O(changes * log n)."""
        cdef const Part *sums = self.sums()
        if sums == NULL:
            return 0
        return sums.positive if label else sums.negative

    cdef void part_at(self, double threshold, Part *below, Part *above) noexcept nogil:
        """Sum up both classes below a threshold and from it on. O(changes * log n)."""
        cdef Node *node
        cdef uint32_t i, slot
        memset(below, 0, sizeof(Part))
        memset(above, 0, sizeof(Part))
        if self.sums() == NULL:
            return
        node = self.root
        while node.level:
            slot = 0
            while slot + 1 < node.size and firsts_of(node)[slot + 1] <= threshold:
                slot += 1
            for i in range(node.size):
                if i != slot:
                    join(below if i < slot else above, part_of(children_of(node)[i]))
            node = children_of(node)[slot]
        for i in range(node.size):
            enter(below if node.keys[i] < threshold else above, <const Cell *> cells_of(node) + i)

    cdef void write(self, double *scores, double *negative, double *positive) noexcept nogil:
        """Write each distinct score, ascending, with the weight of both classes there."""
        cdef Node *leaf = self.next_leaf(True)
        cdef Py_ssize_t at = 0
        cdef uint32_t i
        cdef const Cell *cell
        while leaf != NULL:
            for i in range(leaf.size):
                cell = <const Cell *> cells_of(leaf) + i
                scores[at] = leaf.keys[i]
                negative[at] = cell.weights[0]
                positive[at] = cell.weights[1]
                at += 1
            leaf = self.next_leaf(False)

    def _rows(self):
        """Score, label, exact weight, number of events, and of odd ones, of each class at a score."""
        cdef Node *leaf = self.next_leaf(True)
        cdef const Cell *cell
        cdef uint32_t i
        cdef bint label
        rows = []
        while leaf != NULL:
            for i in range(leaf.size):
                cell = <const Cell *> cells_of(leaf) + i
                for label in range(2):
                    if cell.events[label]:
                        parts = self.parts_of(leaf.keys[i], label)
                        rows.append((leaf.keys[i], label, parts, cell.events[label], cell.odd[label]))
            leaf = self.next_leaf(False)
        return rows

    def _check(self):
        """Assert the invariants; O(n)."""
        cdef const Cell *cell
        cdef bint label
        cdef Py_ssize_t events = 0, uneven = 0
        tails = set()
        super()._check()
        for score, label, parts, held, odd in self._rows():
            cell = self.cell_at(score)
            assert cell.weights[label] == fsum(parts) > 0
            assert odd <= held
            events += held
            uneven += is_uneven(cell, label) or (score, label) in self.tails
            if (score, label) in self.tails:
                tails.add((score, label))
        assert (events, uneven) == (self.events, self.uneven)
        assert tails == set(self.tails)
