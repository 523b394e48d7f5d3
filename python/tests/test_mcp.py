"""`vervet mcp` with the client of the protocol's own package, in both eras of the protocol.

The environment variable `VERVET_COMMAND` names the command, which `cargo xtask python` sets if it has been built.
"""

import asyncio
import os

import pytest

import vervet

mcp = pytest.importorskip("mcp", reason="mcp is not installed")
COMMAND = os.environ.get("VERVET_COMMAND")
pytestmark = [
    pytest.mark.skipif(not COMMAND, reason="the command vervet is not built"),
    pytest.mark.skipif(not hasattr(mcp, "Client"), reason="mcp is older than 2"),
]


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_client_of_the_protocol(tmp_path, mode, revision):
    with vervet.open(tmp_path / "db") as db:
        db.update('INSERT DATA { <urn:vervet:vertex:1> a label:person ; key:name "Ann" ; key:age 34 }')

    async def talk():
        server = mcp.StdioServerParameters(command=COMMAND, args=["mcp", str(tmp_path / "db")])
        async with mcp.Client(server, mode=mode) as client:
            assert client.protocol_version == revision and client.server_info.name == "vervet"
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["schema", "query", "explain"]
            schema = await client.call_tool("schema", {})
            assert "key:name" in schema.content[0].text
            arguments = {"text": "SELECT ?name { ?who key:age ?age ; key:name ?name }", "parameters": {"age": 34}}
            answers = await asyncio.gather(*(client.call_tool("query", arguments) for _ in range(4)))
            assert {answer.content[0].text for answer in answers} == {'?name\n"Ann"'}
            wrong = await client.call_tool("query", {"text": "SELECT ?x {"})
            assert wrong.is_error and "hint" in wrong.content[0].text
            with pytest.raises(mcp.MCPError):
                await client.call_tool("update", {"text": "CLEAR ALL"})

    asyncio.run(talk())
