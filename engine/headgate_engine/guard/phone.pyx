# cython: boundscheck=False
"""Telephone numbers; see phone.pxd.

The steps are those of libphonenumber (https://github.com/google/libphonenumber, PhoneNumberUtil.parse and
isValidNumber): remove an international prefix, the country code and a national prefix; the rest must be a number of
some type in some region with that code.

boundscheck is off: digits are counted before they are stored, and the tables' last nodes and programs have no
successors.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

cdef extern from "phone_rules.h" nogil:
    ctypedef struct PhonePlan:
        uint16_t code, valid, general, prefix, groups
        uint32_t lengths, local_lengths
        const char* transform
    ctypedef struct PhoneRegion:
        uint16_t plan, international
    const uint16_t[] phone_behind
    const uint8_t[] phone_accepts
    const uint16_t[] phone_programs
    const uint16_t[] phone_codes
    const PhonePlan[] phone_plans
    const PhoneRegion[] phone_regions
    int PHONE_REGIONS

cdef enum:
    MOST_DIGITS = 24           # room for a number and the digits that a rule adds before it
    LONGEST_READ = 17          # most national digits: MAX_LENGTH_FOR_NSN of libphonenumber
    SHORTEST = 2               # least national digits: MIN_LENGTH_FOR_NSN of libphonenumber
    MAX_SAVES = 8
    # Operations of a program; ci/phone_rules.py writes the programs.
    OP_SET = 0
    OP_SPLIT = 1
    OP_JUMP = 2
    OP_SAVE = 3
    OP_END = 4

cdef struct Digits:
    uint8_t at[MOST_DIGITS]
    int count


cdef bint fits(uint16_t root, const uint8_t* digits, int n) noexcept nogil:
    """Return whether all digits lead from a root to an accepting node."""
    cdef int i
    for i in range(n):
        root = phone_behind[root * 10 + digits[i]]
    return phone_accepts[root]


cdef int run(const uint16_t* code, const uint8_t* digits, int at, int n, int* saves) noexcept nogil:
    """Return the end of a program's first match that begins at 0, -1 for none. Programs have no loops."""
    cdef int before, end
    while True:
        if code[0] == OP_SET:
            if at >= n or not code[1] >> digits[at] & 1:
                return -1
            at += 1
            code += 2
        elif code[0] == OP_SPLIT:
            end = run(code + 2, digits, at, n, saves)
            if end >= 0:
                return end
            code = phone_programs + code[1]
        elif code[0] == OP_JUMP:
            code = phone_programs + code[1]
        elif code[0] == OP_SAVE:
            before = saves[code[1]]
            saves[code[1]] = at
            end = run(code + 2, digits, at, n, saves)
            if end < 0:
                saves[code[1]] = before
            return end
        elif code[0] == OP_END:
            if at != n:
                return -1
            code += 1
        else:
            return at


cdef void transformed(const PhonePlan* plan, const Digits* number, int end, const int* saves, Digits* out) noexcept nogil:
    """Apply the plan's transform rule to a number of which the first `end` digits matched."""
    cdef const char* rule = plan.transform
    cdef int i, group
    out.count = 0
    while rule[0]:
        if rule[0] >= 97:
            group = 2 * (rule[0] - 97)
            for i in range(saves[group], saves[group + 1]):
                if saves[group] >= 0 and out.count < MOST_DIGITS:
                    out.at[out.count] = number.at[i]
                    out.count += 1
        elif out.count < MOST_DIGITS:
            out.at[out.count] = <uint8_t>(rule[0] - 48)
            out.count += 1
        rule += 1
    for i in range(end, number.count):
        if out.count < MOST_DIGITS:
            out.at[out.count] = number.at[i]
            out.count += 1


cdef void without_prefix(const PhonePlan* plan, const Digits* number, Digits* out) noexcept nogil:
    """Remove the national prefix of a number, if it has one."""
    cdef int saves[MAX_SAVES]
    cdef int i, end
    out[0] = number[0]
    if plan.prefix == 0 or number.count == 0:
        return
    for i in range(MAX_SAVES):
        saves[i] = -1
    end = run(phone_programs + plan.prefix, number.at, 0, number.count, saves)
    if end < 0:
        return
    if plan.transform != NULL and saves[2 * plan.groups - 1] >= 0:
        transformed(plan, number, end, saves, out)
    else:
        out.count = number.count - end
        memcpy(out.at, number.at + end, out.count)
    # A number that was valid with the prefix must be valid without it.
    if fits(plan.general, number.at, number.count) and not fits(plan.general, out.at, out.count):
        out[0] = number[0]


