"""Suffix trees of reference pages: construction, node order, flattening."""
