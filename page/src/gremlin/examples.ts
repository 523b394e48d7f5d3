// Traversals that say something about any data.
import type { Example } from '../language';

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Labels',
    about: 'What kinds of vertices there are, and how many of each',
    text: `g.V()
  .groupCount().by(label)
  .order(local).by(values, desc)
`,
  },
  {
    title: 'Edges',
    about: 'What connects them, and how often',
    text: `g.E()
  .groupCount().by(label)
  .order(local).by(values, desc)
`,
  },
  {
    title: 'Ten vertices',
    about: 'The first that come, with all that is known of them',
    text: `g.V()
  .limit(10)
  .elementMap()
`,
  },
  {
    title: 'Walks',
    about: 'Some ways of two edges, to see in the picture',
    text: `g.V()
  .outE().inV()
  .outE().inV()
  .path()
  .limit(40)
`,
  },
];
