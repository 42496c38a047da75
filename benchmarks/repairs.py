"""How many refused drafts one round of repair mends, with scripted authors in the place of a model.

`python benchmarks/repairs.py [--every N] [--out FILE]`. Drafts are refuted kernels of tests/corpus that differ in a few
lines from a proved one, with their recorded diagnostics; each is put into the real request for repair, and an author
sees that request alone. Two authors: `by help` inserts the statements that the diagnostic's last line quotes, before
the line that it marks; `by line` knows how each line should read, but changes only lines that the request names, or
that are next to them. What they write is parsed as an answer, traced in the sandbox, and verified. `twin` is the share
of drafts whose proved neighbour is proved again in the same way: the most that `by line` can reach.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

from attrs import frozen

import argus
from argus.core.verdict import Proved
from argus.policy.llm.planner import Llm, with_kernels_as_options, with_response
from argus.policy.llm.prompt import request
from argus.policy.llm.reply import Kernel, Proposal, Reply
from argus.policy.llm.roles import Question
from argus.policy.llm.settings import Settings
from argus.policy.llm.tasks import Repair
from argus.policy.llm.view import Rejection, View
from argus.policy.planner import Observation, Situation
from argus.runtime.sandbox import Refused, trace_text
from argus.search.llm_client import ROLES
from argus.testing.scripted_author import quoted_kernel
from argus.verifier.api import verify

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
_MOST_CHANGED = 4
"""Lines in which a draft may differ from its proved neighbour."""
_MARKED = re.compile(r"^ *(\d+) \| .*\n +\| +\^", re.MULTILINE)
_NAMED = re.compile(r"(?:^ *|\bline |:)(\d+)(?: \||\b)", re.MULTILINE)
_STATEMENT = re.compile(r"`((?:wgmma|cp_async|bulk|vmem|lds)\.(?:wait\([^`]*\)|commit\(\))|sync\(\)|fence\([^`]*\))`")
PLANNER = Llm()
BLANK = Situation("sm_90a", "a kernel of the corpus", ("1",), 1.0, "memory", ())


@frozen
class Draft:
    """A refuted text with its recorded diagnostic. proved: its nearest proved neighbour."""

    name: str
    text: str
    diagnostic: str
    proved: str

    @property
    def code(self) -> str:
        found = re.search(r"\[(\w+)\]", self.diagnostic)
        return found[1] if found else "none"


def body(path: Path) -> str:
    """The text of a corpus file without its header and its docstring."""
    text = path.read_text(encoding="utf-8")
    return text[text.index("from argus.language") :] if "from argus.language" in text else text


@cache
def proved_bodies() -> tuple[str, ...]:
    return tuple(body(path) for path in sorted((CORPUS / "proved").glob("*.py")))


def drafts(every: int) -> Iterator[Draft]:
    """Every so many of the refuted files that have a proved neighbour within `_MOST_CHANGED` lines."""
    found = 0
    for path in sorted((CORPUS / "refuted").glob("*.py")):
        text = body(path)
        near = min(proved_bodies(), key=lambda other: changed(text, other))
        if changed(text, near) <= _MOST_CHANGED:
            if found % every == 0:
                said = path.with_suffix(".txt").read_text(encoding="utf-8")
                yield Draft(path.stem, text, _shifted(said, path, text), near)
            found += 1


def changed(one: str, other: str) -> int:
    """Number of lines that differ, on the side with more; lines of imports do not count."""
    a, b = (text[text.index("\n@kernel") :].splitlines() if "\n@kernel" in text else [text] for text in (one, other))
    if abs(len(a) - len(b)) > _MOST_CHANGED:
        return len(a)
    opcodes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for kind, i1, i2, j1, j2 in opcodes if kind != "equal")


def _shifted(said: str, path: Path, text: str) -> str:
    """A recorded diagnostic with the line numbers of the text without its header."""
    gone = path.read_text(encoding="utf-8").count("\n") - text.count("\n")
    numbered = re.sub(r"^( *)(\d+)( \|)", lambda m: f"{m[1]}{int(m[2]) - gone}{m[3]}", said, flags=re.MULTILINE)
    return re.sub(r"(?<=\bline )(\d+)|(?<=\.py:)(\d+)", lambda m: str(int(m[0]) - gone), numbered)


def request_for(draft: Draft) -> tuple[Question, str]:
    """The real request for the repair of a draft, and the text of its last part."""
    reply = Reply((Proposal(Kernel(draft.text), 0.5),))
    state = with_kernels_as_options(with_response(PLANNER.start(BLANK, 0), reply))
    (choice,) = state.open()
    refused = Observation(choice, "refuted", stage="invariants")
    state = PLANNER.learn(state, refused)
    shown = Rejection(choice.name, "refuted", text=draft.text, diagnostics=(draft.diagnostic,))
    asked = Question(Repair(refused, 1, 1), state, (), View(rejections=(shown,)))
    fields = json.loads(json.dumps(request(Settings(), ROLES["repair"], asked)))
    return asked, str(fields["messages"][0]["content"][1]["text"])


def by_help(now: str) -> str | None:
    """The kernel with the statements that the help quotes, before the marked line; None if it quotes none."""
    text, said = quoted_kernel(now), now.split("```\n")[3]
    marked = _MARKED.search(said)
    helped = [line for line in said.splitlines() if line.lstrip().startswith("= help:")]
    wanted = _STATEMENT.findall(helped[-1]) if helped else []
    if marked is None or not wanted:
        return None
    lines = text.splitlines()
    place = int(marked[1]) - 1
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    new = [indent + each.replace("(...)", "(0)") for each in wanted]
    return "\n".join([*lines[:place], *new, *lines[place:]]) + "\n"


def by_line(now: str, right: str) -> str | None:
    """The kernel with the right lines where the request names a line, or the one before or after; None if nowhere."""
    text, said = quoted_kernel(now), now.split("```\n")[3]
    named = {int(found) - 1 for found in _NAMED.findall(said)}
    near = {line + step for line in named for step in (-1, 0, 1)}
    a, b = text.splitlines(), right.splitlines()
    made: list[str] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        allowed = kind != "equal" and (i1 < _first_of_kernel(a) or any(line in near for line in range(i1 - 1, i2 + 1)))
        made += b[j1:j2] if allowed else a[i1:i2]
    found = "\n".join(made) + "\n"
    return None if found.strip() == text.strip() else found


def _first_of_kernel(lines: list[str]) -> int:
    return next((place for place, line in enumerate(lines) if line.startswith("@kernel")), 0)


def is_proved(text: str) -> bool:
    """Whether a text is traced in the sandbox, and all of its kernels are proved."""
    found = trace_text(text)
    if isinstance(found, Refused):
        return False
    kernels = [each.trace() for each in found]
    return bool(kernels) and all(isinstance(verify(each).verdict, Proved) for each in kernels)


@frozen
class Result:
    """help, line: whether the author's repair is proved; None where he found nothing to change. twin: the bound."""

    name: str
    code: str
    help: bool | None
    line: bool | None
    twin: bool


