"""Tables in object storage, by pyarrow: loads of data sets and exports of results, against moto's S3 server; URLs as paths."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import vervet

SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="module")
def port():
    """The port of a server, which is another process: in a thread of this one it leaves some requests of pyarrow
    without an answer. It ends when its input does."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, "-c", SERVER], **options) as server:
        try:
            line = server.stdout.readline()
            assert line, "moto's server has not started"
            yield int(line)
        finally:
            server.stdin.close()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture
def storage(port, request):
    """A file system, and an empty bucket in it."""
    from pyarrow import fs

    storage = fs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}", scheme="http", access_key="key", secret_key="secret",
        region="eu-central-1", allow_bucket_creation=True,
    )  # fmt: skip
    bucket = "b" + re.sub("[^a-z]", "", request.node.name)
    storage.create_dir(bucket)
    return storage, bucket


def stream(path, storage, **options):
    from pyarrow import dataset

    return dataset.dataset(path, filesystem=storage, **options).scanner().to_reader()


def people(ids):
    import pyarrow

    ids = list(ids)
    return pyarrow.table({"id": ids, "label": ["person"] * len(ids), "age": ids})


def test_a_parquet_file(empty, storage):
    from pyarrow import parquet

    storage, bucket = storage
    path = f"{bucket}/a 'b' ä.parquet"
    parquet.write_table(people(range(1000)), path, filesystem=storage)
    assert empty.load(stream(path, storage)).added == 2000
    assert empty.query("SELECT (SUM(?age) AS ?sum) { ?x a label:person ; key:age ?age }").rows() == [(499500,)]
    again = vervet.open()
    assert again.load(parquet.read_table(path, filesystem=storage)).added == 2000


def test_a_data_set_of_many_files(empty, storage):
    """Hive partitions become a property; fragments load one after the other."""
    import pyarrow
    from pyarrow import dataset

    storage, bucket = storage
    table = people(range(30)).append_column("city", pyarrow.array(["Graz", "Vienna", "Linz"] * 10))
    where = {"filesystem": storage, "partitioning": ["city"], "partitioning_flavor": "hive"}
    dataset.write_dataset(table, f"{bucket}/people", format="parquet", **where)
    found = dataset.dataset(f"{bucket}/people", filesystem=storage, partitioning="hive")
    assert len(found.files) == 3
    empty.load(found.scanner().to_reader())
    assert empty.query("SELECT (COUNT(*) AS ?n) { ?x key:city 'Graz' }").rows() == [(10,)]
    empty.load(found.scanner(columns=["id", "label"]).to_reader())
    with vervet.open() as other:
        added = [other.load(part.scanner().to_reader()).added for part in found.get_fragments()]
        assert added == [20, 20, 20]


def test_csv_and_edges(empty, storage):
    storage, bucket = storage
    for name, rows in (("1", "VIE,GRZ,150\n"), ("2", "GRZ,ZRH,480\n")):
        with storage.open_output_stream(f"{bucket}/routes/{name}.csv") as file:
            file.write(f"from,to,km\n{rows}".encode())
    empty.load(stream(f"{bucket}/routes", storage, format="csv"), edges="route", source="from", target="to")
    assert empty.gremlin("g.V('VIE').out('route').out('route').id()").values() == ["ZRH"]
    assert sorted(empty.gremlin("g.E().values('km')")) == [150, 480]


def test_statements(empty, storage):
    import pyarrow
    from pyarrow import parquet

    storage, bucket = storage
    table = pyarrow.table({"subject": ["urn:a"], "predicate": ["urn:b"], "object": ["line\nbreak"]})
    parquet.write_table(table, f"{bucket}/s.parquet", filesystem=storage)
    assert empty.load(stream(f"{bucket}/s.parquet", storage)).added == 1
    assert empty.query("SELECT ?o { <urn:a> <urn:b> ?o }").rows() == [("line\nbreak",)]


def test_a_result_goes_to_storage_and_back(people_of_ages, storage):
    import pyarrow
    from pyarrow import parquet

    storage, bucket = storage
    result = people_of_ages.query("SELECT ?id ?age { ?x key:id ?id ; key:age ?age } ORDER BY ?age")
    with pyarrow.RecordBatchReader.from_stream(result) as rows:
        with parquet.ParquetWriter(f"{bucket}/batches.parquet", rows.schema, filesystem=storage) as writer:
            for batch in rows:
                writer.write_batch(batch)
    parquet.write_table(result.arrow(), f"{bucket}/table.parquet", filesystem=storage)
    for name in ("batches", "table"):
        assert parquet.read_table(f"{bucket}/{name}.parquet", filesystem=storage) == result.arrow()
        with vervet.open() as copy:
            copy.load(stream(f"{bucket}/{name}.parquet", storage), vertices="person")
            assert copy.gremlin("g.V().count()").values() == [5000]


