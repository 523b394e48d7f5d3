"""The scripts in packaging/cluster and packaging/helm make the directories of servers once, and let no server with a lost log vote.

They run with the command that the environment variable `VERVET_COMMAND` names, and against a stand-in for the API of Kubernetes.
"""

import base64
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPOSE_INIT = ROOT / "packaging/cluster/init.sh"
CHART_INIT = ROOT / "packaging/helm/vervet/files/init.sh"
CHART_PREPARE = ROOT / "packaging/helm/vervet/files/prepare.sh"
COMMAND = os.environ.get("VERVET_COMMAND")
if not COMPOSE_INIT.exists():
    pytest.skip("this copy of the package is without the repository", allow_module_level=True)
needs_command = pytest.mark.skipif(not COMMAND, reason="the command vervet is not built")
needs_programs = pytest.mark.skipif(os.name != "posix" or not shutil.which("curl"), reason="there is no shell or no curl")


@pytest.fixture
def run(tmp_path):
    """Runs a script, for which `vervet` is the command, and returns the result."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "vervet").symlink_to(COMMAND)

    def run(script, **environment):
        path = f"{programs}:{os.environ['PATH']}"
        variables = {**os.environ, "PATH": path, **{name: str(value) for name, value in environment.items()}}
        return subprocess.run(["sh", script], env=variables, capture_output=True, text=True, timeout=120)

    return run


@needs_command
@needs_programs
def test_step_of_the_compose_file(tmp_path, run):
    keys, servers, graph = (tmp_path / name for name in ("keys", "servers", "graph"))
    for folder in [keys, graph, *(servers / name for name in "abc")]:
        folder.mkdir(parents=True)
    (graph / "people.nt").write_text("<urn:ann> <urn:knows> <urn:bob> .\n")
    step = {"KEYS": keys, "SERVERS": servers, "GRAPH": graph}

    done = run(COMPOSE_INIT, **step)
    assert done.returncode == 0, done
    for name in "abc":
        check = subprocess.run([COMMAND, "check", servers / name / "server"], capture_output=True, text=True)
        assert f"server {name} of cluster vervet, 1 of 1 partitions of 1 statements" in check.stdout, check
        text = (servers / name / "server/cluster.toml").read_text()
        assert 'bind = "0.0.0.0:7900"' in text and text.count("127.0.0.1:79") == 0
        assert all(f'address = "vervet-{other}:7900"' in text for other in "abc")
        assert not (servers / name / "server/authority-key.pem").exists()
    assert (keys / "authority-key.pem").exists()

    # The second run changes nothing.
    before = (servers / "a/server/key.pem").read_text()
    assert run(COMPOSE_INIT, **step).returncode == 0
    assert (servers / "a/server/key.pem").read_text() == before

    # A run that was interrupted is done again.
    (keys / "made").unlink()
    shutil.rmtree(servers / "c/server")
    assert run(COMPOSE_INIT, **step).returncode == 0
    assert (servers / "c/server/cluster.toml").exists()

    # A server that has lost its volume does not start anew: no other server runs, of which it could take the data.
    shutil.rmtree(servers / "c/server")
    done = run(COMPOSE_INIT, **step)
    assert done.returncode != 0 and "rejoins" in done.stdout, done
    assert not (servers / "c/server").exists()

    # A log without keys is that of another cluster.
    (keys / "made").unlink()
    next((servers / "a/server").glob("voter-*.new")).with_suffix("").mkdir()
    done = run(COMPOSE_INIT, **step)
    assert done.returncode == 1 and "server a has a log" in done.stderr, done
    assert (servers / "a/server/key.pem").exists()


@needs_command
@needs_programs
def test_job_and_init_container_of_the_chart(tmp_path, run):
    account, secret = tmp_path / "account", tmp_path / "secret"
    for folder in (account, secret, tmp_path / "work"):
        folder.mkdir()
    (account / "token").write_text("a-token")
    (account / "ca.crt").write_text("")
    # Servers that are ready, in place of those whose names only Kubernetes knows.
    (tmp_path / "programs/curl").write_text(
        '#!/bin/sh\ncase "$*" in *:7878/ready) exit 0 ;; esac\n' + f'exec {shutil.which("curl")} "$@"\n'
    )
    (tmp_path / "programs/curl").chmod(0o755)
    with Api() as api:
        job = {"API": api.url, "ACCOUNT": account, "WORK": tmp_path / "work", "NAMESPACE": "graphs", "RELEASE": "v"}
        job |= {"SERVERS": 3, "SCHEME": "http"}
        api.refuses_changes = True
        assert run(CHART_INIT, **job).returncode != 0
        # The job is tried again. Meanwhile the pods start for the first time.
        files = api.secrets["v-servers"]["data"]
        assert sorted(files) == ["a.tar.gz", "b.tar.gz", "c.tar.gz", "first-start"]
        for name, text in files.items():
            (secret / name).write_bytes(base64.b64decode(text, validate=True))
        pod = {"DATA": tmp_path / "data", "SECRET": secret, "POD_NAME": "v-1"}
        pod["DATA"].mkdir()
        done = run(CHART_PREPARE, **pod)
        assert done.returncode == 0, done
        text = (pod["DATA"] / "server/cluster.toml").read_text()
        assert 'server = "b"' in text and 'address="v-2.v-servers:7900"' in text and "127.0.0.1" not in text
        assert list(pod["DATA"].glob("server/voter-*.new"))

        api.refuses_changes = False
        done = run(CHART_INIT, **job)
        assert done.returncode == 0 and "exists" in done.stdout, done
        assert sorted(api.secrets["v-servers"]["data"]) == ["a.tar.gz", "b.tar.gz", "c.tar.gz"]
        assert list(api.secrets["v-authority"]["data"]) == ["authority-key.pem"]
        assert run(CHART_INIT, **job).returncode == 0

        # The key of an earlier cluster is not replaced.
        del api.secrets["v-servers"]
        done = run(CHART_INIT, **job)
        assert done.returncode != 0 and "v-authority is left" in done.stderr, done

    # An empty volume after the first start is a lost one.
    assert run(CHART_PREPARE, **pod).returncode == 0
    (secret / "first-start").unlink()
    shutil.rmtree(pod["DATA"] / "server")
    done = run(CHART_PREPARE, **pod)
    assert done.returncode != 0, done
    assert not (pod["DATA"] / "server").exists() and not list(pod["DATA"].glob("partial/voter-*"))


@pytest.mark.skipif(not shutil.which("helm"), reason="helm is not installed")
@pytest.mark.parametrize(
    "values", ["servers=3", "tls.secretName=t,metrics.serviceMonitor=true,servers=5", "paused=true,init.enabled=false"]
)
def test_chart_renders(values):
    chart = CHART_INIT.parents[1]
    subprocess.run(["helm", "lint", "--strict", chart, "--set", values], check=True)
    rendered = subprocess.run(["helm", "template", "v", chart, "--set", values], check=True, capture_output=True, text=True)
    kinds = [line.removeprefix("kind: ") for line in rendered.stdout.splitlines() if line.startswith("kind: ")]
    assert {"StatefulSet", "Service", "PodDisruptionBudget"} <= set(kinds)
    assert ("Job" in kinds) == ("init.enabled=false" not in values)


class Api(http.server.ThreadingHTTPServer):
    """Secrets of a namespace, as much as the job needs."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), ApiRequest)
        self.secrets = {}
        self.refuses_changes = False
        self.url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class ApiRequest(http.server.BaseHTTPRequestHandler):
    PATH = "/api/v1/namespaces/graphs/secrets"

    def do_GET(self):
        name = self.path.removeprefix(f"{self.PATH}/")
        self.answer(200 if name in self.server.secrets else 404)

    def do_POST(self):
        assert self.path == self.PATH and self.headers["Content-Type"] == "application/json"
        secret = self.body()
        name = secret["metadata"]["name"]
        is_new = self.server.secrets.setdefault(name, secret) is secret
        self.answer(201 if is_new else 409)

    def do_PATCH(self):
        assert self.headers["Content-Type"] == "application/merge-patch+json"
        change = self.body()
        if self.server.refuses_changes:
            return self.answer(403)
        data = self.server.secrets[self.path.removeprefix(f"{self.PATH}/")]["data"]
        for name, value in change["data"].items():
            assert value is None
            data.pop(name, None)
        self.answer(200)

    def body(self):
        assert self.headers["Authorization"] == "Bearer a-token"
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass
