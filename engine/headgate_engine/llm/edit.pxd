# Edits of the top level of a JSON object in place: what is not named keeps its bytes.

# body: one valid JSON object. sets: name -> raw JSON put in place of the value, or behind the last member. defaults: the
# same for names that are not there. removes: names that go.
cdef bytes edit_object(bytes body, dict sets, dict defaults, object removes)
# [(name, start of the name, start and end of the value)] of a valid object's members.
cdef list members_of(bytes body)