def repaired(draft: Draft) -> Result:
    asked, now = request_for(draft)
    outcomes = [_judged(each, asked) for each in (by_help(now), by_line(now, draft.proved))]
    return Result(draft.name, draft.code, outcomes[0], outcomes[1], outcomes[1] is True or is_proved(draft.proved))


def _judged(text: str | None, asked: Question) -> bool | None:
    if text is None:
        return None
    answer = {"kernel": text, "confidence": 0.5, "reason": "scripted"}
    found = ROLES["repair"].parse(answer, asked)
    return isinstance(found, Reply) and is_proved(text)


def table(results: Iterable[Result]) -> str:
    found = list(results)
    lines = [f"{len(found)} refused drafts"]
    for name in ("help", "line", "twin"):
        mended = sum(getattr(each, name) is True for each in found)
        tried = sum(getattr(each, name) is not None for each in found)
        lines.append(f"by {name}: {mended} mended of {len(found)} ({mended / len(found):.0%}), {tried} tried")
    codes = Counter(each.code for each in found)
    for code, count in codes.most_common():
        own = [each for each in found if each.code == code]
        helped, lined = (sum(getattr(each, name) is True for each in own) for name in ("help", "line"))
        lines.append(f"  {code}: {count} drafts, {helped} by help, {lined} by line")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results: list[Result] = []
    with argus.use_solver("z3"):
        for draft in drafts(given.every):
            results.append(repaired(draft))
            print(results[-1], flush=True)
    print(table(results))
    if given.out is not None:
        given.out.write_text(table(results) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
