"""The tree of ordered classes: the volume under their ROC as one product of matrices.

A block of equal scores with weights d stands for the upper triangular matrix

    M[a][b] = d[a] ... d[b-1] / (b - a)! * b! / a!,    M[a][a] = 1

which takes chains through the classes below a to chains through the classes below b; the product of
all blocks from low scores to high has r! n0 ... n(r-1) VUHS at [0][r]. (Wu, Zhu, Xiao and Xu 2024 have
the 1 / (b - a)!; the factor b! / a! cancels between neighbours and makes every entry whole.) Only
entries above the diagonal are kept and multiplied.

While every weight is 1 and r! n0 ... n(r-1) is under 2**127 products are whole numbers, of 64 bits or 128:
nothing rounds until the last division, which rounds correctly, so that no reading depends on the order
of events. Beyond, and with weights, they are doubles. Weights are then scaled per class by a power of
two, so that no product of eight leaves the doubles.
"""

from libc.math cimport NAN, fmax, fmin, frexp, ldexp
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from engine._chains cimport fold_four
from engine._fold cimport NEVER, NO_ROW, FoldTree, Node, children_of
from engine._ratio cimport Whole, wide_ratio
from engine._tree cimport ABSENT, DONE, NO_MEMORY, Status

ctypedef fused Number:
    uint64_t
    Whole
    double

cdef enum:
    # Of summaries made of whole numbers of 64 and of 128 bits; those of doubles have larger ones.
    SHORT_STATE = NEVER + 1
    LONG_STATE = NEVER + 2
    ROW = 8  # entries of a column in a leaf

# Whole numbers of 64 bits hold products under the first of these, of 128 bits those under the second;
# doubles give way to them again under the third.
cdef double TOO_LONG = 1.8e19, TOO_LARGE = 2.0 ** 127, SMALL_ENOUGH = 2.0 ** 120
# Weights scaled to their unit are not lighter in all than this.
cdef double LIGHT = 2.0 ** -60

cdef int64_t[9] FACTORIAL
cdef int64_t[9][9] CHOOSE
cdef int64_t[9][9] SCALE  # b! / a!


cdef void fill_tables() noexcept nogil:
    cdef int n, k
    FACTORIAL[0] = 1
    for n in range(1, MOST + 1):
        FACTORIAL[n] = n * FACTORIAL[n - 1]
    for n in range(MOST + 1):
        for k in range(n + 1):
            SCALE[n][k] = FACTORIAL[n] // FACTORIAL[k]
            CHOOSE[n][k] = SCALE[n][k] // FACTORIAL[n - k]


fill_tables()


cdef inline int at(int a, int b) noexcept nogil:
    """Where [a][b], a < b, stands: column by column."""
    return b * (b - 1) // 2 + a


cdef inline size_t size_of(int r) noexcept nogil:
    """Bytes of a product's entries, of whatever kind."""
    return r * (r + 1) // 2 * sizeof(Whole)


cdef inline void *product_of(const Node *node, int r) noexcept nogil:
    """The summary of a node: the entries of its product."""
    return <char *> node - size_of(r)


cdef inline void multiply(Number *product, const Number *right, int r) noexcept nogil:
    """Multiply by a matrix from the right, in place: a column needs only columns before it."""
    cdef int a, b, k
    cdef Number entry
    for b in range(r, 0, -1):
        for a in range(b):
            entry = product[at(a, b)] + right[at(a, b)]
            for k in range(a + 1, b):
                entry += product[at(a, k)] * right[at(k, b)]
            product[at(a, b)] = entry


