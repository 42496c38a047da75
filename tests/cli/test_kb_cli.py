import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from argus.cli.main import main
from argus.policy import knowledge
from argus.policy.knowledge import kb_folder, load_practices, load_techniques, parse_technique
from argus.runtime.machine.performance import performance
from argus.search.designs import designs

ROOT = Path(__file__).parents[2]


def test_techniques_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(load_techniques()) + len(load_practices())
    assert any(
        re.match(r"tma-multicast +global +sm_90a +\d\.\d\dx  TMA multicast in clusters$", line) for line in lines
    )
    assert any(re.match(r"rows-whole-rows +rows +sm_90a +1\.10 to 1\.17x  Kernels for", line) for line in lines)
    assert any(re.match(r"decode-parts-of-keys +decode +sm_90a +conjecture  Keys", line) for line in lines)


def test_a_technique_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "tma-multicast"]) == 0

    shown = capsys.readouterr().out
    assert "preconditions  I15, I16" in shown
    assert "lineage" in shown
    assert "cooperative -> clustered" in shown or "-> " in shown

    assert main(["kb", "show", "tma-multicast", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "argus.kb.show/1"
    assert document["technique"]["preconditions"] == ["I15", "I16"]


def test_an_unknown_technique_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "wider-tile"]) == 3
    assert "error[E906]: there is no technique or practice `wider-tile`" in capsys.readouterr().err


def test_a_practice_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "experts-low-tiles"]) == 0
    shown = capsys.readouterr().out
    assert "experiments  1.19x, 64 experts, 1 token, sustained, over tiles of 128 rows (docs/hopper/" in shown
    assert "loses        Many rows an expert" in shown

    assert main(["kb", "show", "decode-parts-of-keys", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["practice"]["conjecture"] is True


def test_a_page_without_an_experiment_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "practices"
    folder.mkdir()
    shutil.copy(kb_folder() / "tma-multicast.md", tmp_path)
    marked = (kb_folder() / "practices" / "decode-parts-of-keys.md").read_text(encoding="utf-8")
    (folder / "decode-parts-of-keys.md").write_text(marked, encoding="utf-8")
    command = ["kb", "check", "decode-parts-of-keys", "--kb", str(tmp_path)]
    assert main(command) == 0
    assert "right  decode-parts-of-keys: a conjecture" in capsys.readouterr().out

    (folder / "decode-parts-of-keys.md").write_text(marked.replace("conjecture = true\n", ""), encoding="utf-8")
    assert main([*command, "--json"]) == 1

    (found,) = json.loads(capsys.readouterr().out)["practices"]
    assert found["faults"] == ["it has no experiment: name one, or mark the page with `conjecture = true`"]


@pytest.mark.share(16, among="techniques checked")
def test_a_check_proves_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "check", "vector-loads", "tma-multicast", "--prove", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    examples = [each for technique in document["techniques"] for each in technique["examples"]]
    assert {each["target"] for each in examples} == {"sm_90a", "gfx942"}
    assert all(each["proved"] for each in examples)


@pytest.mark.nightly
def test_a_wrong_technique_file_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (kb_folder() / "tma-multicast.md").read_text(encoding="utf-8")
    (tmp_path / "tma-multicast.md").write_text(page.replace('"no_cluster"', '"no_roles"'), encoding="utf-8")

    assert main(["kb", "check", "--kb", str(tmp_path)]) == 1

    shown = capsys.readouterr().out
    assert "wrong  tma-multicast: sm_90a: `tma-multicast` changes no kernel of which `no_roles` is true" in shown
    assert "0 of 1 pages are right" in shown


@pytest.mark.share(3)
def test_an_expert_is_mined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = tmp_path / "times.json"
    listed = [
        {"shape": [64, 64, 64], "name": name, "microseconds": time}
        for name, time in {"cdna3staged_vector8": 2.0, "cdna3staged": 3.0}.items()
    ]
    times.write_text(json.dumps({"rows": listed}), encoding="utf-8")
    command = ["kb", "mine", "cdna3staged_vector8", "--problem", "gemm:64x64x64", "--times", str(times)]

    assert main([*command, "-o", str(tmp_path / "skills")]) == 0

    shown = capsys.readouterr().out
    assert "undone vector-loads: cdna3staged_vector8 -> cdna3staged, 1.50 times the time" in shown
    draft = tmp_path / "skills" / "01-vector-loads.md"
    found = parse_technique(draft.read_text(encoding="utf-8"), draft.stem, str(draft))
    assert [(row.ratio, row.basis) for row in found.lineage] == [(1.5, "time")]
    document = json.loads((tmp_path / "skills" / "skills.json").read_text(encoding="utf-8"))
    assert [each["technique"] for each in document["skills"]] == ["vector-loads"]


@pytest.mark.share(3)
def test_a_model_predicts_what_no_table_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "mine", "staged_vector8", "--json"]) == 0

    (skill,) = json.loads(capsys.readouterr().out)["skills"]
    assert skill["technique"] == "vector-loads"
    assert skill["before"] > 0
    assert skill["ratio"] == skill["before"] / skill["after"]


@pytest.mark.nightly
def test_a_model_predicts_cdna3_designs_from_their_machine_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "mine", "cdna3staged_vector8", "--problem", "gemm:512x512x512", "--json"]) == 0

    (skill,) = json.loads(capsys.readouterr().out)["skills"]
    kernel = designs.kernel_of(designs.design("cdna3staged_vector8"))
    wanted = performance(kernel, {"M": 512, "N": 512, "K": 512}).predicted.microseconds
    assert skill["after"] == pytest.approx(wanted)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["mine", "no_such_design"], "E906"),
        (["mine", "cooperative", "--problem", "gemm:0x1x1"], "E903"),
        (["mine", "cooperative", "--times", "/nonexistent/times.json"], "E906"),
        (["mine", "staged_vector8", "-o", "/dev/null/skills"], "E302"),
        (["list", "--kb", "/nonexistent"], "E901"),
    ],
)
def test_bad_input_has_its_diagnostic(arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", *arguments]) == 3
    assert f"error[{code}]" in capsys.readouterr().err


def test_the_base_is_in_the_package_or_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = data["tool"]["hatch"]["build"]["targets"]
    installed = tmp_path / "argus" / "kb"
    installed.mkdir(parents=True)

    assert targets["wheel"]["force-include"] == {"kb": "argus/kb"}
    assert "kb" in targets["sdist"]["include"]
    assert kb_folder() == ROOT / "kb"
    monkeypatch.setattr(knowledge, "__file__", str(tmp_path / "argus" / "policy" / "knowledge.py"))
    assert kb_folder() == installed
