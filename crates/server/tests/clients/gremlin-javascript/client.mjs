// Tests a running server through gremlin-javascript.
//
// Usage: node client.mjs 127.0.0.1:7878 127.0.0.1:7879, an empty server and one with the users of tests/server/users.rs.
// Each check runs with GraphBinary and with GraphSON 3.

import assert from "node:assert/strict";
import gremlin from "gremlin";

const { traversal } = gremlin.process.AnonymousTraversalSource;
const { statics: __, P, order, t } = gremlin.process;
const { DriverRemoteConnection, Client, auth } = gremlin.driver;
const [open, guarded] = process.argv.slice(2, 4).map((address) => `ws://${address}/gremlin`);

let checks = 0;
function check(actual, expected) {
  assert.deepEqual(actual, expected);
  checks += 1;
}
async function refused(code, work) {
  try {
    await work();
  } catch (error) {
    assert.equal(error.statusCode, code, error.stack);
    checks += 1;
    return error;
  }
  return assert.fail(`expected ${code}`);
}
const list = async (result) => Array.from(await result);

async function walk(g) {
  await g.V().drop().iterate();
  const marko = (await g.addV("person").property(t.id, 1).property("name", "marko").property("age", 29).next()).value;
  check([marko.id, marko.label], [1, "person"]);
  await g.addV("person").property(t.id, 2).property("name", "vadas").property("age", 27).iterate();
  await g.addV("software").property(t.id, "lop").property("name", "lop").iterate();
  const edge = (await g.V(1).addE("knows").to(__.V(2)).property("weight", 0.5).next()).value;
  check([edge.label, edge.outV.id, edge.inV.id], ["knows", 1, 2]);
  await g.V(1).addE("created").to(__.V("lop")).iterate();
  check(await g.V().has("age", P.gt(20)).order().by("age", order.desc).values("name").toList(), ["marko", "vadas"]);
  check((await g.V(1).repeat(__.out()).until(__.has("name", "lop")).path().by("name").next()).value.objects, ["marko", "lop"]);
  const groups = (await g.V().groupCount().by(t.label).next()).value;
  check([groups.get("person"), groups.get("software")].map(Number), [2, 1]);
  check([await g.V(1).hasNext(), await g.V(99).hasNext()], [true, false]);
  const found = (await g.V(1).elementMap().next()).value;
  check([found.get(t.id), found.get(t.label), found.get("name")], [1, "person", "marko"]);
  check((await g.inject(1).repeat(__.identity()).emit().limit(1000).toList()).length, 1000);
  // Schema queries of tools.
  check(await g.V().label().dedup().order().toList(), ["person", "software"]);
  check(await g.E().label().dedup().order().toList(), ["created", "knows"]);
  check(await g.V().properties().key().dedup().order().toList(), ["age", "name"]);
  for (const value of ["ünïcode 🦀", true, 7, 0.25, 2 ** 40]) {
    check((await g.inject(value).next()).value, value);
  }
}

async function texts(client) {
  check(await list(await client.submit("g.V(x).values('name')", { x: 1 })), ["marko"]);
  check((await list(await client.submit("g.inject(1).repeat(identity()).emit().limit(300)"))).length, 300);
  const sizes = [];
  const stream = client.stream("g.inject(1).repeat(identity()).emit().limit(300)", null, { batchSize: 100 });
  for await (const batch of stream) {
    sizes.push(batch.length);
  }
  check(sizes, [100, 100, 100]);
  check(await list(await client.submit("g.V().hasLabel('none')")), []);
  const error = await refused(597, () => client.submit("g.V().oout()"));
  assert.match(error.message, /did you mean/);
  await refused(598, () => client.submit("g.inject(1).repeat(identity())", null, { evaluationTimeout: 100 }));
  await refused(595, () => client.submit("g.V().fail('not today')"));
  await refused(500, () => client.submit("g.addV().property(T.id, 1)"));
  check(await list(await client.submit("g.V(1).values('age')")), [29]);
}

async function transactions(g, mimeType) {
  const count = async (source) => Number((await source.V().count().next()).value);
  const before = await count(g);
  let tx = g.tx();
  let gtx = tx.begin();
  await gtx.addV("tx").iterate();
  check(await count(gtx), before + 1);
  check(await count(g), before);
  await tx.commit();
  check(await count(g), before + 1);
  tx = g.tx();
  gtx = tx.begin();
  await gtx.addV("tx").iterate();
  await tx.rollback();
  check(await count(g), before + 1);
  // Two conflicting transactions.
  const both = [g.tx(), g.tx()];
  for (const one of both) {
    const source = one.begin();
    const age = Number((await source.V(1).values("age").next()).value);
    await source.V(1).property("age", age + 1).iterate();
  }
  await both[0].commit();
  await refused(596, () => both[1].commit());
  check(Number((await g.V(1).values("age").next()).value), 30);
  // Scripts in a session.
  const client = new Client(open, { traversalSource: "g", session: `s-${mimeType}`, mimeType });
  await client.submit("g.addV('tx')");
  await client.submit("g.tx().commit()");
  await client.submit("g.addV('tx')");
  await client.submit("g.tx().rollback()");
  await client.close();
  check(await count(g), before + 2);
}

async function users(mimeType) {
  const as = (name, password) => {
    const authenticator = new auth.PlainTextSaslAuthenticator(name, password);
    return new DriverRemoteConnection(guarded, { traversalSource: "g", mimeType, authenticator });
  };
  for (const [name, password, code] of [["root", "root"], ["reader", "let me in", 403], ["reader", "wrong", 401]]) {
    const connection = as(name, password);
    const g = traversal().with_(connection);
    const write = () => g.addV("guarded").iterate();
    await (code === undefined ? write() : refused(code, write));
    if (code !== 401) {
      check(await g.V().hasNext(), true);
    }
    await connection.close();
  }
}

for (const mimeType of [
  "application/vnd.graphbinary-v1.0",
  "application/vnd.gremlin-v3.0+json",
]) {
  const before = checks;
  const connection = new DriverRemoteConnection(open, { traversalSource: "g", mimeType });
  const client = new Client(open, { traversalSource: "g", mimeType });
  const g = traversal().with_(connection);
  await walk(g);
  await texts(client);
  await transactions(g, mimeType);
  await users(mimeType);
  await client.close();
  await connection.close();
  console.log(`${mimeType}: ${checks - before} checks`);
}
console.log("gremlin-javascript: ok");
