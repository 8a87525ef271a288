"""What a role of a node is: the protocol between the core of a node and its roles."""
