# cython: boundscheck=False
"""The built-in patterns.

Numbers are checked as far as possible: Luhn for payment cards and Canadian SINs, area and group rules for US SSNs
(areas 000, 666 and 900 to 999 are never assigned: https://www.ssa.gov/employer/randomizationfaqs.html), the rules of a
telephone library for telephone numbers. Word boundaries are those of ASCII, so that text without blanks (Chinese, for
example) hides no number.

boundscheck is off: all access is to C memory of known length.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp

cdef enum:
    MAX_GROUP = 20             # most digits of one group
    PHONE_GROUPS = 7           # most groups of digits in a telephone number


cdef void fill_classes() noexcept:
    cdef int c
    for c in range(256):
        CLASS[c] = 0
        if 48 <= c <= 57:
            CLASS[c] = C_DIGIT | C_WORD | C_LOCAL | C_DOMAIN | C_START
        elif 65 <= c <= 90 or 97 <= c <= 122:
            CLASS[c] = C_WORD | C_LOCAL | C_DOMAIN
    CLASS[95] = C_WORD | C_LOCAL
    CLASS[45] = C_LOCAL | C_DOMAIN
    CLASS[46] = CLASS[43] = C_LOCAL
    CLASS[64] = C_START
    # What separator() and phone_at() take between digits. Of characters of several bytes each byte counts.
    for c in range(256):
        if (48 <= c <= 57 or 9 <= c <= 13 or c == 32 or c == 40 or c == 41 or c == 43 or c == 45 or c == 46
                or c == 0xC2 or c == 0xA0 or c == 0xE2 or c == 0x80 or 0x90 <= c <= 0x95 or c == 0xAF or c == 0x87):
            CLASS[c] |= C_INSIDE
        if 48 <= c <= 57 or c == 40 or c == 43:
            CLASS[c] |= C_OPENS


fill_classes()


cdef void walk(const uint8_t* p, Py_ssize_t n, Clean* clean) noexcept nogil:
    """Find the last place where an address cannot go on, and in front of which no number may have begun.

    An address consists of word characters, full stops, hyphens, plus signs and the @: behind any other byte it has ended.
    A number begins with a digit, a plus sign or a bracket, and consists of C_INSIDE bytes: in a run of these without such
    a beginning there is none. All that is looked at behind a match lies in front of the byte that ends it.
    """
    cdef Py_ssize_t at
    for at in range(clean.walked, n):
        if closes(p[at], clean):
            clean.at = at + 1
    if n > clean.walked:
        clean.walked = n


cdef int separator(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t* size) noexcept nogil:
    """Return the separator at `at` as ASCII, 0 for none: blank, hyphen, full stop, no-break blanks, other dashes."""
    cdef uint8_t c = p[at]
    size[0] = 1
    if c == 32 or c == 45 or c == 46:
        return c
    if c == 0xC2 and at + 1 < n and p[at + 1] == 0xA0:
        size[0] = 2
        return 32
    if c == 0xE2 and at + 2 < n and p[at + 1] == 0x80:
        size[0] = 3
        if 0x90 <= p[at + 2] <= 0x95:
            return 45
        if p[at + 2] == 0xAF or p[at + 2] == 0x87:
            return 32
    return 0


cdef int read_groups(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Group* groups) noexcept nogil:
    """Read groups of digits from `at` on, with one separator between two. Return their number."""
    cdef int count = 0
    cdef int before = 0
    cdef Py_ssize_t size = 0
    while count < MAX_GROUPS:
        groups[count].start = at
        groups[count].before = before
        while at < n and CLASS[p[at]] & C_DIGIT and at - groups[count].start <= MAX_GROUP:
            at += 1
        groups[count].length = <int>(at - groups[count].start)
        count += 1
        if groups[count - 1].length > MAX_GROUP or at >= n:
            break
        before = separator(p, at, n, &size)
        if before == 0 or at + size >= n or not CLASS[p[at + size]] & C_DIGIT:
            break
        at += size
    return count


cdef bint ends_word(const uint8_t* p, Py_ssize_t n, Group* group) noexcept nogil:
    cdef Py_ssize_t at = group.start + group.length
    return at >= n or not CLASS[p[at]] & C_WORD


cdef int digits_of(const uint8_t* p, Group* groups, int count, uint8_t* out) noexcept nogil:
    cdef int i, k
    cdef int found = 0
    for i in range(count):
        for k in range(groups[i].length):
            out[found] = p[groups[i].start + k] - 48
            found += 1
    return found


cdef bint luhn(const uint8_t* digits, int n) noexcept nogil:
    """Return whether the check digit is correct (ISO/IEC 7812-1 annex B)."""
    cdef int total = 0
    cdef int i, value
    for i in range(n):
        value = digits[n - 1 - i]
        if i & 1:
            value *= 2
            if value > 9:
                value -= 9
        total += value
    return total % 10 == 0


cdef bint card_prefix(const uint8_t* d) noexcept nogil:
    """Return whether the digits begin like a payment card's: 1 (UATP), 2221 to 2720, 3 to 6."""
    cdef int four = d[0] * 1000 + d[1] * 100 + d[2] * 10 + d[3]
    return d[0] == 1 or 3 <= d[0] <= 6 or 2221 <= four <= 2720


