"""The protocol between a node's core and its roles."""
