# Edits of the top level of a JSON object in place: what is not named keeps its bytes.

from headgate_engine.llm.top_members cimport TopMembers

# body: one valid JSON object. sets: name -> raw JSON put in place of the value, or behind the last member. defaults: the
# same for names that are not there. removes: names that go. members: where all of them stand, if that is known.
cdef bytes edit_object(bytes body, dict sets, dict defaults, object removes, TopMembers members=*)
