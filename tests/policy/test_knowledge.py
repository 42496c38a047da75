from pathlib import Path

import pytest

from argus.core.diagnostic import ArgusError
from argus.policy.knowledge import load_practices, load_techniques, parse_practice, parse_technique, related_techniques

TEXT = """+++
name = "larger-bn"
title = "Wider tiles"
intent = "More products for each element that is loaded."
scope = "global"
targets = ["sm_90a"]
applies = "has_mainloop"
preconditions = ["I1", "I3"]
transformation = "larger-bn"
effect = { low = 1.1, likely = 1.5, high = 2.0, basis = "time" }
risk = "Fewer tiles than processors."
signature = "The last wave is nearly empty."

[[lineage]]
command = "argus kb mine clustered"
target = "sm_90a"
shape = "4096x4096x4096"
without = "columns_128"
design = "cooperative"
ratio = 1.2
basis = "time"
+++
A tile of twice the columns halves what its rows cost.
"""


def test_a_file_becomes_a_technique() -> None:
    found = parse_technique(TEXT, "larger-bn", "kb/larger-bn.md")

    assert found.targets == ("sm_90a",)
    assert found.preconditions == ("I1", "I3")
    assert found.effect.likely == 1.5
    assert found.lineage[0].ratio == 1.2
    assert found.text == "A tile of twice the columns halves what its rows cost."


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "Wider tiles"\n', "", "title"),
        ('risk = "', 'hazard = "', "hazard"),
        ('scope = "global"', 'scope = "galaxy"', "scope"),
        ("low = 1.1", "low = 1.6", "low <= likely <= high"),
        ('name = "larger-bn"', 'name = "other"', "its name is `other`"),
        ('targets = ["sm_90a"]', "targets = []", "no target"),
        ('targets = ["sm_90a"]', "targets = [", "Invalid"),
        ("+++\nname", "name", "no front matter"),
        ("A tile of twice the columns halves what its rows cost.\n", "", "its text is empty"),
    ],
)
def test_errors_of_a_file_are_named(old: str, new: str, said: str) -> None:
    with pytest.raises(ArgusError) as raised:
        parse_technique(TEXT.replace(old, new, 1), "larger-bn", "kb/larger-bn.md")

    found = raised.value.diagnostic
    assert found.code == "E902"
    assert said in " ".join([found.message, *found.notes])


def test_a_folder_without_techniques_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ArgusError) as raised:
        load_techniques(tmp_path)

    assert raised.value.diagnostic.code == "E901"


def test_a_binary_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "larger-bn.md").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ArgusError) as raised:
        load_techniques(tmp_path)

    assert raised.value.diagnostic.code == "E901"


def test_related_techniques_share_rare_words() -> None:
    one = parse_technique(TEXT, "larger-bn", "")
    other = parse_technique(TEXT.replace("larger-bn", "deeper").replace("Wider tiles", "Deeper slices"), "deeper", "")

    assert related_techniques((one, other), "deeper slices")[0] is other
    assert related_techniques((one, other), "nothing") == ()
    assert related_techniques((one, other), "deeper", target="gfx942") == ()


PRACTICE = """+++
name = "fewer-waits"
title = "Fewer waits"
family = "rows"
intent = "Wait once for several loads."
targets = ["sm_90a"]
invariants = ["I31"]
applies = "Long rows."
loses = "Short ones."

[[experiments]]
command = "python benchmarks/rows_h200.py run"
record = "docs/hopper.md"
shape = "softmax"
ratio = 1.2
quote = "1.2 times"
+++
One wait for four loads.
"""


def test_a_file_becomes_a_practice(tmp_path: Path) -> None:
    found = parse_practice(PRACTICE, "fewer-waits", "")
    (tmp_path / "practices").mkdir()
    (tmp_path / "practices" / "fewer-waits.md").write_text(PRACTICE, encoding="utf-8")

    assert (found.family, found.experiments[0].ratio, found.conjecture) == ("rows", 1.2, False)
    assert load_practices(tmp_path) == (found,)
    assert load_practices(tmp_path / "practices") == ()
    assert "attention-two-stages" in {each.name for each in related_techniques(load_practices(), "stages of keys")}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('family = "rows"', 'family = "cooking"', "family"),
        ('loses = "Short ones."', 'loses = " "', "its loses is empty"),
        ("ratio = 1.2", "ratio = 0.0", "has the ratio 0.0"),
        ('quote = "1.2 times"', 'without = "rows"', "neither or both"),
        ('quote = "1.2 times"', 'quote = "1.2"\nwithout = "rows"\ndesign = "rows_steps4"', "neither or both"),
        ('name = "fewer-waits"', 'name = "other"', "its name is `other`"),
        ("One wait for four loads.", "", "its text is empty"),
    ],
)
def test_errors_of_a_practice_are_named(old: str, new: str, said: str) -> None:
    with pytest.raises(ArgusError) as raised:
        parse_practice(PRACTICE.replace(old, new, 1), "fewer-waits", "kb/practices/fewer-waits.md")

    found = raised.value.diagnostic
    assert found.code == "E902"
    assert said in " ".join([found.message, *found.notes])
