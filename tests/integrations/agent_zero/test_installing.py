"""The plugin's files go into an Agent Zero and out again, and nothing else changes."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from upswing.errors import Misuse
from upswing.integrations.agent_zero.connection import FILE, FORM, PluginConnection, read_connection
from upswing.integrations.agent_zero.doctor import examine
from upswing.integrations.agent_zero.installing import (
    MANIFEST,
    changed_files,
    export_target,
    install,
    read_manifest,
    uninstall,
)
from upswing.integrations.agent_zero.layout import Layout, find_checkout
from upswing.integrations.agent_zero.moments import MOMENTS
from upswing.integrations.agent_zero.plugin_files import plugin_files
from upswing.integrations.operations.catalog import OPERATIONS

GIVEN = PluginConnection(
    loop_url="http://127.0.0.1:8100", key="up_k", gateway_url="http://127.0.0.1:3000"
)
FILES = {
    Layout.PLUGINS: (
        "agent.py",
        "helpers/plugins.py",
        "helpers/extension.py",
        "usr/plugins/.gitkeep",
    ),
    Layout.EXTENSIONS: (
        "agent.py",
        "python/helpers/extension.py",
        "usr/.gitkeep",
        "agents/researcher/_context.md",
        "python/extensions/agent_init/_10_initial_message.py",
        "python/extensions/monologue_start/.gitkeep",
    ),
}


def make(root, layout):
    for name in FILES[layout]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# theirs: {name}\n")
    return find_checkout(root)


@pytest.fixture(params=list(Layout))
def checkout(request, tmp_path):
    return make(tmp_path / "a0", request.param)


def tree(root):
    """Every file and folder, with content and mode."""
    return {
        each.relative_to(root): (each.lstat().st_mode, each.read_bytes() if each.is_file() else b"")
        for each in sorted(root.rglob("*"))
    }


def test_both_kinds_of_agent_zero_are_known(tmp_path):
    for layout in Layout:
        assert make(tmp_path / layout, layout).layout is layout


@pytest.mark.parametrize("names", [(), ("agent.py",), ("helpers/plugins.py",)])
def test_anything_else_is_refused_with_what_is_missing(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    with pytest.raises(Misuse):
        find_checkout(tmp_path)
    with pytest.raises(Misuse):
        find_checkout(tmp_path / "missing")


def test_the_version_is_read_from_git_without_running_it(tmp_path):
    checkout = make(tmp_path, Layout.PLUGINS)
    assert checkout.version == ""
    git = tmp_path / ".git"
    git.mkdir()
    commit = "2d95cd9f" * 5
    (git / "HEAD").write_text(f"{commit}\n")
    assert find_checkout(tmp_path).version == commit[:12]
    (git / "packed-refs").write_text(f"# pack-refs\n{commit} refs/tags/v1.7\n")
    assert find_checkout(tmp_path).version == "v1.7"
    (git / "packed-refs").write_text(f'{commit} refs/tags/v1"; import os\n')
    assert find_checkout(tmp_path).version == ""


def test_an_installation_leaves_no_trace_when_it_is_taken_out(checkout):
    before = tree(checkout.root)
    done = install(checkout, GIVEN)
    new = {path for path, (_, content) in tree(checkout.root).items() if content} - set(before)
    assert done.written == len(new) - 2, "beside the manifest and the connection"
    assert changed_files(checkout, read_manifest(checkout)) == {}
    for path in before:
        assert tree(checkout.root)[path] == before[path], "theirs are as they were"
    gone = uninstall(checkout)
    assert (gone.left, gone.waiting) == ((), 0)
    assert tree(checkout.root) == before


def test_with_plugins_everything_lies_in_the_plugins_own_folder(tmp_path):
    for path in plugin_files(Layout.PLUGINS, GIVEN):
        assert path.is_relative_to("usr/plugins/upswing")


def test_without_plugins_our_files_have_names_of_their_own():
    for path in plugin_files(Layout.EXTENSIONS, GIVEN):
        assert (
            path.is_relative_to("usr/upswing")
            or path.is_relative_to("agents/rl-trainer")
            or "upswing" in path.name
        )


def test_the_key_file_is_private(checkout):
    install(checkout, GIVEN)
    path = checkout.root / checkout.home / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_connection(path.parent) == GIVEN
    for other in plugin_files(checkout.layout, GIVEN):
        assert b"up_k" not in (checkout.root / other).read_bytes()


def test_installing_again_changes_nothing(checkout):
    install(checkout, GIVEN)
    before = tree(checkout.root)
    install(checkout, GIVEN)
    assert tree(checkout.root) == before


def test_files_of_an_older_version_go(checkout):
    install(checkout, GIVEN)
    old = checkout.root / checkout.home / "old.py"
    old.write_text("x")
    manifest = checkout.root / checkout.home / MANIFEST
    written = json.loads(manifest.read_bytes())
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    written["files"][str(checkout.home / "old.py")] = digest
    manifest.write_text(json.dumps(written))
    assert install(checkout, GIVEN).removed == (str(checkout.home / "old.py"),)
    assert not old.exists()


def test_a_file_that_somebody_changed_is_not_overwritten_and_not_removed(checkout):
    install(checkout, GIVEN)
    path = next(iter(plugin_files(checkout.layout, GIVEN)))
    (checkout.root / path).write_text("mine now")
    with pytest.raises(Misuse, match="changed by somebody"):
        install(checkout, GIVEN)
    assert uninstall(checkout).left == (path.as_posix(),)
    assert (checkout.root / path).read_text() == "mine now"


def test_force_overwrites_our_own_changed_files_only(checkout):
    install(checkout, GIVEN)
    path = next(iter(plugin_files(checkout.layout, GIVEN)))
    (checkout.root / path).write_text("mine now")
    install(checkout, GIVEN, force=True)
    assert (checkout.root / path).read_text() != "mine now"


def test_foreign_files_are_never_overwritten(checkout):
    for path in plugin_files(checkout.layout, GIVEN):
        target = checkout.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("theirs")
        with pytest.raises(Misuse):
            install(checkout, GIVEN, force=True)
        assert target.read_text() == "theirs"
        assert not (checkout.root / checkout.home / MANIFEST).exists()
        target.unlink()


def test_a_plugins_folder_of_others_is_left_alone(checkout):
    home = checkout.root / checkout.home
    home.mkdir(parents=True)
    (home / "notes.txt").write_text("theirs")
    with pytest.raises(Misuse, match="not ours"):
        install(checkout, GIVEN)
    with pytest.raises(Misuse):
        uninstall(checkout)


def test_no_link_is_followed_wherever_it_stands_on_the_way(checkout, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    parents = {parent for path in plugin_files(checkout.layout, GIVEN) for parent in path.parents}
    for folder in sorted(parents - {Path()}, key=lambda each: len(each.parts)):
        place, kept = checkout.root / folder, checkout.root / "kept"
        if place.exists():
            place.rename(kept)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(outside)
        with pytest.raises(Misuse, match="link"):
            install(checkout, GIVEN)
        place.unlink()
        if kept.exists():
            kept.rename(place)
    assert list(outside.iterdir()) == []


def test_a_link_in_place_of_a_file_is_not_written_through(checkout, tmp_path):
    install(checkout, GIVEN)
    secret = tmp_path / "secret"
    secret.write_text("untouched")
    for name in (MANIFEST, FILE):
        place = checkout.root / checkout.home / name
        kept = place.read_bytes()
        place.unlink()
        place.symlink_to(secret)
        with pytest.raises(Misuse):
            install(checkout, GIVEN) if name == MANIFEST else uninstall(checkout)
        place.unlink()
        place.write_bytes(kept)
    assert secret.read_text() == "untouched"


def test_an_uninstallation_that_meets_a_link_changes_nothing(checkout, tmp_path):
    """Wherever the link stands: what is refused has changed nothing, and the doctor goes on with its list."""
    install(checkout, GIVEN)
    listed = [*map(Path, read_manifest(checkout).files), checkout.home / FILE]
    for path in listed:
        place = checkout.root / path
        kept = tmp_path / "kept"
        place.rename(kept)
        place.symlink_to(kept)
        before = tree(checkout.root)
        with pytest.raises(Misuse, match="is a link, which is not followed: move it away"):
            uninstall(checkout)
        assert tree(checkout.root) == before, path
        place.unlink()
        kept.rename(place)
    place = checkout.root / listed[0]
    place.unlink()
    place.symlink_to(tmp_path)
    found = verdicts(examine(checkout, tmp_path / "python"))
    assert {"files": False, "version": True, "spool": True}.items() <= found.items()


def test_a_python_that_does_not_exist_is_named(checkout, tmp_path):
    install(checkout, GIVEN)
    (told,) = [each for each in examine(checkout, tmp_path / "nope") if each.what == "Python"]
    assert "is no file" in told.detail
    assert "name it with --python" not in told.detail


@pytest.mark.parametrize("present", [("helpers/plugins.py",), ("helpers/extension.py",), ()])
def test_a_checkout_that_is_not_whole_is_told_what_it_lacks(tmp_path, present):
    for name in ("agent.py", *present):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    with pytest.raises(Misuse) as refused:
        find_checkout(tmp_path)
    lacks = str(refused.value).partition("; here ")[2]
    for name in ("helpers/plugins.py", "helpers/extension.py"):
        assert (name in lacks.replace("python/helpers/extension.py", "")) == (name not in present)


def test_a_file_where_a_folder_is_needed_is_said(checkout):
    home = checkout.root / checkout.home
    home.parent.mkdir(parents=True, exist_ok=True)
    home.write_text("a file")
    with pytest.raises(Misuse):
        install(checkout, GIVEN)


def test_recordings_that_wait_are_not_thrown_away(checkout):
    install(checkout, GIVEN)
    spool = checkout.root / checkout.home / "spool"
    spool.mkdir()
    (spool / "1.log").write_bytes(b"{}")
    assert uninstall(checkout).waiting == 1
    assert (spool / "1.log").exists()


def test_an_export_is_a_folder_to_be_copied(tmp_path):
    done = install(export_target(tmp_path / "out"), GIVEN)
    assert done.folder == tmp_path / "out/usr/plugins/upswing"
    assert (done.folder / "plugin.yaml").is_file()
    (tmp_path / "linked").symlink_to(tmp_path / "out")
    with pytest.raises(Misuse):
        export_target(tmp_path / "linked")


@pytest.mark.parametrize("layout", list(Layout))
def test_every_file_is_whole(layout, tmp_path):
    for path, text in plugin_files(layout, GIVEN, "v1.7").items():
        assert "@" not in text.replace("@extensible", "") or path.suffix in {".js", ".md"}, path
        if path.suffix == ".py":
            compile(text, str(path), "exec")
    points = [
        moment for moment in MOMENTS if (moment.newer if layout is Layout.PLUGINS else moment.older)
    ]
    told = [path for path in plugin_files(layout, GIVEN) if "upswing_" in path.name]
    assert len(told) >= len(points)


def test_the_pages_script_is_javascript(tmp_path):
    if (node := shutil.which("node")) is None:
        pytest.skip("there is no node here")
    made = plugin_files(Layout.PLUGINS, GIVEN)
    script = next(text for path, text in made.items() if path.suffix == ".js")
    (tmp_path / "x.mjs").write_text(script)
    subprocess.run([node, "--check", tmp_path / "x.mjs"], check=True)


def test_the_profiles_prompt_has_a_line_for_each_operation():
    made = plugin_files(Layout.PLUGINS, GIVEN)
    (prompt,) = [text for path, text in made.items() if path.name == "agent.system.tool.upswing.md"]
    for operation in OPERATIONS:
        assert f"`upswing:{operation.name}`" in prompt
    (role,) = [text for path, text in made.items() if path.name == "agent.system.main.specifics.md"]
    assert "without refusal" not in role


@pytest.mark.parametrize("url", ['http://a"b', "http://a b", "nonsense", "http://x\nkey: y"])
def test_an_address_that_would_break_a_file_is_refused(checkout, url):
    from upswing.integrations.agent_zero.connection import checked_connection

    with pytest.raises(Misuse):
        checked_connection(PluginConnection(gateway_url=url))


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "usr/../../x"])
def test_a_manifest_that_leads_out_is_not_followed(checkout, path):
    install(checkout, GIVEN)
    manifest = checkout.root / checkout.home / MANIFEST
    written = json.loads(manifest.read_bytes())
    for field, value in (("files", {path: "0"}), ("folders", [path])):
        manifest.write_text(json.dumps(written | {field: value}))
        with pytest.raises(Misuse, match="not below"):
            uninstall(checkout)


def verdicts(found):
    return {each.what: each.ok for each in found}


def test_the_doctor_says_what_is_missing(checkout, tmp_path):
    assert verdicts(examine(checkout)) == {"Agent Zero": True, "plugin": False}
    install(
        checkout,
        PluginConnection(loop_url="http://127.0.0.1:9", key="k", gateway_url="http://127.0.0.1:9"),
    )
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    found = verdicts(examine(checkout, python))
    assert found == {
        "Agent Zero": True,
        "files": True,
        "version": True,
        "Python": False,
        "recording": False,
        "rl-trainer": False,
        "gateway": False,
        "spool": True,
    }
    path = next(iter(plugin_files(checkout.layout, GIVEN)))
    (checkout.root / path).unlink()
    (details,) = [each.detail for each in examine(checkout, python) if each.what == "files"]
    assert f"{path} is missing" in details


def test_the_doctor_sees_a_plugin_of_another_form(checkout):
    install(checkout, GIVEN)
    manifest = checkout.root / checkout.home / MANIFEST
    written = json.loads(manifest.read_bytes()) | {"form": FORM + 1}
    manifest.write_text(json.dumps(written))
    (version,) = [each for each in examine(checkout) if each.what == "version"]
    assert not version.ok
    assert "install it again" in version.detail
