"""Where sessions are kept: the protocols a store follows, and the stores that come with slidemem."""