cdef bint too_long(const PhonePlan* plan, int n) noexcept nogil:
    """Return whether there are more digits than any number of the plan has."""
    return not plan.local_lengths >> n & 1 and (plan.lengths >> n) == 0


cdef bint is_national(const PhonePlan* plan, const Digits* number) noexcept nogil:
    """Return whether it is a national number of the plan's country, with or without a national prefix."""
    cdef Digits short
    if number.count < SHORTEST:
        return False
    without_prefix(plan, number, &short)
    # Without the prefix the length must be possible or too long; otherwise the digits were not a prefix.
    if plan.local_lengths >> short.count & 1 or not (plan.lengths >> short.count & 1 or too_long(plan, short.count)):
        short = number[0]
    return SHORTEST <= short.count <= LONGEST_READ and fits(plan.valid, short.at, short.count)


cdef const PhonePlan* country_of(const Digits* number, int* size) noexcept nogil:
    """Return the plan of the country code at the start of international digits, NULL for none."""
    cdef int code = 0
    cdef int i
    if number.count and number.at[0] == 0:
        return NULL
    for i in range(3):
        if i >= number.count:
            break
        code = code * 10 + number.at[i]
        if phone_codes[code]:
            size[0] = i + 1
            return &phone_plans[phone_codes[code]]
    return NULL


cdef void behind(const Digits* number, int gone, Digits* out) noexcept nogil:
    out.count = number.count - gone
    memcpy(out.at, number.at + gone, out.count)


cdef int is_international(const Digits* number) noexcept nogil:
    """Return whether digits with a country code are a valid number, -1 if they have no country code."""
    cdef int size = 0
    cdef Digits rest
    cdef const PhonePlan* plan
    if number.count <= SHORTEST:
        return False
    plan = country_of(number, &size)
    if plan == NULL:
        return -1
    behind(number, size, &rest)
    return is_national(plan, &rest)


cdef bint is_regional(const PhoneRegion* region, const Digits* number, bint plus) noexcept nogil:
    """Return whether digits without a `+` are a number for a caller in the region.

    plus: there was a `+`, but no country code after it.
    """
    cdef const PhonePlan* plan = &phone_plans[region.plan]
    cdef const PhonePlan* country
    cdef int saves[MAX_SAVES]
    cdef Digits rest, short
    cdef int size = 0
    cdef int code, end
    end = run(phone_programs + region.international, number.at, 0, number.count, saves)
    if end >= 0 and (end == number.count or number.at[end] != 0):
        behind(number, end, &rest)
        return is_international(&rest) == 1
    code = plan.code
    while code:
        size += 1
        code //= 10
    country = country_of(number, &end)
    # The country's own code may come first without a `+` or an international prefix.
    if country != NULL and country.code == plan.code:
        behind(number, size, &rest)
        without_prefix(plan, &rest, &short)
        if too_long(plan, number.count) or not fits(plan.general, number.at, number.count) \
                and fits(plan.general, short.at, short.count):
            without_prefix(plan, &rest, &short)
            return is_national(&phone_plans[phone_codes[plan.code]], &short)
    return not plus and is_national(plan, number)


cdef bint is_phone(const uint8_t* p, Py_ssize_t n) noexcept nogil:
    cdef Digits number
    cdef bint plus = False
    cdef Py_ssize_t i
    cdef int found
    number.count = 0
    for i in range(n):
        if 48 <= p[i] <= 57:
            if number.count == LONGEST_READ + 3:
                return False
            number.at[number.count] = p[i] - 48
            number.count += 1
        elif p[i] == 43:
            if number.count:
                return False
            plus = True
        elif 9 <= p[i] <= 13:
            return False               # a number has no line breaks
    if plus:
        found = is_international(&number)
        if found >= 0:
            return found
    for i in range(PHONE_REGIONS):
        if is_regional(&phone_regions[i], &number, plus):
            return True
    return False
