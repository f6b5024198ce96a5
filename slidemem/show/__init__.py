"""How a replay looks: in a terminal, and as a page of its own."""
