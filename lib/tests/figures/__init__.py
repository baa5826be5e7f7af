"""The figures of the notes: for each chapter a table of fragments and of expressions that compute what fills them."""
