"""Writes the Parquet files of this folder with writers that are not ours: pyarrow 26.0.1 and duckdb 2.0.0.

The texts beside them say what is in them and are written by hand below, not by what reads the files.
`pip install pyarrow duckdb`, then `python write.py`. The files are kept because writers change.
"""

import datetime
import decimal
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

D = decimal.Decimal
OWN = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")


def write(name, table, **options):
    pq.write_table(table, name, **{"store_schema": False, "write_statistics": False, "compression": "none"} | options)


def text(name, lines):
    with open(name, "w", encoding="utf-8", newline="\n") as file:
        file.write("".join(line + "\n" for line in lines))


# Every type: the least, the largest and an ordinary value, and nulls. Values as RDF writes them, and their datatypes.
TYPES = [
    ("bool", pa.bool_(), [True, False, True, None], "boolean", ["true", "false", "true"]),
    ("i8", pa.int8(), [-128, 127, 5, None], "int", ["-128", "127", "5"]),
    ("i16", pa.int16(), [-32768, 32767, 5, None], "int", ["-32768", "32767", "5"]),
    ("i32", pa.int32(), [-(2**31), 2**31 - 1, 0, None], "int", ["-2147483648", "2147483647", "0"]),
    ("i64", pa.int64(), [-(2**63), 2**63 - 1, 0, None], "long", ["-9223372036854775808", "9223372036854775807", "0"]),
    ("u8", pa.uint8(), [0, 255, 5, None], "int", ["0", "255", "5"]),
    ("u16", pa.uint16(), [0, 65535, 5, None], "int", ["0", "65535", "5"]),
    ("u32", pa.uint32(), [0, 2**32 - 1, 5, None], "long", ["0", "4294967295", "5"]),
    ("u64", pa.uint64(), [0, 2**64 - 1, 5, None], "integer", ["0", "18446744073709551615", "5"]),
    ("f16", pa.float16(), [1.5, float("-inf"), 65504.0, None], "float", ["1.5E0", "-INF", "6.5504E4"]),
    ("f32", pa.float32(), [0.1, float("inf"), float("nan"), None], "float", ["1.0E-1", "INF", "NaN"]),
    ("f64", pa.float64(), [0.1, -1e300, 2.0, None], "double", ["1.0E-1", "-1.0E300", "2.0E0"]),
    ("d9", pa.decimal32(9, 2), [D("-9999999.99"), D("12.50"), D("0.00"), None], "decimal", ["-9999999.99", "12.5", "0"]),
    ("d18", pa.decimal64(18, 18), [D("-0.999999999999999999"), D("0.000000000000000001"), D("0.1"), None],
     "decimal", ["-0.999999999999999999", "0.000000000000000001", "0.1"]),
    ("d38", pa.decimal128(38, 10), [D("-9999999999999999999999999999.9999999999"), D("1"), D("0.0000000001"), None],
     "decimal", ["-9999999999999999999999999999.9999999999", "1", "0.0000000001"]),
    ("d76", pa.decimal256(76, 0), [D("-" + "9" * 76), D("9" * 76), D("1000"), None],
     "decimal", ["-" + "9" * 76, "9" * 76, "1000"]),
    ("text", pa.string(), ["", "Grüße \"x\";y\n", "null", None], "string", ["", "Grüße \\\"x\\\";y\\n", "null"]),
    ("large", pa.large_string(), ["a", "b", "NULL", None], "string", ["a", "b", "NULL"]),
    ("json", pa.json_(), ["{\"a\": 1}", "[]", "null", None], "string", ["{\\\"a\\\": 1}", "[]", "null"]),
    ("uuid", pa.uuid(), [OWN.bytes, b"\0" * 16, b"\xff" * 16, None], "uuid",
     [str(OWN), "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    ("date", pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2020, 2, 29), None],
     "date", ["0001-01-01", "9999-12-31", "2020-02-29"]),
    ("t3", pa.time32("ms"), [0, 86399999, 3723120, None], "time", ["00:00:00", "23:59:59.999", "01:02:03.12"]),
    ("t6", pa.time64("us"), [0, 86399999999, 1, None], "time", ["00:00:00", "23:59:59.999999", "00:00:00.000001"]),
    ("t9", pa.time64("ns"), [0, 86399999999999, 10, None], "time", ["00:00:00", "23:59:59.999999999", "00:00:00.00000001"]),
    ("ms", pa.timestamp("ms"), [0, -1, 253402300799999, None], "dateTime",
     ["1970-01-01T00:00:00", "1969-12-31T23:59:59.999", "9999-12-31T23:59:59.999"]),
    ("us", pa.timestamp("us", "UTC"), [0, -1, 1582934400500000, None], "dateTime",
     ["1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2020-02-29T00:00:00.5Z"]),
    ("ns", pa.timestamp("ns", "Europe/Prague"), [0, -(2**63) + 1, 2**63 - 1, None], "dateTime",
     ["1970-01-01T00:00:00Z", "1677-09-21T00:12:43.145224193Z", "2262-04-11T23:47:16.854775807Z"]),
    ("ln", pa.timestamp("ns"), [1, 1000, 1582934400000000000, None], "dateTime",
     ["1970-01-01T00:00:00.000000001", "1970-01-01T00:00:00.000001", "2020-02-29T00:00:00"]),
    ("enum", pa.dictionary(pa.int8(), pa.string()), ["x", "y", "x", None], "string", ["x", "y", "x"]),
    ("nothing", pa.null(), [None] * 4, "string", []),
]


def types():
    columns = {"id": pa.array(["a", "b", "c", "d"])}
    lines = []
    for name, kind, values, datatype, texts in TYPES:
        if pa.types.is_dictionary(kind):
            columns[name] = pa.array(values, pa.string()).dictionary_encode()
        elif isinstance(kind, pa.BaseExtensionType):
            columns[name] = pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
        else:
            columns[name] = pa.array(values, kind)
        lines += [f"{vertex} {name} {datatype} {value}" for vertex, value in zip("abc", texts)]
    write("types.parquet", pa.table(columns), use_dictionary=False)
    text("types.txt", sorted(lines))


# One table in every compression and encoding, with pages of both versions.
ROWS = 40
PLAIN = pa.table({
    "id": pa.array(range(ROWS), pa.int64()),
    "label": pa.array(["person" if row % 3 else "dog" for row in range(ROWS)]),
    "name": pa.array([f"name of {row}" if row % 5 else None for row in range(ROWS)]),
    "age": pa.array([row * row if row % 7 else None for row in range(ROWS)], pa.int32()),
    "height": pa.array([row / 4 for row in range(ROWS)], pa.float64()),
    "tall": pa.array([row > 20 for row in range(ROWS)]),
    "share": pa.array([D(row) / 8 for row in range(ROWS)], pa.decimal128(20, 3)),
})


def compressions():
    for compression in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        write(f"plain_{compression}.parquet", PLAIN, compression=compression)
    write("plain_v2_snappy.parquet", PLAIN, compression="snappy", data_page_version="2.0")
    write("plain_v2_zstd.parquet", PLAIN, compression="zstd", data_page_version="2.0", use_dictionary=False,
          write_page_checksum=True)
    encodings = {
        "id": "DELTA_BINARY_PACKED", "label": "DELTA_BYTE_ARRAY", "name": "DELTA_LENGTH_BYTE_ARRAY",
        "age": "DELTA_BINARY_PACKED", "height": "BYTE_STREAM_SPLIT", "tall": "RLE", "share": "BYTE_STREAM_SPLIT",
    }
    write("plain_delta.parquet", PLAIN, use_dictionary=False, column_encoding=encodings)
    write("plain_delta_v2.parquet", PLAIN, use_dictionary=False, column_encoding=encodings | {"share": "DELTA_BYTE_ARRAY"},
          data_page_version="2.0")
    write("plain_pages.parquet", PLAIN, use_dictionary=False, data_page_size=64, write_batch_size=4, row_group_size=17)
    duckdb.sql("SET threads = 1")
    duckdb.from_arrow(PLAIN).to_parquet("plain_duckdb_lz4.parquet", compression="lz4_raw")
    duckdb.from_arrow(PLAIN).to_parquet("plain_duckdb_brotli.parquet", compression="brotli")
    lines = ["id,label,name:string,age:int,height:double,tall:boolean,share:decimal"]
    for row in range(ROWS):
        name = f"name of {row}" if row % 5 else ""
        age = str(row * row) if row % 7 else ""
        lines.append(f"{row},{'person' if row % 3 else 'dog'},{name},{age},{row / 4},{str(row > 20).lower()},{D(row) / 8}")
    text("plain.csv", lines)


# Edges in three row groups, with lists that are absent, empty, have nulls, or go over pages.
def lists():
    values = [None, [], [None], [1], [1, None, 2], list(range(50)), [-1] * 3]
    words = [["a;b", "", None], None, [], ["ä"], ["x"] * 4, [None, None], ["y", "z"]]
    table = pa.table({
        "from": pa.array(range(7), pa.int32()),
        "to": pa.array(["0", "0", "1", "1", "2", "2", "3"]),
        "label": pa.array(["knows"] * 4 + ["likes"] * 3),
        "numbers": pa.array(values, pa.list_(pa.int16())),
        "words": pa.array(words, pa.large_list(pa.string())),
    })
    write("lists.parquet", table, row_group_size=3, data_page_size=16, write_batch_size=2)
    write("lists_v2.parquet", table, row_group_size=3, data_page_version="2.0", compression="snappy")
    lines = []
    for row in range(7):
        lines += [f"{row} numbers {number}" for number in sorted({number for number in values[row] or [] if number is not None})]
        lines += [f"{row} words {word}" for word in sorted({word for word in words[row] or [] if word is not None})]
    text("lists.txt", lines)


# What DuckDB makes of its types.
def duck():
    duckdb.sql("""COPY (SELECT
        'v' AS id,
        ['b', 'a'] AS label,
        '123e4567-e89b-12d3-a456-426614174000'::UUID AS uuid,
        'mad'::ENUM ('sad', 'mad') AS mood,
        '{"k": [1]}'::JSON AS json,
        TIME '01:02:03.000004' AS time,
        TIMESTAMPTZ '2020-02-29 01:02:03.000004+00' AS at,
        TIMESTAMP_NS '2020-02-29 01:02:03.000000004' AS nano,
        TIMESTAMP '2020-02-29 01:02:03' AS local,
        DATE '2020-02-29' AS day,
        255::UTINYINT AS tiny,
        18446744073709551615::UBIGINT AS big,
        12.340::DECIMAL(18, 3) AS decimal,
        [1.5, NULL, 2]::DOUBLE[] AS doubles,
        [DATE '2020-01-01', DATE '2021-01-01'] AS days
    ) TO 'duckdb.parquet' (FORMAT parquet)""")
    text("duckdb.txt", [
        "v at dateTime 2020-02-29T01:02:03.000004Z",
        "v big integer 18446744073709551615",
        "v day date 2020-02-29",
        "v days date 2020-01-01",
        "v days date 2021-01-01",
        "v decimal decimal 12.34",
        "v doubles double 1.5E0",
        "v doubles double 2.0E0",
        "v json string {\\\"k\\\": [1]}",
        "v local dateTime 2020-02-29T01:02:03",
        "v mood string mad",
        "v nano dateTime 2020-02-29T01:02:03.000000004",
        "v time time 01:02:03.000004",
        "v tiny int 255",
        "v uuid uuid 123e4567-e89b-12d3-a456-426614174000",
    ])


# What has no place in a property, and INT96.
def others():
    duckdb.sql("""COPY (SELECT 1 AS id, {'a': 1} AS structure, {'a': 1, 'b': 2} AS pair, MAP {'k': 1} AS map, [[1]] AS nested,
        [{'a': 1}] AS structures, 'x'::BLOB AS bytes, INTERVAL 1 DAY AS length
    ) TO 'unsupported.parquet' (FORMAT parquet)""")
    moment = pa.array([1582934400123456789, None, -1], pa.timestamp("ns"))
    table = pa.table({"id": ["a", "b", "c"], "at": moment, "raw": pa.array([b"text", "ä".encode(), b"\xff"], pa.binary())})
    write("int96.parquet", table, use_deprecated_int96_timestamps=True)


# A social network as LDBC's files have it, small and invented; as CSV, and what pyarrow reads from that.
NETWORK = {
    "person_0_0": """id|firstName|birthday|locationIP|language|height
933|Ann|1989-12-03|119.235.7.103|en;de|1.5
1129|Bob "the|1985-08-02|77.240.75.197|fr|
4194|Čeněk|1990-01-09|x|cs|2
""",
    "tag_0_0": """id|name
0|Tag
7|007
""",
    "person_knows_person_0_0": """Person.id|Person.id|creationDate|weight
933|1129|2010-03-13T07:37:21.718+0000|3000000000
933|4194|2010-07-30T15:19:53.298+0000|1
1129|4194|2010-10-02T12:00:00.000+0000|2
""",
    "person_hasInterest_tag_0_0": """Person.id|Tag.id
933|0
933|7
4194|7
""",
    "person_email_emailaddress_0_0": """Person.id|email
933|ann@example.org
933|ann@example.com
""",
}


def network():
    for name, csv in NETWORK.items():
        text(f"{name}.csv", csv.splitlines())
        header, *rows = [line.split("|") for line in csv.splitlines()]
        columns = [[row[at] or None for row in rows] for at in range(len(header))]
        arrays = []
        for field, column in zip(header, columns):
            narrow = [("int32", int, 2**31), ("int64", int, 2**63), ("float64", float, None)]
            array = pa.array(column, pa.string())
            for kind, read, bound in narrow:
                try:
                    values = [None if value is None else read(value) for value in column]
                except ValueError:
                    continue
                if (bound and any(value is not None and not -bound <= value < bound for value in values)) or (
                    read is int and any(value is not None and str(number) != value for value, number in zip(column, values))
                ):
                    continue
                array = pa.array(values, kind)
                break
            if field == "language":
                array = pa.array([value.split(";") for value in column], pa.list_(pa.string()))
            arrays.append(array)
        table = pa.Table.from_arrays(arrays, names=header)
        write(f"{name}.parquet", table)


types()
compressions()
lists()
duck()
others()
network()
