"""Prompt guards and prompt enrichment of LLM traffic.

Callers that forward LLM requests use them as follows:

    guards = compile_guards(prompt_guard, env)            # once per configuration (compile.py); None: no guards
    call = guards.begin(ctx)                              # per request, while ctx still has the client's own head
    found = await settled(call.request(body, format))     # the client's body in the client's format
    if isinstance(found, Reply): ...                      # refused: send this reply, do not call the provider
    else: body = found                                    # the body for the provider (the same object if unchanged)

    found = await settled(call.response(body, format, response_headers))    # a complete 2xx body in the client's format
    stream = call.stream(format, response_headers)        # for a streamed response; None: forward it unchanged
    out = await settled(stream.feed(chunk))               # bytes for the client, possibly none; one call at a time
    out = await settled(stream.end())                     # after the last byte; stream.blocked: close the upstream

request(), response(), feed() and end() return their value directly unless they may call a service; then they return an
awaitable, which must be awaited in a task (`settled` accepts both). `format` is a name in
headgate.dialect.llm.transcript.table.FORMATS; other formats are not inspected. `enrich()` in compile.py runs before
request().
"""
