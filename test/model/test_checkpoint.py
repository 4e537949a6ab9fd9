"""Weights are checked name by name and loaded straight to their type."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from alpamayo_ros.demo.small_model import FOLDER as SMALL
from alpamayo_ros.model import AlpamayoR1, ModelError, checkpoint
from alpamayo_ros.model.recipe import write_recipe_checkpoint

BUFFER = "action_space.accel_std"
NAME = "expert.norm.weight"
HEAD = "vlm.lm_head.weight"
REVISION = "dd4a24cacefc9a6477a6dfc7354de2443401409d"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe_checkpoint(tmp_path_factory.mktemp("small") / "whole", SMALL)


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint whose weights a test may damage."""
    for source in whole.rglob("*"):
        if source.is_file() and source.suffix != ".safetensors":
            target = tmp_path / source.relative_to(whole)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(source.read_bytes())
    return tmp_path


def tensors(whole: Path) -> dict[str, torch.Tensor]:
    return load_file(whole / "model.safetensors")


def save(folder: Path, values: dict[str, torch.Tensor], shards: int = 1) -> None:
    """Write tensors as one file, or as shards with an index."""
    if shards == 1:
        save_file(values, folder / "model.safetensors")
        return
    names = list(values)
    weight_map = {}
    for k in range(shards):
        file = f"model-{k + 1:05}-of-{shards:05}.safetensors"
        save_file({name: values[name] for name in names[k::shards]}, folder / file)
        weight_map |= dict.fromkeys(names[k::shards], file)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def load(folder: Path, dtype: torch.dtype = torch.float32) -> AlpamayoR1:
    return AlpamayoR1.from_pretrained(folder, SMALL, dtype=dtype)


def assert_refused(folder: Path, message: str) -> None:
    with pytest.raises(ModelError) as error:
        load(folder)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_was_written_is_what_is_loaded(whole: Path) -> None:
    state = load(whole).network.state_dict()
    for name, value in tensors(whole).items():
        torch.testing.assert_close(state[name], value, rtol=0, atol=0)


def test_shards_load_as_the_one_file_does(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole), shards=3)
    state = load(folder).network.state_dict()
    for name, value in tensors(whole).items():
        torch.testing.assert_close(state[name], value, rtol=0, atol=0)


def test_weights_and_buffers_take_the_type_that_is_asked_for(whole: Path) -> None:
    network = load(whole, torch.bfloat16).network
    assert {value.dtype for value in network.state_dict().values()} == {torch.bfloat16}
    # The rounded values that the released checkpoint computes with.
    assert float(network.action_space.accel_mean) == 0.029052734375
    assert float(network.action_space.accel_std) == 0.6796875
    assert float(network.action_space.curvature_mean) == 0.0002689361572265625
    assert float(network.action_space.curvature_std) == 0.026123046875
    frequencies = network.action_in_proj.timestep_fourier_encoder.freqs[0].tolist()
    assert frequencies == [1, 1.671875, 2.78125, 4.65625, 7.75, 12.9375, 21.5, 36, 60, 100]


def test_the_buffers_may_be_left_out(whole: Path, folder: Path) -> None:
    values = tensors(whole)
    left_out = [n for n in values if n.startswith("action_space.") or n.endswith(".freqs")]
    assert len(left_out) == 7
    save(folder, {n: v for n, v in values.items() if n not in left_out})
    state = load(folder).network.state_dict()
    for name in left_out:
        torch.testing.assert_close(state[name], values[name], rtol=0, atol=0)


def test_stored_buffers_are_the_ones_that_are_used(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole) | {BUFFER: torch.tensor(0.6796875)})
    assert load(folder).action_space.accel_std == 0.6796875


def test_a_missing_and_an_unexpected_tensor_are_named(whole: Path, folder: Path) -> None:
    values = tensors(whole)
    values["expert.nrom.weight"] = values.pop(NAME)
    save(folder, values)
    assert_refused(folder, f"1 missing ({NAME}), 1 unexpected (expert.nrom.weight)")


def test_a_misshapen_tensor_is_named_with_both_shapes(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole) | {NAME: torch.zeros(161)})
    assert_refused(folder, f"tensor {NAME} has shape [161], the configuration makes it [160]")


def test_a_tensor_of_a_wrong_type_is_named(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole) | {NAME: torch.zeros(160, dtype=torch.int64)})
    assert_refused(folder, f"tensor {NAME} is of type I64, known: F32, BF16, F16")


@pytest.mark.parametrize("keep", [0, 5, 200, 0.5])
def test_a_truncated_file_is_refused(whole: Path, folder: Path, keep: float) -> None:
    data = (whole / "model.safetensors").read_bytes()
    count = keep if isinstance(keep, int) else int(len(data) * keep)
    (folder / "model.safetensors").write_bytes(data[:count])
    assert_refused(folder, "model.safetensors is damaged or no safetensors file")


