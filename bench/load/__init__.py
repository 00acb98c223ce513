"""A load server in C that is not the bottleneck: built with gcc, started in a process of its own, on 127.0.0.1.

    with load.start(tls=True, pieces=200, rate=10) as server:
        ...  # POST server.base_url + "/chat/completions", with SSL_CERT_FILE=server.ca
        print(server.stats()["peak"])

Flags are those of server.c, with `_` for `-`: latency_min, latency_max, size, pieces, rate, ttft, prompt_tokens, endpoints
(1 to 3), full (in flight at which the steady part begins), seed, max_seconds. Seconds, bytes, pieces a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODEL = "moonshotai/kimi-k2.5"

_EXTENSIONS = """\
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
"""


class NoServerError(RuntimeError):
    """The server could not be built or did not start."""


@dataclass(frozen=True)
class Server:
    """A running server.

    `base_url` takes a backend's requests (https where TLS was asked for), `root` is the same server over plain HTTP, for
    the harness; `ca` is the certificate to trust, empty without TLS.
    """

    base_url: str
    root: str
    pid: int
    ca: str

    def stats(self) -> dict[str, Any]:
        """What the server counts; docs/bench.md names each figure."""
        return self._get("/stats")

    def finished(self) -> list[int]:
        """CLOCK_MONOTONIC of each request's last write, milliseconds, 0 if it has none; request 1 comes first.

        A generation id ends with the request's number.
        """
        return self._get("/finished")

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.root + path, timeout=60) as response:
            return json.load(response)


def cache() -> Path:
    """Where the benchmarks keep what they build, outside the tree."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eyas-bench"


def build() -> Path:
    """The server's binary, compiled at need.

    Raises:
        NoServerError: there is no gcc, or it fails (OpenSSL's headers are missing).
    """
    return _built(HERE)


def drain() -> Path:
    """The binary of the floor: `drain PORT CA STREAMS` decrypts that many streams and throws them away.

    Raises:
        NoServerError: as `build` does.
    """
    return _built(HERE / "drain")


def _built(folder: Path) -> Path:
    sources = sorted(folder.glob("*.[ch]"))
    name = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:16]
    binary = cache() / f"{folder.name}-{name}"
    if not binary.exists():
        binary.parent.mkdir(parents=True, exist_ok=True)
        temporary = binary.with_suffix(f".{os.getpid()}")
        code = [str(each) for each in sources if each.suffix == ".c"]
        _tool(["gcc", "-O2", "-Wall", "-o", str(temporary), *code, "-lssl", "-lcrypto"])
        temporary.replace(binary)
    return binary


def certificates() -> Path:
    """A folder with ca.pem, leaf.pem and leaf.key (ECDSA P-256, localhost and 127.0.0.1), made at need.

    Raises:
        NoServerError: there is no openssl command, or it fails.
    """
    name = hashlib.sha256(_EXTENSIONS.encode()).hexdigest()[:8]
    folder = cache() / f"tls-{name}"
    if folder.is_dir():
        return folder
    made = cache() / f"tls-{name}.{os.getpid()}"
    made.mkdir(parents=True)
    (made / "ext").write_text(_EXTENSIONS)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    steps = (
        ["req", "-x509", *curve, "-days", "3650", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=eyas load CA"],
        ["req", *curve, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=localhost"],
        ["x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650",
         "-extfile", "ext", "-extensions", "leaf", "-out", "leaf.pem"],
    )  # fmt: skip
    for step in steps:
        _tool(["openssl", *step], cwd=made)
    with contextlib.suppress(OSError):  # another process was faster
        made.rename(folder)
    shutil.rmtree(made, ignore_errors=True)
    return folder


@contextlib.contextmanager
def start(*, tls: bool = False, **flags: float) -> Generator[Server]:
    """A server on free ports; it is ended by its own pid, and ends by itself with this process.

    Raises:
        NoServerError: it cannot be built, or a flag is wrong.
    """
    folder = certificates() if tls else None
    pem = [] if folder is None else ["--cert", str(folder / "leaf.pem"), "--key", str(folder / "leaf.key")]
    command = [str(build()), *pem, *_words(flags)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise NoServerError(f"the load server ended at once: {' '.join(command)}")
            said = json.loads(line)
            port = said["tls_port"] if tls else said["port"]
            base = f"{'https' if tls else 'http'}://127.0.0.1:{port}/api/v1"
            ca = "" if folder is None else str(folder / "ca.pem")
            yield Server(base, f"http://127.0.0.1:{said['port']}", said["pid"], ca)
        finally:
            process.terminate()


def _words(flags: dict[str, float]) -> Iterable[str]:
    for name, value in flags.items():
        yield f"--{name.replace('_', '-')}"
        yield str(value)


def _tool(command: list[str], cwd: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise NoServerError(f"{command[0]} is not installed: apt-get install gcc libssl-dev openssl") from None
    except subprocess.CalledProcessError as error:
        raise NoServerError(f"{' '.join(command[:2])} failed: {error.stderr.strip()[-2000:]}") from None
