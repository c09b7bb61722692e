"""Configurations of other programs, translated into the file's form: a tree goes in, a tree comes out."""
