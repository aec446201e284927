"""How matches are written."""
