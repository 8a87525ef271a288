"""The state of a fleet: what hosts have, how far it is from what they should have. Pure, but for
`operations`."""
