"""What is varied: one thing at a time, then everything at once, and a control that must change tokens.

Each factor is measured in a process of its own, since most libraries read their variables once, while imported.
"""
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Factor:
    """One way of running the model; `wanted` are the facts (of probe.py) without which it did not take effect."""
    name: str
    wanted: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)  # of the process, before anything is imported
    settings: dict[str, str | int] = field(default_factory=dict)  # of the loaded model: see settings.py
    slow: float = 1.0             # about how many times slower than the reference: for the estimate alone
    command: tuple[str, ...] = ()  # what runs Python, where that isn't this one
    in_part: bool = False          # whether a part of the tokens is enough even for --whole

    @property
    def is_control(self) -> bool:
        """Whether it has to change tokens."""
        return self.settings.get("dtype") == "bfloat16"

    @property
    def feeding(self) -> str:
        """How tokens are fed: `cached` (as the course does), `afresh` (all of them for each token), `one pass`."""
        return str(self.settings.get("feeding", "cached"))

    def missed(self, facts: dict[str, str], reference: dict[str, str] | None) -> str:
        """Why it did not take effect, judged by what was found; empty when it did."""
        for name, value in self.wanted.items():
            if facts.get(name) != value:
                return f"{name} is {facts.get(name)} and not {value}"
        if self.wanted and reference and all(reference.get(name) == value for name, value in self.wanted.items()):
            return "the reference runs like this here"
        return ""


REFERENCE = Factor("as the notebooks run")

_FIXED = {"MKL_DYNAMIC": "FALSE"}  # or MKL takes as many threads as it thinks best
_SSE, _AVX2 = "Intel SSE4.1", "Intel AVX2"


def _threads(count: int, slow: float = 1.0) -> Factor:
    return Factor(f"{count} thread" + "s" * (count > 1), {"threads": str(count), "MKL threads": str(count)}, _FIXED,
                  {"threads": count}, slow)


FACTORS = [
    REFERENCE,
    Factor("the same again, in another process"),
    _threads(1, 1.8), _threads(2), _threads(4, 1.3),
    Factor("PyTorch's kernels without AVX", {"capability": "DEFAULT"}, {"ATEN_CPU_CAPABILITY": "default"}, slow=1.2),
    Factor("PyTorch's kernels for AVX2", {"capability": "AVX2"}, {"ATEN_CPU_CAPABILITY": "avx2"}),
    Factor("MKL's compatible branch", {"MKL branch": "COMPATIBLE"}, {"MKL_CBWR": "COMPATIBLE"}, in_part=True,
           slow=2.5),
    Factor("oneDNN with SSE4.1", {"oneDNN": _SSE}, {"ONEDNN_MAX_CPU_ISA": "SSE41"}, in_part=True, slow=1.5),
    Factor("AVX2 in all three", {"capability": "AVX2", "MKL branch": "AVX2", "oneDNN": _AVX2},
           {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}, slow=1.2),
    Factor("no cache: all fed anew for each token", {"cache": "off"}, settings={"feeding": "afresh"}, in_part=True),
    Factor("no cache: all in one pass", {"cache": "off"}, settings={"feeding": "one pass"}),
    Factor("eager attention", {"attention": "eager"}, settings={"attention": "eager"}, slow=1.1),
    Factor("PyTorch's own linear layer", {"linear": "default"}, settings={"linear": "default"}, in_part=True,
           slow=1.3),
    Factor("worst corner: 1 thread, no AVX, eager",
           {"threads": "1", "capability": "DEFAULT", "MKL branch": "COMPATIBLE", "oneDNN": _SSE,
            "attention": "eager"},
           {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
           {"threads": 1, "attention": "eager"}, slow=4.0),
    Factor("control: bfloat16", {"dtype": "bfloat16"}, settings={"dtype": "bfloat16"}, slow=1.3),
]
