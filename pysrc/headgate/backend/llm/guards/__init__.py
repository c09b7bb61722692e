"""Prompt guards and enrichment of LLM traffic at run time.

The seam, for whoever forwards LLM requests:

    guards = compile_guards(prompt_guard, env)            # once per configuration: compile.py; None: nothing to do
    call = guards.begin(ctx)                              # per request, while ctx still has the client's own head
    found = await settled(call.request(body, format))     # the client's body in the client's format
    if isinstance(found, Reply): ...                      # refused: answer with it, nothing goes upstream
    else: body = found                                    # what the provider may see (the same object: unchanged)

    found = await settled(call.response(body, format, response_headers))    # a whole 2xx reply in the client's format
    stream = call.stream(format, response_headers)        # a streamed one; None: it passes as it is
    out = await settled(stream.feed(chunk))               # bytes for the client, maybe none; in order, one at a time
    out = await settled(stream.end())                     # after the last byte; stream.blocked: close the upstream

request(), response(), feed() and end() are sync-first: they return their value at once unless a service may be asked,
and an awaitable of it then, to be awaited in a task (`settled` takes both). `format` is a name of
headgate.dialect.llm.transcript.table.FORMATS; other formats pass. Before request() comes `enrich()` of compile.py.
"""
