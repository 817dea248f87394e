"""Array libraries as data: what each can do, and how to make and read its arrays."""