@pytest.fixture
def people_of_ages(empty):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    empty.load(people(range(5000)), vertices="person", id_column="id")
    empty.update("INSERT { ?x key:id ?age } WHERE { ?x key:age ?age }")
    return empty


def test_a_failed_read_loads_nothing(empty, storage):
    from pyarrow import dataset, parquet

    storage, bucket = storage
    parquet.write_table(people(range(10)), f"{bucket}/d/1.parquet", filesystem=storage)
    parquet.write_table(people(range(10, 20)), f"{bucket}/d/2.parquet", filesystem=storage)
    found = dataset.dataset(f"{bucket}/d", filesystem=storage)
    storage.delete_file(f"{bucket}/d/2.parquet")
    with pytest.raises(vervet.InputError, match="remote: the table cannot be read"):
        empty.load(found.scanner().to_reader(), name="remote")
    assert empty.info()["statements"] == 0


def test_batches_are_released(empty):
    """A load does not hold the batches that it has read."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    count, rows_of_batch, sizes, held = 50, 10_000, [], []
    schema = pyarrow.schema([("id", pyarrow.int64()), ("label", pyarrow.string())])
    before = pyarrow.total_allocated_bytes()

    def batches():
        for number in range(count):
            ids = range(number * rows_of_batch, (number + 1) * rows_of_batch)
            batch = pyarrow.record_batch([pyarrow.array(ids), pyarrow.array(["x"] * rows_of_batch)], schema)
            sizes.append(batch.nbytes)
            yield batch
            held.append(pyarrow.total_allocated_bytes() - before)

    empty.load(pyarrow.RecordBatchReader.from_batches(schema, batches()))
    assert len(held) == count and max(held) < 4 * sizes[0]
    assert empty.gremlin("g.V().count()").values() == [count * rows_of_batch]


URLS = ["s3://bucket/a b.parquet", "gs://bucket/x.csv", "abfs://c@account.host/x.ttl", "file:///tmp/x.ttl", "S3://b/x"]


@pytest.mark.parametrize("url", URLS)
def test_urls_are_errors(empty, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls = [
        lambda path: empty.load(path),
        lambda path: empty.query("SELECT * { ?s ?p ?o }").write_parquet(path),
        lambda path: empty.backup(path),
        lambda path: vervet.open(path),
    ]
    for call in calls:
        for path in (url, pathlib.PurePosixPath(url)):
            with pytest.raises(vervet.InputError, match="is a URL: a .* has a path of this machine") as info:
                call(path)
            assert info.value.hint
    with pytest.raises(vervet.InputError, match="Object storage"):
        empty.load(url)
    assert os.listdir(tmp_path) == []


def test_secrets_of_urls_are_not_shown(empty):
    with pytest.raises(vervet.InputError) as info:
        empty.load("https://user:secret@host/x.parquet?X-Amz-Signature=secret#secret")
    assert "secret" not in str(info.value) and "https://host/x.parquet is a URL" in str(info.value)
    assert "download" in info.value.hint


def test_paths_that_are_no_urls(empty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "<urn:a> <urn:b> <urn:c> ."
    for name in ("a:b.nt", "s3:x.nt", "x/y:z.nt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        empty.load(name)
    if os.name != "nt":
        (tmp_path / "s3:" / "bucket").mkdir(parents=True)
        (tmp_path / "s3:" / "bucket" / "a.nt").write_text(text)
        assert empty.load("s3://bucket/a.nt").statements == 1


def test_data_sets_name_their_stream(empty, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset", reason="pyarrow is not installed")
    table = dataset.dataset(people(range(3)))
    with pytest.raises(TypeError, match=r"InMemoryDataset is neither .*: load its stream, .scanner\(\).to_reader\(\)"):
        empty.load(table)
    with pytest.raises(TypeError, match=r"load its stream, .to_reader\(\)"):
        empty.load(table.scanner())
    assert empty.load(table.scanner().to_reader()).added == 6
    with pytest.raises(TypeError, match="int is neither a path nor a table"):
        empty.load(42)