@given(st.floats(0, 1, exclude_max=True))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_shard_cut_off_anywhere_is_refused_in_one_line(
    whole: Path, folder: Path, part: float
) -> None:
    save(folder, tensors(whole), shards=2)
    shard = folder / "model-00002-of-00002.safetensors"
    data = shard.read_bytes()
    shard.write_bytes(data[: int(len(data) * part)])
    assert_refused(folder, "model-00002-of-00002.safetensors is damaged or no safetensors file")


def test_shards_without_their_index_are_refused(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole), shards=2)
    (folder / "model.safetensors.index.json").unlink()
    assert_refused(folder, "has shards but no model.safetensors.index.json: fetch it too")


def test_a_missing_shard_is_named(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole), shards=2)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert_refused(folder, "names model-00002-of-00002.safetensors, which is missing")


def test_an_index_cannot_point_out_of_the_folder(folder: Path) -> None:
    index = {"weight_map": {NAME: "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert_refused(folder, "shards must lie in the same folder")


def test_a_tensor_that_is_stored_twice_is_refused(whole: Path, folder: Path) -> None:
    values = tensors(whole)
    save(folder, values, shards=2)
    save_file(values, folder / "model-00002-of-00002.safetensors")
    assert_refused(folder, "is both in")


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    assert_refused(folder, "has no weights")


def test_a_checkpoint_without_any_tokenizer_says_how_to_name_one(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole))
    (folder / "backbone" / "tokenizer.json").unlink(missing_ok=True)
    with pytest.raises(ModelError, match="name a folder with Qwen3-VL's by --tokenizer"):
        AlpamayoR1.from_pretrained(folder)


def test_an_unknown_device_or_type_is_refused(whole: Path) -> None:
    with pytest.raises(ModelError, match="device 'tpu' is not known; use auto, cpu"):
        AlpamayoR1.from_pretrained(whole, SMALL, device="tpu")
    with pytest.raises(ModelError, match="dtype 'float8' is not known; use float32 or bfloat16"):
        AlpamayoR1.from_pretrained(whole, SMALL, dtype="float8")


def test_the_identity_is_the_content_where_no_revision_is_known(whole: Path) -> None:
    digest = hashlib.sha256((whole / "model.safetensors").read_bytes()).hexdigest()
    assert weights_of(load(whole)) == f"whole@{digest[:12]}"


def test_the_content_of_shards_is_that_of_the_files_in_order_of_name(
    whole: Path, folder: Path
) -> None:
    save(folder, tensors(whole), shards=3)
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(folder.glob("*.safetensors"))))
    assert weights_of(load(folder)) == f"{folder.name}@{digest.hexdigest()[:12]}"


def weights_of(model: AlpamayoR1) -> str:
    """The part of the identity that stands for the weights, with the name."""
    return model.model_id.partition("+")[0]


def settings_of(model: AlpamayoR1) -> str:
    """The part that stands for configuration and tokenizer."""
    return model.model_id.partition("+")[2]


def change_config(folder: Path, change: Callable[[dict], object]) -> None:
    values = json.loads((folder / "config.json").read_text())
    change(values)
    (folder / "config.json").write_text(json.dumps(values))


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values["diffusion_cfg"].update(num_inference_steps=1),
        lambda values: values["action_space_cfg"].update(accel_bounds=[-9.0, 9.0]),
        lambda values: values.update(max_pixels=values["max_pixels"] + 1),
    ],
)
def test_another_configuration_is_another_model(
    whole: Path, tmp_path: Path, change: Callable
) -> None:
    snapshot = snapshot_of(whole, tmp_path, REVISION)
    before = load(snapshot)
    change_config(snapshot, change)
    after = load(snapshot)
    assert weights_of(after) == weights_of(before) == f"Alpamayo-R1-10B@{REVISION}"
    assert settings_of(after) != settings_of(before)
    assert re.fullmatch("[0-9a-f]{12}", settings_of(after))


def test_another_tokenizer_is_another_model(whole: Path, tmp_path: Path) -> None:
    text = (SMALL / "tokenizer.json").read_text()
    (tmp_path / "tokenizer.json").write_text(text.replace("<|endoftext|>", "<|end|>"))
    other = AlpamayoR1.from_pretrained(whole, tmp_path)
    assert weights_of(other) == weights_of(load(whole))
    assert settings_of(other) != settings_of(load(whole))


def test_spelling_and_pins_of_a_configuration_do_not_count(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole))
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    before = settings_of(load(folder))
    change_config(folder, lambda values: values.update(transformers_version="5.0"))
    pin(folder, weights_sha256=digest)
    assert settings_of(load(folder)) == before


