"""The faults, one file a topic; each says which requirements it breaks and where it was seen."""
