"""Reads the weights of a checkpoint folder: safetensors only, every tensor checked, then loaded.

Names, shapes and types are compared with the architecture from the files' headers, before a byte
of a tensor is read. Each tensor then goes straight to its device and type.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from alpamayo_ros.model.config_section import read_json
from alpamayo_ros.model.configuration import ModelConfig
from alpamayo_ros.model.errors import ModelError
from alpamayo_ros.model.network import Network

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
STORED_TYPES = ("F32", "BF16", "F16")
NAMES_IN_A_MESSAGE = 3
HASH_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class StoredTensor:
    """What a shard's header says of a tensor."""

    shard: Path
    shape: tuple[int, ...]
    dtype: str


def shard_paths(folder: Path) -> list[Path]:
    """The files with weights: those the index names, else the one file.

    Raises:
        ModelError: there are none, or the index names one that is missing or lies elsewhere.
    """
    index = folder / INDEX_NAME
    if index.is_file():
        names = read_json(index).get("weight_map")
        if not isinstance(names, dict) or not names:
            raise ModelError(f"{index} has no weight_map")
        files = sorted({str(name) for name in names.values()})
        for name in files:
            if Path(name).name != name:
                raise ModelError(f"{index} names {name!r}: shards must lie in the same folder")
            if not (folder / name).is_file():
                raise ModelError(f"{index} names {name}, which is missing: fetch it again")
        return [folder / name for name in files]
    if (folder / SINGLE_NAME).is_file():
        return [folder / SINGLE_NAME]
    if any(folder.glob("*.safetensors")):
        raise ModelError(f"{folder} has shards but no {INDEX_NAME}: fetch it too")
    raise ModelError(f"{folder} has no weights ({INDEX_NAME} or {SINGLE_NAME})")


def read_headers(shards: Iterable[Path]) -> dict[str, StoredTensor]:
    """Name to shape and type of every stored tensor.

    Raises:
        ModelError: a shard is damaged, or a tensor is stored twice.
    """
    stored: dict[str, StoredTensor] = {}
    for shard in shards:
        with _open(shard) as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                if name in stored:
                    raise ModelError(f"tensor {name} is both in {stored[name].shard} and {shard}")
                entry = file.get_slice(name)
                stored[name] = StoredTensor(shard, tuple(entry.get_shape()), entry.get_dtype())
    return stored


def check_tensors(stored: dict[str, StoredTensor], network: nn.Module) -> None:
    """Compare what is stored with what the architecture has; its buffers may be left out.

    Raises:
        ModelError: tensors are missing, unexpected, misshapen or of a wrong type; one line.
    """
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    optional = {name for name, _ in network.named_buffers()}
    missing = [name for name in expected if name not in stored and name not in optional]
    unexpected = [name for name in stored if name not in expected]
    if missing or unexpected:
        parts = [
            f"{len(names)} {kind} ({_some(names)})"
            for kind, names in (("missing", missing), ("unexpected", unexpected))
            if names
        ]
        raise ModelError(f"the tensors do not fit the configuration: {', '.join(parts)}")
    for name, tensor in stored.items():
        if tensor.shape != expected[name]:
            raise ModelError(
                f"tensor {name} has shape {list(tensor.shape)}, the configuration makes it "
                f"{list(expected[name])}"
            )
        if tensor.dtype not in STORED_TYPES:
            raise ModelError(
                f"tensor {name} is of type {tensor.dtype}, known: {', '.join(STORED_TYPES)}"
            )


def load_checkpoint(
    network: Network,
    config: ModelConfig,
    folder: Path,
    tokenizer: Path,
    device: str,
    dtype: torch.dtype,
) -> str:
    """Load a folder's weights into an empty network; what the model is known by.

    A revision that config.json pins is checked file by file; one that only the place of the
    folder tells is taken on the cache's word.

    Args:
        tokenizer: the tokenizer.json that is used.

    Raises:
        ModelError: the folder is not what config.json pins, or its weights do not fit; one line.
    """
    revision = known_revision(folder, config)
    hashed = bool(config.content_hash) or not revision
    digest = load_weights(network, folder, device, dtype, hashed, named=bool(config.revision))
    return model_identity(folder, config, revision, digest, settings_digest(config, tokenizer))


def load_weights(
    network: Network,
    folder: Path,
    device: str,
    dtype: torch.dtype,
    hashed: bool = False,
    named: bool = False,
) -> str:
    """Give every parameter and buffer of an empty network its value, on the device in the type.

    A shard is hashed while it is loaded, so that it comes from the disk once, and the time is that
    of the slower of both.

    Args:
        hashed: make the sha256 over the shards, one after the other.
        named: each shard is a link to a file that is named by its sha256: check that it is.

    Returns:
        With `hashed` the sha256, else empty.

    Raises:
        ModelError: the folder's weights cannot be read, do not fit, or belie their name; one line.
    """
    shards = shard_paths(folder)
    stored = read_headers(shards)
    check_tensors(stored, network)
    digest = hashlib.sha256()  # of all shards
    with ThreadPoolExecutor(1, thread_name_prefix="hash") as pool:
        for shard in shards:
            own = hashlib.sha256()
            digests = [d for d, wanted in ((digest, hashed), (own, named)) if wanted]
            hashing = pool.submit(_update, digests, shard) if digests else None
            with _open(shard) as file:
                for name in file.keys():  # noqa: SIM118 - not a mapping
                    # A copy: the file's pages must not be what the model computes with.
                    value = file.get_tensor(name).to(device, dtype, copy=True)
                    assign(network, name, value)
            if hashing is not None:
                hashing.result()
            if named:
                _require_name(shard, own.hexdigest())
    for name, buffer in network.named_buffers():
        assign(network, name, buffer.to(device, dtype))
    return digest.hexdigest() if hashed else ""