cdef Py_ssize_t card_at(const uint8_t* p, Py_ssize_t n, Group* groups, int count) noexcept nogil:
    """Return the end of a payment card number of 13 to 19 digits that begins with the first group, -1 for none."""
    cdef uint8_t digits[20]
    cdef int total = 0
    cdef int used = 0
    cdef Py_ssize_t found = -1
    while used < count:
        if groups[used].length < 3 or groups[used].before == 46 or total + groups[used].length > 19:
            break
        digits_of(p, &groups[used], 1, digits + total)
        total += groups[used].length
        used += 1
        if total >= 13 and ends_word(p, n, &groups[used - 1]) and card_prefix(digits) and luhn(digits, total):
            found = groups[used - 1].start + groups[used - 1].length
    return found


cdef bint says_ssn(const uint8_t* p, Py_ssize_t at) noexcept nogil:
    """Return whether a word before nine bare digits marks them as an SSN."""
    cdef Py_ssize_t start = at - CONTEXT if at > CONTEXT else 0
    cdef uint8_t lower[CONTEXT + 1]
    cdef Py_ssize_t i
    cdef Py_ssize_t size = at - start
    for i in range(size):
        lower[i] = p[start + i] | 32 if 65 <= p[start + i] <= 90 else p[start + i]
    for i in range(size - 2):
        if memcmp(lower + i, b"ssn", 3) == 0 or (size - i >= 6 and memcmp(lower + i, b"social", 6) == 0):
            return True
    return False


cdef Py_ssize_t ssn_at(const uint8_t* p, Py_ssize_t n, Group* g, int count) noexcept nogil:
    """Return the end of a US social security number that begins with the first group, -1 for none."""
    cdef uint8_t d[12]
    cdef int used = 0
    cdef int area
    if g[0].length == 9:
        if not says_ssn(p, g[0].start):
            return -1
        used = 1
    elif count >= 2 and g[1].before == 45 and (
            g[0].length == 5 and g[1].length == 4 or g[0].length == 3 and g[1].length == 6):
        used = 2
    elif count >= 3 and g[0].length == 3 and g[1].length == 2 and g[2].length == 4:
        used = 3
    else:
        return -1
    if not ends_word(p, n, &g[used - 1]):
        return -1
    digits_of(p, g, used, d)
    area = d[0] * 100 + d[1] * 10 + d[2]
    if area == 0 or area == 666 or area >= 900 or d[3] + d[4] == 0 or d[5] + d[6] + d[7] + d[8] == 0:
        return -1
    return g[used - 1].start + g[used - 1].length