def snapshot_of(folder: Path, cache: Path, revision: str) -> Path:
    """The folder's files as a download of a revision puts them: links to files of their hash."""
    repository = cache / "models--nvidia--Alpamayo-R1-10B"
    target = repository / "snapshots" / revision
    shutil.copytree(folder, target)
    (repository / "blobs").mkdir()
    for shard in target.glob("*.safetensors"):
        blob = repository / "blobs" / hashlib.sha256(shard.read_bytes()).hexdigest()
        shard.replace(blob)
        shard.symlink_to(Path("..", "..", "blobs", blob.name))
    return target


def lose_head(folder: Path) -> None:
    """Give the folder's model weights with which it says something else."""
    values = load_file(folder / "model.safetensors")
    save(folder, values | {HEAD: torch.zeros_like(values[HEAD])})


def test_the_identity_is_the_revision_of_a_downloaded_snapshot(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []
    update = checkpoint._update

    def watched(digests: Sequence, path: Path) -> None:
        hashed.append(path)
        update(digests, path)

    monkeypatch.setattr(checkpoint, "_update", watched)
    snapshot = snapshot_of(whole, tmp_path, REVISION)
    expected = f"Alpamayo-R1-10B@{REVISION}"
    assert weights_of(load(snapshot)) == expected
    alias = tmp_path / "model_local"
    alias.symlink_to(snapshot)
    assert weights_of(load(alias)) == expected
    # Its files are named by their hash, and nobody has asked for that to be checked.
    assert set(hashed) == {SMALL / "tokenizer.json"}
    pin(snapshot, _commit_hash=REVISION)
    assert weights_of(load(snapshot)) == expected
    assert set(hashed) == {SMALL / "tokenizer.json", snapshot / "model.safetensors"}


def test_a_file_of_the_cache_that_belies_its_name_is_no_pinned_revision(
    whole: Path, tmp_path: Path
) -> None:
    snapshot = snapshot_of(whole, tmp_path, REVISION)
    pin(snapshot, _commit_hash=REVISION)
    blob = (snapshot / "model.safetensors").resolve()
    values = tensors(whole)
    save_file(values | {HEAD: torch.zeros_like(values[HEAD])}, blob)
    digest = hashlib.sha256(blob.read_bytes()).hexdigest()
    assert_refused(
        snapshot,
        f"is not what the cache names it by: its sha256 is {digest}, its file is {blob.name}",
    )


@pytest.mark.parametrize(
    "place",
    [
        "model",
        REVISION,
        f"snapshots/{REVISION}",
        f"models--nvidia--Alpamayo-R1-10B/{REVISION}",
        f"models--nvidia--Alpamayo-R1-10B/snapshots/{REVISION}",
        "models--nvidia--Alpamayo-R1-10B/snapshots/main",
    ],
)
def test_other_weights_are_another_model_whatever_the_folder_is_called(
    whole: Path, tmp_path: Path, place: str
) -> None:
    folder = tmp_path / place
    shutil.copytree(whole, folder)
    before = weights_of(load(folder))
    assert REVISION not in before.rpartition("@")[2]
    lose_head(folder)
    after = weights_of(load(folder))
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert after.endswith(f"@{digest[:12]}")
    assert after != before


def test_weights_put_into_a_snapshot_by_hand_are_not_its_revision(
    whole: Path, tmp_path: Path
) -> None:
    snapshot = snapshot_of(whole, tmp_path, REVISION)
    shard = snapshot / "model.safetensors"
    elsewhere = tmp_path / "elsewhere.safetensors"
    shard.resolve().replace(elsewhere)
    shard.unlink()
    shard.symlink_to(elsewhere)
    digest = hashlib.sha256(elsewhere.read_bytes()).hexdigest()
    assert weights_of(load(snapshot)) == f"Alpamayo-R1-10B@{digest[:12]}"


def test_a_revision_that_cannot_be_compared_is_refused_before_anything_is_read(
    whole: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(folder, tensors(whole))
    pin(folder, _commit_hash=REVISION)
    monkeypatch.setattr(checkpoint, "_open", None)
    assert_refused(folder, f"config.json pins revision {REVISION}, which only a snapshot in a")


def test_a_pinned_content_is_verified(whole: Path, folder: Path) -> None:
    save(folder, tensors(whole))
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    pin(folder, weights_sha256=digest)
    load(folder)
    pin(folder, weights_sha256="0" * 64)
    assert_refused(folder, f"the weights' sha256 is {digest}, config.json pins 0000")


def test_a_pinned_revision_is_verified(whole: Path, tmp_path: Path) -> None:
    snapshot = snapshot_of(whole, tmp_path, "a" * 40)
    pin(snapshot, _commit_hash="b" * 40)
    with pytest.raises(ModelError, match=f"is revision {'a' * 40}, but its config.json pins bbb"):
        load(snapshot)


def pin(folder: Path, **values: str) -> None:
    """Add entries to a folder's config.json."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))
