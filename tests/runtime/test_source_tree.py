"""The commit that is checked out is read from Git's files; without them, a digest says which sources there are."""

from __future__ import annotations

from pathlib import Path

from argus.runtime.kernel_cache import sources_digest
from argus.runtime.source_tree import source_tree

ONE, OTHER = "1" * 40, "2" * 40


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_without_a_checkout_there_is_a_digest(tmp_path: Path) -> None:
    assert source_tree(tmp_path) == {"sources": sources_digest()[:16]}


def test_a_branch_is_in_a_file_or_packed_and_a_commit_in_head(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    written(git / "HEAD", "ref: refs/heads/main\n")
    written(git / "packed-refs", f"# pack-refs with: peeled\n{OTHER} refs/heads/maintenance\n{ONE} refs/heads/main\n")
    assert source_tree(tmp_path)["commit"] == ONE
    written(git / "refs/heads/main", f"{OTHER}\n")
    assert source_tree(tmp_path)["commit"] == OTHER
    written(git / "HEAD", f"{ONE}\n")
    assert source_tree(tmp_path)["commit"] == ONE


def test_a_second_working_tree_has_the_branches_of_the_first(tmp_path: Path) -> None:
    whole = tmp_path / "whole" / ".git"
    written(whole / "refs/heads/other", f"{ONE}\n")
    written(whole / "worktrees/tree/HEAD", "ref: refs/heads/other\n")
    written(whole / "worktrees/tree/commondir", "../..\n")
    written(tmp_path / "tree" / ".git", f"gitdir: {whole}/worktrees/tree\n")
    assert source_tree(tmp_path / "tree")["commit"] == ONE


def test_files_of_another_kind_name_no_commit(tmp_path: Path) -> None:
    written(tmp_path / ".git" / "HEAD", "ref: refs/heads/main\n")
    assert "commit" not in source_tree(tmp_path)
