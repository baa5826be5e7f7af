"""The endpoint: one model behind HTTP, for many readers. Each file can be read aloud; in the order of a request:

connection   one connection, and the ends of all that waits for its reader
guard        who may ask at all: names and origins, the size and the form of a request
app          the routes, and every error as one sentence
answer       the answer to a question, event by event: from the notes, or in steps with tools
notes        the passages of the notes that a question is answered from
held         text that may still become a tool call is held back
wanted       what an OpenAI client may ask for
parameters   the schemas of its tools
completions  its answer in that form, whole or in chunks
line         the line of readers before the one model
events       server-sent events, and what happens when their reader leaves
server       the port, the start and the end
"""