def _update(digests: Sequence[hashlib._Hash], path: Path) -> None:
    """Feed a file to digests; hashlib lets other threads run meanwhile."""
    with open(path, "rb") as file:
        while block := file.read(HASH_BLOCK_BYTES):
            for digest in digests:
                digest.update(block)


def _require_name(shard: Path, sha256_hex: str) -> None:
    """Refuse a shard of a Hugging Face cache that is not what it is named by."""
    name = shard.resolve().name
    if name != sha256_hex:
        raise ModelError(
            f"{shard} is not what the cache names it by: its sha256 is {sha256_hex}, its file is "
            f"{name}: delete that and fetch it again"
        )


def assign(network: nn.Module, name: str, value: torch.Tensor) -> None:
    """Put a tensor in the place of a parameter or buffer, whatever device that was on."""
    path, _, leaf = name.rpartition(".")
    module = network.get_submodule(path)
    if leaf in module._parameters:
        module._parameters[leaf] = nn.Parameter(value, requires_grad=False)
    else:
        module._buffers[leaf] = value


def known_revision(folder: Path, config: ModelConfig) -> str:
    """The revision of a snapshot in a Hugging Face cache; of any other folder it is not known.

    Raises:
        ModelError: config.json pins another revision, or one that cannot be compared.
    """
    revision = _downloaded_revision(folder)
    if config.revision in ("", revision):
        return revision
    if revision:
        raise ModelError(
            f"{folder} is revision {revision}, but its config.json pins {config.revision}"
        )
    raise ModelError(
        f"{folder}: config.json pins revision {config.revision}, which only a snapshot in a "
        "Hugging Face cache can be compared with: pin weights_sha256 in place of _commit_hash"
    )


def settings_digest(config: ModelConfig, tokenizer: Path) -> str:
    """The sha256 over all beside the weights that a plan depends on: configuration and tokenizer.

    Of the configuration what was understood, so that neither its spelling counts nor what it pins.

    Args:
        tokenizer: the tokenizer.json that is used.
    """
    values = asdict(replace(config, revision="", content_hash=""))
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    _update([digest], tokenizer)
    return digest.hexdigest()


def model_identity(
    folder: Path, config: ModelConfig, revision: str, digest: str, settings: str
) -> str:
    """ "NAME@WEIGHTS+SETTINGS": the revision, else 12 digits of the weights' sha256, and 12 of the
    configuration's and the tokenizer's.

    Raises:
        ModelError: the configuration pins a hash and the digest is another one.
    """
    if config.content_hash and digest != config.content_hash:
        raise ModelError(
            f"{folder}: the weights' sha256 is {digest}, config.json pins {config.content_hash}"
        )
    return f"{_name(folder)}@{revision or digest[:12]}+{settings[:12]}"


def _downloaded_revision(folder: Path) -> str:
    """The commit of a snapshot in a Hugging Face cache, else empty.

    A snapshot is a folder models--OWNER--NAME/snapshots/COMMIT whose weights are links to
    ../../blobs/SHA256. A folder that only bears such a name says nothing of what lies in it.
    """
    snapshot = folder.resolve()
    if not (_is_in_cache(snapshot) and re.fullmatch(r"[0-9a-f]{40}", snapshot.name)):
        return ""
    blobs = snapshot.parent.parent / "blobs"
    for shard in shard_paths(snapshot):
        blob = shard.resolve()
        if blob.parent != blobs or not re.fullmatch(r"[0-9a-f]{64}", blob.name):
            return ""
    return snapshot.name


def _name(folder: Path) -> str:
    """The folder's name; of a snapshot in a Hugging Face cache the model's."""
    resolved = folder.resolve()
    if _is_in_cache(resolved):
        return resolved.parent.parent.name.rpartition("--")[2]
    return resolved.name


def _is_in_cache(resolved: Path) -> bool:
    """Whether a folder lies where a Hugging Face cache keeps the snapshots of a model."""
    repository = resolved.parent.parent.name
    return resolved.parent.name == "snapshots" and repository.startswith("models--")


def stored_bytes(network: nn.Module, dtype: torch.dtype) -> int:
    """Bytes of a network's parameters in a type, also of one without memory."""
    return sum(math.prod(p.shape) for p in network.parameters()) * dtype.itemsize


def _open(shard: Path) -> Any:
    try:
        return safe_open(shard, framework="pt", device="cpu")
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{shard} is damaged or no safetensors file: {error}") from None


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:NAMES_IN_A_MESSAGE])
    return shown if len(names) <= NAMES_IN_A_MESSAGE else f"{shown}, ..."
