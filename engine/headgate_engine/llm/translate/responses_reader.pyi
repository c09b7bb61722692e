from headgate_engine.llm.translate.readers import PROVIDER_ERROR as PROVIDER_ERROR
from headgate_engine.llm.translate.readers import EventReader

class ResponsesReader(EventReader):
    """Events of the Responses API. Texts that a vendor tells only whole are told, too."""