cdef inline void multiply_all(
    Number *product, Node **children, uint32_t size, int r
) noexcept nogil:
    """Multiply the summaries of children; `r` is a constant where this is compiled."""
    cdef uint32_t i
    memcpy(product, product_of(children[0], r), r * (r + 1) // 2 * sizeof(Number))
    for i in range(1, size):
        multiply[Number](product, <const Number *> product_of(children[i], r), r)


cdef void fold_inner(Number *product, Node **children, uint32_t size, int r) noexcept nogil:
    if r == 2:
        multiply_all[Number](product, children, size, 2)
    elif r == 3:
        multiply_all[Number](product, children, size, 3)
    elif r == 4:
        multiply_all[Number](product, children, size, 4)
    elif r == 5:
        multiply_all[Number](product, children, size, 5)
    elif r == 6:
        multiply_all[Number](product, children, size, 6)
    elif r == 7:
        multiply_all[Number](product, children, size, 7)
    else:
        multiply_all[Number](product, children, size, 8)


cdef inline void multiply_event(Number *product, int label, Number weight) noexcept nogil:
    """Multiply by the block of one class: only the column behind it changes."""
    cdef int a
    for a in range(label):
        product[at(a, label + 1)] += weight * (label + 1) * product[at(a, label)]
    product[at(label, label + 1)] += weight * (label + 1)


cdef inline void multiply_block(Number *product, const Number *weights, int r) noexcept nogil:
    """Multiply by the block of several classes at one score."""
    cdef int a, b, k
    cdef Number through
    cdef Number[8] column
    for b in range(r, 0, -1):
        through = 1
        for k in range(b - 1, -1, -1):
            through *= weights[k]
            column[k] = through * CHOOSE[b][k]
        if weights[b - 1] == 0:
            continue
        for a in range(b):
            through = product[at(a, b)] + column[a]
            for k in range(a + 1, b):
                through += product[at(a, k)] * column[k]
            product[at(a, b)] = through


cdef void fold_ties(
    Number *product, const Node *leaf, const char *rows, const double *units, int r
) noexcept nogil:
    """Multiply the blocks of a leaf, whatever they hold; `rows` are the weights of tied scores."""
    cdef Number[8] weights
    cdef uint32_t i, tag
    cdef const double *row
    cdef int k
    for k in range(r * (r + 1) // 2):
        product[k] = 0
    for i in range(leaf.size):
        tag = tags_of(leaf)[i]
        if tag < TIED:
            multiply_event[Number](product, <int> tag, <Number> (units[tag] if Number is double else 1))
        else:
            row = <const double *> rows + (tag - TIED) * r
            for k in range(r):
                if Number is double:
                    weights[k] = row[k] * units[k]
                else:
                    weights[k] = <Number> <int64_t> row[k]
            multiply_block[Number](product, weights, r)


cdef inline bint fold_columns(uint32_t *columns, const Node *leaf) noexcept nogil:
    cdef const uint32_t *tags = tags_of(leaf)
    cdef uint32_t *column
    cdef uint32_t i, tag
    cdef int j
    for i in range(leaf.size):
        tag = tags[i]
        if tag >= TIED:
            return False
        column = columns + tag * ROW
        for j in range(ROW):
            column[ROW + j] += column[j]
    return True


cdef bint fold_singles(uint32_t *columns, const Node *leaf, int r) noexcept nogil:
    """Multiply the blocks of a leaf of single events, column by column; False if some tie.

    Without ties no factor is needed, and the chains through 64 events stay within 32 bits.
    """
    cdef int k
    if r <= 4:
        return fold_four(columns, tags_of(leaf), leaf.size)
    memset(columns, 0, (r + 1) * ROW * sizeof(uint32_t))
    for k in range(r):
        columns[k * ROW + k] = 1
    return fold_columns(columns, leaf)


cdef class ProductTree(FoldTree):
    """Distinct scores with the weights of up to eight classes, and the product of their matrices."""

    def __cinit__(self, int classes):
        cdef int k
        self.classes = classes
        self.cell_bytes = sizeof(uint32_t)
        self.summary_bytes = size_of(classes)
        self.row_bytes = classes * sizeof(double)
        self.real_state = LONG_STATE + 1
        for k in range(MOST):
            self.units[k] = 1

    # Events

    cdef Status enter(self, double score, int label) noexcept nogil:
        """Count one event of weight 1; anything but DONE leaves the events as they were."""
        cdef uint32_t rank
        cdef Status status
        cdef Node *leaf = self.reach_to_add(score, &rank)
        if leaf == NULL:
            return NO_MEMORY
        if rank == leaf.size or leaf.keys[rank] != score:
            self.open(leaf, rank, score)
            tags_of(leaf)[rank] = label
        else:
            status = self.tie(leaf, rank)
            if status != DONE:
                return status
            (<double *> self.row(tags_of(leaf)[rank] - TIED))[label] += 1
        self.counts[label] += 1
        return DONE

    cdef Status leave(self, double score, int label) noexcept nogil:
        """Forget one event of weight 1; ABSENT leaves the events as they were."""
        cdef uint32_t rank
        cdef double *row
        cdef Node *leaf = self.reach_to_remove(score, &rank)
        if leaf == NULL:
            return ABSENT
        if tags_of(leaf)[rank] < TIED:
            if <int> tags_of(leaf)[rank] != label:
                return ABSENT
            self.close(leaf, rank)
        else:
            row = <double *> self.row(tags_of(leaf)[rank] - TIED)
            if row[label] < 1:
                return ABSENT
            row[label] -= 1
            self.untie(leaf, rank)
        self.counts[label] -= 1
        return DONE

    cdef Status put(self, double score, const double *weights) noexcept nogil:
        """Set the weight of every class at a score; none of any takes the score out.

        NO_MEMORY leaves the events as they were; at a score with a row none is needed.
        """
        cdef uint32_t rank, row = NO_ROW
        cdef int k
        cdef double heaviest = 0
        cdef Node *leaf = self.reach_to_remove(score, &rank)
        cdef bint fresh = leaf == NULL
        for k in range(self.classes):
            heaviest = fmax(heaviest, weights[k])
        if heaviest == 0:
            if leaf != NULL:
                if tags_of(leaf)[rank] >= TIED:
                    self.drop_row(tags_of(leaf)[rank] - TIED)
                self.close(leaf, rank)
            return DONE
        # All that takes memory comes first: what is entered need not be taken back.
        if fresh or tags_of(leaf)[rank] < TIED:
            row = self.new_row()
            if row == NO_ROW:
                return NO_MEMORY
        if fresh:
            leaf = self.reach_to_add(score, &rank)
            if leaf == NULL:
                self.drop_row(row)
                return NO_MEMORY
            self.open(leaf, rank, score)
        if row != NO_ROW:
            tags_of(leaf)[rank] = TIED + row
        memcpy(self.row(tags_of(leaf)[rank] - TIED), weights, self.row_bytes)
        self.untie(leaf, rank)
        return DONE

    cdef Status tie(self, Node *leaf, uint32_t rank) noexcept nogil:
        """Give a score a row of weights."""
        cdef uint32_t row
        if tags_of(leaf)[rank] >= TIED:
            return DONE
        row = self.new_row()
        if row == NO_ROW:
            return NO_MEMORY
        (<double *> self.row(row))[tags_of(leaf)[rank]] = 1
        tags_of(leaf)[rank] = TIED + row
        return DONE

    cdef void untie(self, Node *leaf, uint32_t rank) noexcept nogil:
        """Take a score's row back if it says no more than one event of weight 1 does."""
        cdef const double *row = <const double *> self.row(tags_of(leaf)[rank] - TIED)
        cdef int k, label = 0, there = 0
        for k in range(self.classes):
            if row[k]:
                there += 1
                label = k
        if there == 1 and row[label] == 1:
            self.drop_row(tags_of(leaf)[rank] - TIED)
            tags_of(leaf)[rank] = label

    # Folding

    cdef bint fold(self, Node *node, uint32_t state) noexcept nogil:
        cdef void *product = product_of(node, self.classes)
        if state == SHORT_STATE:
            self.fold_whole[uint64_t](<uint64_t *> product, node)
        elif state == LONG_STATE:
            self.fold_whole[Whole](<Whole *> product, node)
        elif node.level:
            fold_inner[double](<double *> product, children_of(node), node.size, self.classes)
        else:
            fold_ties[double](<double *> product, node, self.rows, self.units, self.classes)
        return True

    cdef void fold_whole(self, Exact *product, const Node *node) noexcept nogil:
        """Fold a node into whole numbers."""
        cdef uint32_t[9 * 8] columns
        cdef int r = self.classes, a, b
        if node.level:
            fold_inner[Exact](product, children_of(node), node.size, r)
        elif fold_singles(columns, node, r):
            for b in range(1, r + 1):
                for a in range(b):
                    product[at(a, b)] = <Exact> columns[b * ROW + a] * <Exact> SCALE[b][a]
        else:
            fold_ties[Exact](product, node, self.rows, self.units, r)

    # Reading

    cdef double vuhs(self) except? -1:
        """The volume; nan while a class is absent. O(changes * r^3 * log n)."""
        cdef int k
        cdef double bound = <double> FACTORIAL[self.classes]
        cdef Whole whole = FACTORIAL[self.classes], part
        for k in range(self.classes):
            bound *= <double> max(self.counts[k], 1)
        if self.large != (bound >= (SMALL_ENOUGH if self.large else TOO_LARGE)):
            self.large = not self.large
        for k in range(self.classes):
            if self.counts[k] == 0:
                return NAN
        if self.large or self.weighted:
            return self.real_vuhs()
        for k in range(self.classes):
            whole *= <Whole> self.counts[k]
        if bound < TOO_LONG:
            self.refresh(self.root, SHORT_STATE)
            part = (<uint64_t *> product_of(self.root, self.classes))[at(0, self.classes)]
        else:
            self.refresh(self.root, LONG_STATE)
            part = (<Whole *> product_of(self.root, self.classes))[at(0, self.classes)]
        return wide_ratio(part, whole)

    cdef double real_vuhs(self) except? -1:
        """The volume from products of doubles."""
        cdef int k, tries
        cdef double whole = 0, weight
        cdef const double *product
        for tries in range(2):
            self.refresh(self.root, self.real_state)
            product = <const double *> product_of(self.root, self.classes)
            whole = <double> FACTORIAL[self.classes]
            for k in range(self.classes):
                # What stands above the diagonal is the weight of the class.
                weight = product[at(k, k + 1)] / (k + 1)
                if weight < LIGHT and tries == 0:
                    self.choose_units()
                    break
                whole *= weight
            else:
                break
        return fmin(product[at(0, self.classes)] / whole, 1.0)

    cdef void choose_units(self) noexcept nogil:
        """Scale every class so that its heaviest weight lies between 1/2 and 1. O(n)."""
        cdef Node *leaf = self.next_leaf(True)
        cdef uint32_t i, tag
        cdef int k, exponent
        cdef const double *row
        cdef double[8] heaviest
        memset(heaviest, 0, sizeof(heaviest))
        while leaf != NULL:
            for i in range(leaf.size):
                tag = tags_of(leaf)[i]
                if tag < TIED:
                    heaviest[tag] = fmax(heaviest[tag], 1)
                    continue
                row = <const double *> self.row(tag - TIED)
                for k in range(self.classes):
                    heaviest[k] = fmax(heaviest[k], row[k])
            leaf = self.next_leaf(False)
        for k in range(self.classes):
            frexp(heaviest[k], &exponent)
            self.units[k] = ldexp(1, min(-exponent, 1023))
        self.real_state += 1

    def _check(self):
        """Assert the invariants of cells and rows; O(n)."""
        cdef Node *leaf = self.next_leaf(True)
        cdef uint32_t i, tag, rows = 0, free = 0
        cdef const double *row
        super()._check()
        weights = [0.0] * self.classes
        while leaf != NULL:
            for i in range(leaf.size):
                tag = tags_of(leaf)[i]
                if tag < TIED:
                    assert <int> tag < self.classes
                    weights[tag] += 1
                    continue
                rows += 1
                row = <const double *> self.row(tag - TIED)
                here = [row[k] for k in range(self.classes)]
                assert min(here) >= 0
                assert sorted(here)[-2:] != [0, 1]
                assert max(here) > 0
                weights = [sum(pair) for pair in zip(weights, here)]
            leaf = self.next_leaf(False)
        tag = self.free_row
        while tag != NO_ROW:
            free += 1
            tag = (<uint32_t *> self.row(tag))[0]
        assert rows + free == self.rows_used
        if not self.weighted:
            assert weights == [self.counts[k] for k in range(self.classes)]
