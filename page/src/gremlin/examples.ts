// Example traversals that work on any data.
import type { Example } from '../language';

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Labels',
    about: 'Labels of vertices, and the number of vertices of each',
    text: `g.V()
  .groupCount().by(label)
  .order(local).by(values, desc)
`,
  },
  {
    title: 'Edges',
    about: 'Labels of edges, and the number of edges of each',
    text: `g.E()
  .groupCount().by(label)
  .order(local).by(values, desc)
`,
  },
  {
    title: 'Ten vertices',
    about: 'Ten arbitrary vertices, with all their properties',
    text: `g.V()
  .limit(10)
  .elementMap()
`,
  },
  {
    title: 'Walks',
    about: 'Some paths of two edges, for the picture',
    text: `g.V()
  .outE().inV()
  .outE().inV()
  .path()
  .limit(40)
`,
  },
];

/** For an empty database. */
export const FIRST_DATA: Example = {
  title: 'Write some data',
  about: 'Two persons who know each other',
  text: `g.addV('person').property('name', 'Ann').as('ann')
  .addV('person').property('name', 'Bob').as('bob')
  .addE('knows').from('ann').to('bob')
`,
};
