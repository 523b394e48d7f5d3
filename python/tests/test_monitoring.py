"""The dashboard and the alerts in packaging/monitoring name metrics and labels that a server has, and so does docs/metrics.md.

Servers are those of the command that the environment variable `VERVET_COMMAND` names, which `cargo xtask python` sets if it has been
built; without it the page is believed.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/metrics.md"
FILES = [ROOT / "packaging/monitoring" / name for name in ("dashboard.json", "alerts.yaml")]
COMMAND = os.environ.get("VERVET_COMMAND")
if not all(path.exists() for path in [PAGE, *FILES]):
    pytest.skip("this copy of the package is without the repository", allow_module_level=True)

OTHERS = {
    "up",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_capacity_bytes",
    "node_filesystem_avail_bytes",
    "node_filesystem_size_bytes",
}
"""Metrics of Prometheus, Kubernetes and the node exporter."""
TARGET_LABELS = {"job", "instance", "namespace"}
"""Labels that Prometheus gives to every series of a target."""
OTHER_LABELS = {"persistentvolumeclaim", "mountpoint"}
HISTOGRAM = re.compile(r"_(bucket|sum|count)$")
SERVED_SECONDS = 60


def expressions(path):
    """All expressions of a file."""
    text = path.read_text()
    if path.suffix == ".json":
        document = json.loads(text)
        for panel in document["panels"]:
            for target in panel.get("targets", []):
                yield re.sub(r"\[\$__rate_interval\]", "[5m]", target["expr"])
        for variable in document["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["definition"]
        return
    # YAML, without a package for it: `expr: TEXT`, or `expr: |` and lines with a larger indentation.
    for indent, inline, block in re.findall(r"^( +)expr: (?:\|\n((?:\1  .*\n)+)|(.*)\n)", text, re.MULTILINE):
        yield inline or block


def names_of(expression):
    """Metrics of an expression, and the labels that it names."""
    labels = set()
    plain = re.sub(r'"[^"]*"', '""', expression)
    for selector in re.findall(r"\{([^}]*)\}", plain):
        labels |= set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))
    plain = re.sub(r"\{[^}]*\}", " ", plain)
    for group in re.findall(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)", plain):
        labels |= set(re.findall(r"\w+", group))
    plain = re.sub(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", plain)
    if found := re.fullmatch(r"label_values\((\w+)\s*, (\w+)\)", plain.strip()):
        return {found[1]}, labels | {found[2]}
    plain = re.sub(r"\[[^]]*\]|\boffset \w+", " ", plain)
    words = re.findall(r"\b([a-z_]\w*)\b(?!\s*\()", plain)
    return set(words) - {"and", "or", "unless", "bool", "by"}, labels


def page_metrics():
    """Metrics of docs/metrics.md, with the labels of each."""
    found = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            for name, labels in re.findall(r"`(\w+)(?:\{([\w,]+)\})?`", line.split(" | ")[0]):
                found[name] = set(labels.split(",")) if labels else set()
    assert "vervet_writable" in found and found["vervet_requests_total"] == {"kind", "status"}
    return found


def known(name, metrics):
    """Labels of a metric; `None` if there is none of this name."""
    if name in metrics:
        return metrics[name]
    base = HISTOGRAM.sub("", name)
    if base == name or base not in metrics:
        return None
    return metrics[base] | ({"le"} if name.endswith("_bucket") else set())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_expressions_name_metrics_of_the_page(path):
    metrics, count = page_metrics(), 0
    for expression in expressions(path):
        names, labels = names_of(expression)
        assert names, expression
        allowed = TARGET_LABELS | (OTHER_LABELS if names & OTHERS else set())
        for name in names - OTHERS:
            found = known(name, metrics)
            assert found is not None, f"{path.name}: no server has {name}: {expression}"
            allowed |= found
        assert labels <= allowed, f"{path.name}: labels {sorted(labels - allowed)}: {expression}"
        count += 1
    assert count >= 17


def test_wrong_expressions_are_found():
    assert names_of('sum by (kind) (rate(a_total{status=~"5.."}[5m])) / b > 2') == ({"a_total", "b"}, {"kind", "status"})
    assert names_of("max by (job) (a offset 2m) - on (job) group_right () b") == ({"a", "b"}, {"job"})
    assert names_of("label_values(a, job)") == ({"a"}, {"job"})
    assert known("vervet_no_such", page_metrics()) is None
    assert known("vervet_request_seconds_bucket", page_metrics()) == {"kind", "le"}


def test_every_alert_has_a_test():
    alerts = set(re.findall(r"- alert: (\w+)", FILES[1].read_text()))
    tests = FILES[1].with_name("alerts_test.yaml").read_text()
    fired = re.findall(r"alertname: (\w+)\n +exp_alerts:", tests)
    assert alerts == set(fired)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_alerts_fire():
    for arguments in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        subprocess.run(["promtool", *arguments], cwd=FILES[1].parent, check=True)


@pytest.mark.skipif(not COMMAND, reason="the command vervet is not built")
def test_the_page_has_the_metrics_of_a_server(tmp_path):
    """A server of a cluster has all of them."""
    (tmp_path / "empty.nt").write_text("")
    init = [COMMAND, "cluster", "init", "cluster", "--data", "empty.nt", "--servers", "2", "--replicas", "2", "--voters", "2"]
    subprocess.run(init, cwd=tmp_path, check=True, capture_output=True)
    ports = [free_port() for _ in range(4)]
    for name in "ab":
        file = tmp_path / "cluster" / name / "cluster.toml"
        text = file.read_text()
        for old, new in zip((7900, 7901, 7878, 7879), ports, strict=True):
            text = text.replace(f":{old}", f":{new}")
        file.write_text(text)
    servers = [subprocess.Popen([COMMAND, "serve", "--cluster", f"cluster/{name}"], cwd=tmp_path) for name in "ab"]
    try:
        server = f"http://127.0.0.1:{ports[2]}"
        wait_for(f"{server}/ready")
        for path in ("update", "query?query=ASK%20%7B%7D"):
            body = b"INSERT DATA { <urn:a> <urn:b> 1 }" if path == "update" else None
            request = urllib.request.Request(f"{server}/{path}", body, {"Content-Type": "application/sparql-update"})
            urllib.request.urlopen(request).close()
        with urllib.request.urlopen(f"{server}/metrics") as response:
            text = response.read().decode()
    finally:
        for process in servers:
            process.kill()
            process.wait()
    exposed = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        exposed.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    page = page_metrics()
    for name, labels in exposed.items():
        assert known(name, page) == labels, name
    bases = {HISTOGRAM.sub("", name) for name in exposed} | set(exposed)
    assert set(page) <= bases, f"no server has {set(page) - bases}"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(url):
    end = time.monotonic() + SERVED_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url):
                return
        except OSError:
            assert time.monotonic() < end, f"{url} does not answer"
            time.sleep(0.2)
