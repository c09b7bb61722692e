"""Reservations of virtual keys; see key_budget.pxd.

What a prompt has beside its texts is in llm.bounds. Of paths whose bodies have no format of their own two are known: those of
pictures, of which one costs at most 6,240 tokens and 100 for each of three drafts (a tall one of high quality,
https://platform.openai.com/docs/guides/image-generation#cost-and-latency), and those of sound, of which speech has a token
for each 50 ms (https://platform.openai.com/docs/guides/realtime-costs), and slow speech 13 letters a second.
"""

import orjson

from headgate_engine.clock cimport wall_ns
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext, TokenUsage
from headgate_engine.limit.account cimport U_TOKENS, Breach, UsageLimits
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.bounds cimport worst_case
from headgate_engine.llm.prices cimport (
    P_CACHE_WRITE, P_INPUT, P_INPUT_AUDIO, P_OUTPUT, P_OUTPUT_AUDIO, P_REASONING, Cost, PriceList, Rates,
)
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND, Step
from headgate_engine.steps.virtual_key cimport ROUNDS, KeyTable, KeyUse, product, without

from libc.stdint cimport int64_t

from headgate_engine.llm.bounds import PLACES
from headgate_engine.llm.estimate import TEXTS
from headgate_engine.steps.local_rate_limit import FREE

# Most that one request reserves of anything: sums of it do not overflow.
cdef int64_t MOST = <int64_t>1 << 58
# Tokens that are reserved for a prompt beside its estimate and a quarter of that.
cdef int64_t SPARE = 8
# Most tokens that pictures, sound and files are thought to be, about the largest prompts that vendors take.
cdef int64_t MOST_MEDIA = <int64_t>1 << 20
# Tokens of a picture that is made.
cdef int64_t PER_MADE = 6540
# Formats whose answers have no tokens that are paid for.
ANSWERLESS = frozenset(("embeddings", "rerank"))
# Most answers that are thought to be wanted.
MAX_CHOICES = 4096


cdef object decoded(bytes body):
    """Return a body as a document, None for what is no JSON."""
    try:
        return orjson.loads(body)
    except ValueError:
        return None


cdef bytes path_of(RequestContext ctx):
    cdef MessageHead head = ctx.head
    return head.data[head.target_off:head.target_off + head.path_len]


