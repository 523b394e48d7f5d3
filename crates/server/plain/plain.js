// Sends the query and shows its result: a table, a boolean, or text.
"use strict";
const byId = (id) => document.getElementById(id);

function cell(term) {
  if (!term) return "";
  if (term.type === "uri") return `<${term.value}>`;
  if (term.type === "bnode") return `_:${term.value}`;
  if (term.type === "triple") return `<<( ${cell(term.value.subject)} ${cell(term.value.predicate)} ${cell(term.value.object)} )>>`;
  if (term["xml:lang"]) return `${term.value} @${term["xml:lang"]}`;
  return term.value;
}

function table(answer) {
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const name of answer.head.vars) {
    const th = document.createElement("th");
    th.textContent = name;
    head.append(th);
  }
  const body = table.createTBody();
  for (const row of answer.results.bindings.slice(0, 1000)) {
    const line = body.insertRow();
    for (const name of answer.head.vars) line.insertCell().textContent = cell(row[name]);
  }
  return table;
}

function text(value) {
  const pre = document.createElement("pre");
  pre.textContent = value;
  return pre;
}

async function run() {
  byId("status").textContent = "running …";
  byId("result").replaceChildren();
  const begin = performance.now();
  try {
    const response = await fetch("/query", {
      method: "POST",
      headers: {
        "Content-Type": "application/sparql-query",
        "Accept": "application/sparql-results+json, text/turtle;q=0.9, text/plain;q=0.8",
      },
      body: byId("query").value,
    });
    const type = response.headers.get("Content-Type") || "";
    const time = () => `${(performance.now() - begin).toFixed(1)} ms`;
    if (type.startsWith("application/sparql-results+json")) {
      const answer = await response.json();
      if ("boolean" in answer) byId("result").append(text(String(answer.boolean)));
      else byId("result").append(table(answer));
      const rows = answer.results ? `${answer.results.bindings.length} rows, ` : "";
      byId("status").textContent = rows + time();
    } else if (type.startsWith("application/json")) {
      const { error } = await response.json();
      byId("status").textContent = "";
      byId("result").append(text(`error: ${error.message}\n${error.hint ? `hint: ${error.hint}` : ""}`));
    } else {
      byId("result").append(text(await response.text()));
      byId("status").textContent = time();
    }
  } catch (error) {
    byId("status").textContent = `no complete response from the server: ${error}`;
  }
}

byId("form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
byId("query").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
});
fetch("/api/info").then((response) => response.json()).then((info) => {
  if (info.statements !== undefined) {
    byId("info").textContent = `${info.statements.toLocaleString()} statements, version ${info.version}`;
  }
}).catch(() => {});
