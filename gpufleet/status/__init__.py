"""The state of a fleet: installed versions, and differences from the settings. Pure, except for
`operations`."""
