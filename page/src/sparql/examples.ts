// Queries that say something about any data.
import type { Example } from '../language';

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Classes',
    about: 'What kinds of things there are, and how many of each',
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
    about: 'What is said about them, and how often',
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
    about: 'The first that come',
    text: `SELECT ?subject ?predicate ?object
WHERE {
  ?subject ?predicate ?object
}
LIMIT 10
`,
  },
  {
    title: 'A picture',
    about: 'Some vertices and what connects them, drawn as a graph',
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
