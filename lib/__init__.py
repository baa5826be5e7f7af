"""What the notebooks import: small rooms that can be read aloud, one idea each.

Variables that other libraries read while they are imported are set here, once, before any of them is.
"""
import os
import warnings

for _name, _value in {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",      # a progress bar in a cell is an output that never matches again
    "HF_HUB_DISABLE_SYMLINKS_WARNING": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",        # silences a notice when a process forks
    "TRANSFORMERS_VERBOSITY": "error",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TQDM_DISABLE": "1",
    "OMP_WAIT_POLICY": "PASSIVE",             # threads that wait don't spin: several times faster on a busy machine
}.items():
    os.environ.setdefault(_name, _value)

warnings.filterwarnings("ignore", message="IProgress not found")  # tqdm's, in a kernel without ipywidgets
