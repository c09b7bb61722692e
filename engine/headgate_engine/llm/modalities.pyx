"""Parts of usage; see modalities.pxd. Gemini lists them by modality, in every event of a stream: texts alone are not read."""

import json

from headgate_engine.context.request cimport TokenUsage
from headgate_engine.llm.translate.counts cimport gemini_parts
from headgate_engine.peek.json cimport UsagePeek
from headgate_engine.peek.scan cimport Found

FIELDS = ("input_text_tokens", "input_image_tokens", "input_audio_tokens",
          "output_text_tokens", "output_image_tokens", "output_audio_tokens")


cdef int take_parts(TokenUsage usage, tuple parts) except -1:
    for name, tokens in zip(FIELDS, parts, strict=True):
        if tokens >= 0:
            setattr(usage, name, tokens)
    return 0


cdef int take_gemini_parts(TokenUsage usage, UsagePeek peek) except -1:
    cdef const Found* told = peek._usage()
    cdef bytes text
    if told == NULL:
        return 0
    text = peek.text[told.start:told.stop]
    if b'"AUDIO"' in text or b'"IMAGE"' in text:
        parts = gemini_parts(json.loads(text))
        if parts is not None:
            take_parts(usage, parts)
    return 0
