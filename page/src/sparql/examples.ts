// Example queries that work on any data.
import type { Example } from '../language';

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Classes',
    about: 'Classes, and the number of their instances',
    text: `SELECT ?class (COUNT(*) AS ?vertices)
WHERE {
  ?vertex a ?class
}
GROUP BY ?class
ORDER BY DESC(?vertices)
LIMIT 100
`,
  },
  {
    title: 'Predicates',
    about: 'Predicates, and the number of their statements',
    text: `SELECT ?predicate (COUNT(*) AS ?statements)
WHERE {
  ?subject ?predicate ?object
}
GROUP BY ?predicate
ORDER BY DESC(?statements)
LIMIT 100
`,
  },
  {
    title: 'Ten statements',
    about: 'Ten arbitrary statements',
    text: `SELECT ?subject ?predicate ?object
WHERE {
  ?subject ?predicate ?object
}
LIMIT 10
`,
  },
  {
    title: 'A picture',
    about: 'Some vertices and their edges, drawn as a graph',
    text: `CONSTRUCT {
  ?a ?first ?b .
  ?b ?second ?c
}
WHERE {
  ?a ?first ?b .
  ?b ?second ?c
  FILTER(isIRI(?b) && isIRI(?c))
}
LIMIT 40
`,
  },
];

/** For an empty database. */
export const FIRST_DATA: Example = {
  title: 'Write some data',
  about: 'Two persons who know each other, as an update',
  text: `PREFIX key: <urn:vervet:key:>
PREFIX label: <urn:vervet:label:>

INSERT DATA {
  <urn:ann> a label:person ; key:name "Ann" ; key:knows <urn:bob> .
  <urn:bob> a label:person ; key:name "Bob"
}
`,
};
