"""`extAuthz`: asks a service whether a request may go on."""