cdef Py_ssize_t sin_at(const uint8_t* p, Py_ssize_t n, Group* g, int count) noexcept nogil:
    """Return the end of a Canadian social insurance number that begins with the first group, -1 for none."""
    cdef uint8_t d[12]
    cdef int used = 0
    cdef int i, total
    if g[0].length == 9:
        used = 1
    elif count >= 3 and g[0].length == 3 and g[1].length == 3 and g[2].length == 3 \
            and g[1].before != 46 and g[2].before != 46:
        used = 3
    else:
        return -1
    if not ends_word(p, n, &g[used - 1]):
        return -1
    digits_of(p, g, used, d)
    total = 0
    for i in range(9):
        total += d[i]
    if total == 0 or not luhn(d, 9):
        return -1
    return g[used - 1].start + g[used - 1].length


cdef bint is_date(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Return whether there is a date such as 1999-12-31."""
    if n - at < 10 or not (p[at] == 49 and p[at + 1] == 57 or p[at] == 50 and p[at + 1] == 48):
        return False
    return p[at + 4] == 45 and p[at + 7] == 45 and CLASS[p[at + 2]] & CLASS[p[at + 3]] & CLASS[p[at + 5]] \
        & CLASS[p[at + 6]] & CLASS[p[at + 8]] & CLASS[p[at + 9]] & C_DIGIT


cdef int phone_at(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t* start, Py_ssize_t* ends) noexcept nogil:
    """Find candidates of telephone numbers with their first digit at `at`.

    Set their start and their ends, longest first. Return the number of ends.
    """
    cdef Py_ssize_t found[40]
    cdef Py_ssize_t limit = at + 31 if at + 31 < n else n
    cdef int count = 0
    cdef int digits = 0
    cdef int dots = 0
    cdef int others = 0
    cdef int taken = 0
    cdef int groups = 0
    cdef Py_ssize_t first = at
    cdef uint8_t c
    start[0] = at
    while start[0] > 0 and at - start[0] < 2 and (p[start[0] - 1] == 43 or p[start[0] - 1] == 40):
        start[0] -= 1
    if start[0] > 0 and CLASS[p[start[0] - 1]] & C_WORD or is_date(p, at, n):
        return 0
    while at < limit and digits <= 15:
        c = p[at]
        if CLASS[c] & C_DIGIT:
            if at == first or not CLASS[p[at - 1]] & C_DIGIT:
                groups += 1
                if groups > PHONE_GROUPS or is_date(p, at, n):
                    break
            digits += 1
            if at + 1 == n or not CLASS[p[at + 1]] & C_WORD:
                # With a single dot it is a decimal fraction, with three dots an IP address.
                if 7 <= digits <= 15 and (others or dots != 1 and dots != 3 or start[0] < at and p[start[0]] == 43):
                    found[count] = at + 1
                    count += 1
        elif c == 46:
            dots += 1
        elif c == 32 or 9 <= c <= 13 or c == 40 or c == 41 or c == 45:
            others += 1
        else:
            break
        at += 1
    while count and taken < PHONE_ENDS:
        count -= 1
        ends[taken] = found[count]
        taken += 1
    return taken


cdef Py_ssize_t email_at(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t floor, Py_ssize_t* start) noexcept nogil:
    """Return the end of the e-mail address around the @ at `at`, -1 for none. It begins at or behind `floor`."""
    cdef Py_ssize_t stop = at + 1
    cdef Py_ssize_t dot
    start[0] = at
    while start[0] > floor and CLASS[p[start[0] - 1]] & C_LOCAL:
        start[0] -= 1
    if start[0] == at:
        return -1
    while stop < n and CLASS[p[stop]] & C_DOMAIN:
        stop += 1
    if stop == at + 1 or stop >= n or p[stop] != 46:
        return -1
    dot = stop
    while stop < n and (CLASS[p[stop]] & C_DOMAIN or p[stop] == 46):
        stop += 1
    # A final full stop or hyphen belongs to the sentence.
    while stop > dot and (p[stop - 1] == 46 or p[stop - 1] == 45):
        stop -= 1
    return stop if stop > dot + 1 else -1
