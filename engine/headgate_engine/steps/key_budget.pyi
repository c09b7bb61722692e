from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.llm.bounds import PLACES as PLACES
from headgate_engine.llm.estimate import TEXTS as TEXTS
from headgate_engine.plan.step import Step
from headgate_engine.steps.virtual_key import KeyTable, KeyUse

ANSWERLESS: frozenset[str]
FREE: frozenset[str]
MAX_CHOICES: int

class KeyBudgetStep(Step):
    """Reserves what a request for a model may come to, before each attempt: of tokens and of money, or refuses it.

    unpriced: the reply where money is limited and the model has no price. storeless: without the store of leases.
    """

    def __init__(self, table: KeyTable, unpriced: Reply, storeless: Reply) -> None: ...

async def held(step: KeyBudgetStep, ctx: RequestContext, use: KeyUse, tokens: int, picos: int) -> int:
    """Ask for leases until a request is reserved or refused. Return the verdict."""
