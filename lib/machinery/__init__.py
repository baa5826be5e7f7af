"""What runs the course and is never shown in a lesson: commands, set-up, models, recording, the gate."""


class Stop(Exception):
    """A failure that its reader can mend: one sentence that says what to do. Commands print it and end with 1."""
