"""Log probabilities of tokens, between formats. The neutral form is the list that chat completions call `content`:
[{token, logprob, bytes, top_logprobs: [{token, logprob, bytes}]}]; Responses have the same.

Sources: https://platform.openai.com/docs/api-reference/chat/object, https://ai.google.dev/api/generate-content#LogprobsResult,
https://platform.openai.com/docs/api-reference/completions/object.
"""

# Google leaves out a probability of 1, whose logarithm is 0.
cdef object CERTAIN = 0.0


cdef dict a_token(object value, str word):
    """A token with its probability; None for anything else. word: the name of the probability."""
    if not isinstance(value, dict):
        return None
    token = (<dict>value).get("token")
    logprob = (<dict>value).get(word, CERTAIN)
    if not isinstance(token, str) or not isinstance(logprob, (int, float)):
        return None
    coded = (<dict>value).get("bytes")
    return {"token": token, "logprob": logprob,
            "bytes": coded if isinstance(coded, list) else list((<str>token).encode("utf-8", "replace"))}


cdef list a_list(object holder, str name):
    found = (<dict>holder).get(name) if isinstance(holder, dict) else None
    return <list>found if isinstance(found, list) else []


def chat_probs(value):
    cdef dict token, other
    cdef list found = []
    for one in value if isinstance(value, list) else ():
        token = a_token(one, "logprob")
        if token is None:
            continue
        token["top_logprobs"] = [other for top in a_list(one, "top_logprobs")
                                 if (other := a_token(top, "logprob")) is not None]
        found.append(token)
    return found


def gemini_probs(value):
    cdef dict token, other
    cdef list found = []
    tops = a_list(value, "topCandidates")
    for at, one in enumerate(a_list(value, "chosenCandidates")):
        token = a_token(one, "logProbability")
        if token is None:
            continue
        token["top_logprobs"] = [other for top in (a_list(tops[at], "candidates") if at < len(tops) else ())
                                 if (other := a_token(top, "logProbability")) is not None]
        found.append(token)
    return found


def gemini_result(list probs not None):
    return {
        "chosenCandidates": [{"token": one["token"], "logProbability": one["logprob"]} for one in probs],
        "topCandidates": [{"candidates": [{"token": top["token"], "logProbability": top["logprob"]}
                                          for top in one["top_logprobs"]]} for one in probs],
    }


def text_probs(list probs not None, Py_ssize_t offset):
    cdef list offsets = []
    for one in probs:
        offsets.append(offset)
        offset += len(one["token"])
    return {
        "tokens": [one["token"] for one in probs], "token_logprobs": [one["logprob"] for one in probs],
        "top_logprobs": [{top["token"]: top["logprob"] for top in one["top_logprobs"]} for one in probs],
        "text_offset": offsets,
    }