cdef class KeyBudgetStep(Step):
    """Reserves what a request for a model may come to, before each attempt: of tokens and of money, or refuses it.

    unpriced: the reply where money is limited and the model has no price. storeless: without the store of leases.
    """

    def __init__(self, KeyTable table not None, Reply unpriced not None, Reply storeless not None):
        self.name = "apiKey"
        self.table, self.unpriced, self.storeless = table, unpriced, storeless

    cdef int64_t worst_tokens(self, KeyUse use, RequestContext ctx, int64_t* output, int64_t* beside) except -1:
        """Return the tokens of the prompt's texts; `output`: at most those of all answers; `beside`: of definitions,
        pictures and files. Those of sound are in the use.
        """
        cdef LlmCall call = <LlmCall>ctx.llm
        cdef bytes body = b"" if ctx.body is None else ctx.body
        cdef int64_t prompt, said, choices, pictures, sound, files, named
        if not use.knows(body):
            use.note(body, worst_case(call.format, body, decoded(body)))
        prompt, beside[0], output[0], said, choices, media = use.measured
        pictures, sound, files, named, use.spoken = media
        output[0] = max(output[0] or self.table.assumed, said)
        if call.format not in PLACES and call.format not in TEXTS:
            path = path_of(ctx)
            if b"/images/" in path or b"/audio/" in path:
                if not body.startswith(b"--"):
                    prompt = len(body) // 3
                if b"/images/" in path:
                    output[0] = max(output[0], PER_MADE)
                else:
                    use.spoken = True
                    output[0] = max(output[0], prompt * 9 // 2)
            else:
                pictures = sound = 0
        output[0] *= min(max(choices, 1), MAX_CHOICES)
        if call.format in ANSWERLESS:
            output[0] = 0
        use.sound = min(sound, MOST_MEDIA)
        beside[0] += min(pictures * self.table.per_picture + files + named * self.table.per_named, MOST_MEDIA)
        return prompt if call.estimated < 0 else call.estimated

    cdef int run(self, RequestContext ctx) except -1:
        cdef KeyUse use
        cdef LlmCall call
        cdef Cost before
        cdef int64_t tokens, output, beside, prompt
        cdef int64_t picos = 0
        cdef int verdict
        if ctx.key_use is None or ctx.llm is None:
            return CONTINUE
        use, call = <KeyUse>ctx.key_use, <LlmCall>ctx.llm
        if call.format in FREE:
            return CONTINUE
        output = beside = 0
        prompt = self.worst_tokens(use, ctx, &output, &beside)
        use.prompt, use.prompt_picos = prompt + use.sound, 0
        use.bound, use.output_rate = output, 0
        use.converse = self.table.converse
        learn_price(ctx, call, use, prompt)
        # The estimate is a mean: some prompts have more.
        prompt += prompt // 4 + SPARE + beside
        tokens = min(prompt + use.sound + output, MOST)
        if call.prices is not None:
            picos = worst_price(ctx, call, use, prompt, output)
        elif use.key.money:
            picos = -1
        if picos < 0:
            if use.key.money:
                ctx.reply = self.unpriced
                return RESPOND
            picos = 0
        if not (use.key.tokens or use.key.money):
            return CONTINUE
        use.stops, use.desk = self.table.stops, self.table.desk
        # Attempts that have ended may have cost something; what they had reserved is replaced.
        if call.total_usage is not None:
            tokens += max(call.total_usage.input_tokens, 0) + max(call.total_usage.output_tokens, 0)
        before = call.cost
        if before is not None:
            picos = min(picos + before.total, MOST)
        use.free()
        verdict = self.hold(ctx, use, tokens, picos, False)
        if verdict == SUSPEND:
            ctx.exchange.wait_for(self.name, held(self, ctx, use, tokens, picos), None)
        return verdict

    cdef int hold(self, RequestContext ctx, KeyUse use, int64_t tokens, int64_t picos, bint last) except -1:
        """Reserve for each account, or for none. SUSPEND: a lease has to be asked for, unless this is the `last` try."""
        cdef UsageLimits one
        cdef Breach breach
        cdef int taken = 0
        cdef int64_t now_s = wall_ns() // 1000000000
        for one in use.key.limits:
            if not one.reserve(tokens, picos, now_s, &breach):
                for earlier in use.key.limits[:taken]:
                    (<UsageLimits>earlier).settle(tokens, picos, 0, 0, now_s)
                breach.lacks = breach.lacks and (not last or self.table.state.down)
                return without(self.table, ctx, one, &breach, tokens if breach.unit == U_TOKENS else picos, self.storeless)
            taken += 1
        use.tokens, use.picos = tokens, picos
        return CONTINUE


async def held(KeyBudgetStep step, RequestContext ctx, KeyUse use, int64_t tokens, int64_t picos):
    """Ask for leases until a request is reserved or refused. Return the verdict."""
    cdef int verdict = SUSPEND
    cdef int tries = 0
    while verdict == SUSPEND:
        tries += 1
        if step.table.desk is not None:
            await step.table.desk.asked(use.key.limits, (0, tokens, picos))
        verdict = step.hold(ctx, use, tokens, picos, tries >= ROUNDS)
    return verdict


cdef Rates rates_for(RequestContext ctx, LlmCall call, int64_t prompt, int64_t output):
    """The rates of a call with so many tokens, None without a price."""
    cdef TokenUsage usage = TokenUsage.__new__(TokenUsage)
    cdef Cost cost
    usage.add(TokenUsage(prompt, output))
    cost = (<PriceList>call.prices).price(ctx.provider, None, ctx.requested_model, usage, False)
    return None if cost is None else cost.rates


cdef int learn_price(RequestContext ctx, LlmCall call, KeyUse use, int64_t prompt) except -1:
    """Note what is charged of an answer that its provider does not count."""
    cdef Rates rates = None if call.prices is None else rates_for(ctx, call, prompt + use.sound, 0)
    if rates is not None:
        use.prompt_picos = min(product(prompt, rates.rate_of(P_INPUT)) + product(use.sound, rates.rate_of(P_INPUT_AUDIO)), MOST)
        use.output_rate = max(rates.rate_of(P_OUTPUT_AUDIO if use.spoken else P_OUTPUT), 0)
    return 0


cdef int64_t worst_price(RequestContext ctx, LlmCall call, KeyUse use, int64_t prompt, int64_t output) except? -2:
    # A cache is written, and all of an answer is reasoning, or sound.
    cdef Rates rates = rates_for(ctx, call, prompt + use.sound, output)
    cdef int64_t dearest
    if rates is None:
        return -1
    dearest = max(rates.rate_of(P_OUTPUT), rates.rate_of(P_REASONING))
    if use.spoken:
        dearest = max(dearest, rates.rate_of(P_OUTPUT_AUDIO))
    return min(product(prompt, max(rates.rate_of(P_INPUT), rates.rate_of(P_CACHE_WRITE)))
               + product(use.sound, max(rates.rate_of(P_INPUT_AUDIO), rates.rate_of(P_INPUT)))
               + product(output, dearest), MOST)
