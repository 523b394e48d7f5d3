// Retries transactions that conflict with gremlin-javascript, as docs/guides/conflicts.md shows.
//
// Usage: node conflicts.mjs 127.0.0.1:7878, a server without users and with an empty database.

import assert from "node:assert/strict";
// ANCHOR: gremlin-javascript
import { setTimeout } from "node:timers/promises";
import gremlin from "gremlin";

/** Runs `work` in a transaction until its commit succeeds; returns its result. */
async function transact(g, work, attempts = 10) {
  for (let attempt = 1; ; attempt += 1) {
    const tx = g.tx();
    let ended = false; // tx.isOpen is still true after a refused commit
    try {
      const result = await work(tx.begin());
      ended = true;
      await tx.commit();
      return result;
    } catch (error) {
      if (!ended) {
        await tx.rollback();
      }
      if (error.statusCode !== 596 || attempt === attempts) {
        throw error;
      }
      await setTimeout(Math.random() * 2 * 2 ** attempt);
    }
  }
}
// ANCHOR_END: gremlin-javascript

const url = `ws://${process.argv[2]}/gremlin`;
const connect = () => new gremlin.driver.DriverRemoteConnection(url, { traversalSource: "g" });
const { traversal } = gremlin.process.AnonymousTraversalSource;
const setup = connect();
const source = traversal().with_(setup);
await source.addV("counter").property("name", "visits").property("count", 0).iterate();

async function increment(g) {
  const count = Number((await g.V().has("name", "visits").values("count").next()).value);
  await g.V().has("name", "visits").property("count", count + 1).iterate();
}

const CLIENTS = 4;
const ROUNDS = 10;
await Promise.all(
  Array.from({ length: CLIENTS }, async () => {
    const connection = connect();
    for (let round = 0; round < ROUNDS; round += 1) {
      await transact(traversal().with_(connection), increment, 100);
    }
    await connection.close();
  }),
);
assert.equal(Number((await source.V().has("name", "visits").values("count").next()).value), CLIENTS * ROUNDS);
// An error that no retry can mend is raised at once.
await assert.rejects(() => transact(source, (g) => g.V().fail("no").iterate()), { statusCode: 595 });
await setup.close();
console.log("conflicts.mjs: ok");
