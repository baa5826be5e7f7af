"""What runs the course and is never shown in a lesson: commands, set-up, models, recording, the gate."""
import sys

# jsonschema, which reads notebooks, builds a grammar of web addresses with it at import: seconds, for nothing here.
sys.modules.setdefault("rfc3987_syntax", None)


class Stop(Exception):
    """A failure that its reader can mend: one sentence that says what to do. Commands print it and end with 1."""
