from headgate_engine.context.headers import MessageHead

def is_media_type(head: MessageHead, name: bytes) -> bool:
    """Return whether the content type is `name` (lower case). Case and parameters of the field are ignored."""
