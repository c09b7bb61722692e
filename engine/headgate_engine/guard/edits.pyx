"""Replacements in a text: applies and composes them."""


def apply_edits(bytes text not None, edits):
    parts, at = [], 0
    for start, stop, replacement, _rule in edits:
        parts.append(text[at:start])
        parts.append(replacement)
        at = stop
    parts.append(text[at:])
    return b"".join(parts)


def compose_edits(first, second):
    """Return the edits that have the same effect on a text as `first` followed by `second` on its result.

    Walks both lists once. An edit of `second` that touches a replacement of `first` is merged with it; the rest of the
    replacement on either side stays.
    """
    result = []
    shift = 0                                    # offset in the text = offset in the result of `first` - shift
    queue = list(first)
    position = 0
    for start, stop, replacement, rule in second:
        while position < len(queue):
            low, high, token, owner = queue[position]
            if low + shift + len(token) > start:
                break
            result.append(queue[position])
            shift += len(token) - (high - low)
            position += 1
        head, tail = b"", b""
        left = start - shift
        if position < len(queue):
            low, high, token, owner = queue[position]
            if low + shift < start:
                # It begins inside a replacement.
                left, head = low, token[:start - low - shift]
        right = stop - shift
        while position < len(queue):
            low, high, token, owner = queue[position]
            if low + shift >= stop:
                break
            shift += len(token) - (high - low)
            position += 1
            right = stop - shift
            if high + shift > stop:
                # It ends inside a replacement.
                right, tail = high, token[len(token) - (high + shift - stop):]
                break
        if tail:
            # Another edit may begin in the rest of the replacement, so the rest is queued as a replacement of its own.
            result.append((left, right, head + replacement, rule))
            queue.insert(position, (right, right, tail, rule))
            shift -= len(tail)
        else:
            result.append((left, right, head + replacement, rule))
    result += queue[position:]
    return joined(result)


cdef list joined(list edits):
    """Return edits without those that only insert: what one inserts belongs to the edit that it follows."""
    cdef list found = []
    for edit in edits:
        start, stop, replacement, _rule = edit
        if found and start == stop == found[len(found) - 1][1]:
            low, high, before, rule = found.pop()
            edit = low, high, before + replacement, rule
        found.append(edit)
    return found
