"""What a cell must not do to look checked: claims that cannot fail, figures from nowhere, silences."""
import pytest
from nbformat.v4 import new_code_cell

from lib.machinery.structure import honest, silence, source
from lib.tests.canaries.make import UNCHECKED, notebook

IMPORTS = "from lib import models, show\nfrom lib.show import claim\n"


def faults(text: str) -> list[str]:
    return honest.faults(notebook((IMPORTS + text, [])))


@pytest.mark.parametrize("text", [
    "claim('39 tokens fed instead of 284', (a, b) == (39, 284))", "show.claim('more than 1,000', least > 1000)",
    "claim(f'{many} of {len(rows)} hold', many == 2)", "claim('the same 8 tokens', ids(8) == ours)",
    "limit = 8\nclaim('the same ' '8 tokens', ours == limit)", "claim('hit at k=3', hit(3))", "claim('so', not rows)",
    "claim('p is 0.125', round(p, 3) == 0.125, here=f'{p}')", "claim('BM25 finds more', a > b)",
    "claim('a is so', a >= 0)", "claim('as it is', a == b == c)",
    "try:\n    print(a)\nexcept ValueError:\n    b",
    "try:\n    claim('so', a)\nfinally:\n    b", "with suppress(ValueError):\n    a()", "print('done')",
    "print('BM25')",
    "print(f'{a} of 48')", "print('4 of 8:', a)", "shown = models", "model.models = 1", "self.show = 1", "%time 1",
    "claim('none is right', correct == 0)"])
def test_what_a_cell_may_say(text):
    assert faults(text) == []


@pytest.mark.parametrize("text, fault", [
    ("claim('so', True)", "cannot fail"), ("claim('so', 1 == 1)", "cannot fail"),
    ("claim('so', a or True)", "cannot fail"),
    ("claim('so', a == a)", "cannot fail"), ("claim('so', f(x).y <= f(x).y)", "cannot fail"),
    ("claim('so', len(a) >= 0)", "cannot fail"), ("claim('so', True and 1)", "cannot fail"),
    ("claim('so', holds=True)", "cannot fail"), ("show.claim('so', not False)", "cannot fail"),
    ("claim('40 tokens', a == 39)", "claims 40"), ("claim(f'{a} of 40', a == 39)", "claims 40"),
    ("claim('4' '0 tokens', a == 39)", "claims 40"), ("claim('a' + '40', a == 39)", "claims 40"),
    ("claim('40 a', a == 39)\nclaim('40 b', b)", "claims 40"), ("claim('1.5 times', a > 1)", "claims 1.5"),
    ("claim('1,000', a > 100)", "claims 1"), ("claim('\u0664\u0660', a == 39)", "claims 4"),
    ("try:\n    claim('so', a)\nexcept AssertionError:\n    pass", "fail unseen"),
    ("for x in y:\n    try:\n        show.claim('so', x)\n    except:\n        pass", "fail unseen"),
    ("with suppress(AssertionError):\n    claim('so', a)", "fail unseen"),
    ("with contextlib.suppress(Exception):\n    claim('so', a)", "fail unseen"),
    ("print('✓ so')", "tick"), ("print(f'✓ {a}')", "tick"), ("tick = '✓'", "tick"),
    ("print('43 tokens')", "prints 43"), ("print('a', 43)", "prints 43"), ("print('4 of 8')", "prints 4"),
    ("show.claim = print", "replaces show.claim"), ("models.load = f", "replaces models.load"),
    ("setattr(show, 'claim', f)", "replaces a part of show"), ("def claim(a, b): pass", "another meaning to claim"),
    ("claim = print", "another meaning to claim"), ("show = 1", "another meaning to show"),
    ("class show: pass", "another meaning to show")])
def test_what_would_only_look_like_a_check(text, fault):
    assert any(fault in found for found in faults(text)), faults(text)


def test_names_of_the_course_are_known_in_later_cells():
    made = notebook(("from lib import evaluations as runs", []), ("runs.RESULTS = 1", []))
    assert [fault.split(": ")[1] for fault in honest.faults(made)] == [
        "line 1 replaces runs.RESULTS, which is the course's own"]


@pytest.mark.parametrize("text", [
    "warnings.simplefilter('ignore', dense.TextCut)", "warnings.simplefilter('error')",
    "warnings.filterwarnings('ignore', 'so', TextCut)", "with warnings.catch_warnings():\n    a",
    "os.environ.get('COURSE_RESULTS', '../results')", "print('generations')", "sys.stdout", "print(now)",
    "a.disable()", "%time 1"])
def test_what_silences_nothing(text):
    assert silence.faults(new_code_cell(text)) == []


@pytest.mark.parametrize("text, fault", [
    ("warnings.simplefilter('ignore')", "every kind"), ("warnings.filterwarnings('ignore', 'so')", "every kind"),
    ("simplefilter('ignore', UserWarning)", "every kind"), ("simplefilter(action='ignore')", "every kind"),
    ("filterwarnings('ignore', category=Warning)", "every kind"), ("simplefilter('once')", "every kind"),
    ("with warnings.catch_warnings(record=True):\n    a", "from being shown"), ("sys.stderr = a", "stderr"),
    ("with redirect_stderr(a):\n    b", "stderr"), ("os.dup2(1, 2)", "stderr"), ("logging.disable(50)", "stderr"),
    ("logging.captureWarnings(True)", "stderr"), ("os.environ['A'] = 'b'", "sets a variable"),
    ("os.environ.update(a)", "sets a variable"), ("environ.setdefault('a', 'b')", "sets a variable"),
    ("os.environ.get('COURSE_STRICT')", "is tested"), ("f'{a}PYTEST_CURRENT_TEST'", "is tested"),
    ("open('01-x.ipynb')", "was recorded"), ("Path('../results/generations/01.json')", "was recorded"),
    ("Path('near-ties.json')", "was recorded"), ("date.today()", "day to day"), ("os.cpu_count()", "machine to"),
    ("getpass.getuser()", "machine to machine"), ("from getpass import getuser\ngetuser()", "machine to machine")])
def test_what_would_make_a_comparison_say_less(text, fault):
    found = silence.faults(new_code_cell(text))
    assert len(found) == 1 and fault in found[0]


def test_a_cell_that_is_not_compared_may_show_its_machine():
    assert silence.faults(new_code_cell("print(os.cpu_count())", metadata=UNCHECKED)) == []


@pytest.mark.parametrize("text, what", [
    ("exec('x = 1')", "code that is not read"), ("__import__('subprocess')", "code that is not read"),
    ("importlib.import_module('os')", "code that is not read"), ("from os import system as s", "shell"),
    ("from os import path, popen", "shell"), ("import os as o\no.system('ls')", "shell"),
    ("os.execvp('a', b)", "shell"),
    ("os.spawnlp(0, 'a')", "shell"), ("os.posix_spawn('a')", "shell"), ("import pip", "shell"),
    ("from IPython.core.interactiveshell import InteractiveShell", "magics")])
def test_other_ways_to_a_shell_are_named(text, what):
    assert any(what in found for found in source.faults(new_code_cell(text))), source.faults(new_code_cell(text))


@pytest.mark.parametrize("text", ["os.path.join('a')", "from os import environ, path", "o.system", "a.execute(1)",
                                  "model.exec_time"])
def test_what_only_sounds_like_it_is_fine(text):
    assert source.faults(new_code_cell(text)) == []
