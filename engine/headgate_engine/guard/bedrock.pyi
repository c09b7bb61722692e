# Has only a C face.
