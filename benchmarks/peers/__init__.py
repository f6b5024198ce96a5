"""Our memory beside those that LangChain and LlamaIndex have, in one run.

    make bench

A room for each concept: `counting` (the one counter), `conversations`, `writers` (scripted summarisers), `memories`
(ours, and the protocol) with `of_langchain` and `of_llama_index`, `played` (what is seen of a prompt), `losses`,
`kept`, `times`, `soak`, `table`, `plots`. Where a rule of comparison could favour us, the other one was chosen; the
table's notes say which.
"""
