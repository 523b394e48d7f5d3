// The words of Gremlin (the language of TinkerPop 3.8), with what they do in a few words.

/** A word and what it does. */
export type Word = readonly [name: string, does: string];

function words(text: string): readonly Word[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [, name = '', does = ''] = /^\s*(\S+)\s*(.*)$/.exec(line) ?? [];
      return [name, does] as const;
    });
}

/** What is said of a source before its traversal starts. */
export const SOURCE = words(`
  with               an option of the traversal
  withPath           remember paths
  withSack           give each traverser a value to carry
  withSideEffect     give a side effect its first value
  withStrategies     use strategies: ReadOnlyStrategy, PartitionStrategy …
  withoutStrategies  leave strategies out
`);

/** What starts a traversal. */
export const STARTS = words(`
  V       vertices: all, or those with these ids
  E       edges: all, or those with these ids
  addV    add a vertex
  addE    add an edge
  mergeV  find a vertex, or add it
  mergeE  find an edge, or add it
  inject  start with these values
  union   the results of several traversals
  call    call a service
`);

export const STEPS = words(`
  V           vertices, for each traverser
  E           edges, for each traverser
  addE        add an edge
  addV        add a vertex
  aggregate   collect what comes by in a side effect
  all         keep lists whose items all fit
  and         keep what all traversals find something for
  any         keep lists of which an item fits
  as          give this place a name
  asBool      as a truth value
  asDate      as a date
  asNumber    as a number
  asString    as a text
  barrier     wait for all that come
  both        neighbours, along edges in both directions
  bothE       edges in both directions
  bothV       both ends of an edge
  branch      go on by the value of a traversal
  by          how the step before does it: key, token, traversal, order
  call        call a service
  cap         what a side effect has collected
  choose      one way or the other
  coalesce    the first traversal that finds something
  coin        keep with this probability
  combine     two lists one behind the other
  concat      texts one behind the other
  conjoin     a list as one text, with this between its items
  connectedComponent  the component that a vertex is in
  constant    this value
  count       how many there are
  cyclicPath  keep paths that come back to a place
  dateAdd     a later date
  dateDiff    the time between two dates
  dedup       each once
  difference  items of a list that another lacks
  discard     nothing goes on
  disjunct    items that only one of two lists has
  drop        remove elements and properties
  element     what a property belongs to
  elementMap  id, label, ends and properties, as a map
  emit        inside of repeat: what to give out on the way
  fail        end with an error
  filter      keep what fits
  flatMap     all that a traversal finds
  fold        all of them as one list
  format      a text with values in it: %{name}
  from        where an edge or a path starts
  group       a map of lists by key
  groupCount  a map of counts by key
  has         keep elements with a property
  hasId       keep elements with these ids
  hasKey      keep properties with these keys
  hasLabel    keep elements with these labels
  hasNot      keep elements without this property
  hasValue    keep properties with these values
  id          the id
  identity    the same again
  in          neighbours that edges come from
  inE         edges that come in
  inV         the vertex that an edge leads to
  index       items with their numbers
  inject      these values too
  intersect   items that two lists share
  is          keep values that fit
  key         the key of a property
  lTrim       a text without spaces at its start
  label       the label
  length      how long a text is
  limit       the first so many
  local       a traversal for each one alone
  loops       inside of repeat: the round
  map         the first that a traversal finds
  match       patterns that must hold together
  math        a formula
  max         the largest
  mean        the average
  merge       two collections as one, each once
  mergeE      find an edge, or add it
  mergeV      find a vertex, or add it
  min         the smallest
  none        keep lists of which no item fits
  not         keep what a traversal finds nothing for
  option      a way of branch, choose or merge
  optional    what a traversal finds, or the same again
  or          keep what one of the traversals finds something for
  order       in order
  otherV      the end of an edge that one does not come from
  out         neighbours that edges lead to
  outE        edges that go out
  outV        the vertex that an edge starts at
  pageRank    the PageRank of vertices
  path        the way from the start to here
  peerPressure  clusters of vertices
  product     all pairs of two lists
  profile     what each step did, and how long it took
  project     a map with these keys, a traversal for each
  properties  properties, with their keys
  property    set a property
  propertyMap a map of properties by key
  rTrim       a text without spaces at its end
  range       from the one to the other
  repeat      a traversal, again and again
  replace     a text with a part replaced
  reverse     back to front
  sack        what the traverser carries
  sample      some, by chance
  select      what was named before
  shortestPath  shortest paths
  sideEffect  a traversal beside
  simplePath  keep paths without a place twice
  skip        all but the first so many
  split       a text in parts
  store       collect what comes by
  subgraph    collect edges as a graph
  substring   a part of a text
  sum         the sum
  tail        the last so many
  timeLimit   stop after so many milliseconds
  times       of repeat: how often
  to          where an edge or a path ends
  toE         edges in a direction
  toLower     in small letters
  toUpper     in capital letters
  toV         an end of an edge
  tree        the paths as a tree
  trim        a text without spaces around it
  unfold      the items of a collection
  union       the results of several traversals
  until       of repeat: when to stop
  value       the value of a property
  valueMap    a map of lists of values by key
  values      the values of properties
  where       keep what fits to what was named before
  with        an option of the step before
`);

/** What ends a traversal. */
export const TERMINALS = words(`
  explain    the steps as they will run, without running them
  hasNext    whether there is a result
  iterate    run, without results
  next       the first result, or the first so many
  toList     all results as one list
  toSet      all results as one set
  toBulkSet  all results with their counts
  tryNext    the first result, if there is one
  toString   the traversal as a text
`);

export const PREDICATES = words(`
  between            from the one, below the other
  eq                 equal
  gt                 above
  gte                equal or above
  inside             between the two, without them
  lt                 below
  lte                equal or below
  neq                not equal
  not                not that
  outside            below the one, or above the other
  typeOf             of this type
  within             one of these
  without            none of these
  containing         a text with this in it
  endingWith         a text that ends with this
  notContaining      a text without this in it
  notEndingWith      a text that does not end with this
  notRegex           a text that does not match this
  notStartingWith    a text that does not begin with this
  regex              a text that matches this
  startingWith       a text that begins with this
`);

/** Enumerations, by their names; most of their members may stand alone. */
export const MEMBERS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    T: 'id label key value',
    Order: 'asc desc shuffle',
    Scope: 'local global',
    Column: 'keys values',
    Pop: 'first last all mixed',
    Direction: 'IN OUT BOTH',
    Cardinality: 'single list set',
    Merge: 'onCreate onMatch outV inV',
    Operator: 'sum minus mult div min max assign and or addAll sumLong',
    Pick: 'any none unproductive',
    Barrier: 'normSack',
    DT: 'second minute hour day',
  }).map(([name, members]) => [name, members.split(' ')] as const),
);

const names = (...lists: (readonly Word[])[]): ReadonlySet<string> => new Set(lists.flat().map(([name]) => name));

export const SOURCE_NAMES = names(SOURCE);
export const STEP_NAMES = names(SOURCE, STARTS, STEPS, TERMINALS);
export const TERMINAL_NAMES = names(TERMINALS);
export const PREDICATE_NAMES = names(PREDICATES);
export const MEMBER_NAMES: ReadonlySet<string> = new Set([...MEMBERS.values()].flat());

/** Steps that change the graph. */
export const WRITES: ReadonlySet<string> = new Set('addV addE mergeV mergeE property drop'.split(' '));

/** What the texts in a step's brackets are names of. */
export type Takes = 'label' | 'edge' | 'key' | 'mark';

const all = (takes: Takes, steps: string): [string, Takes][] => steps.split(' ').map((step) => [step, takes]);

/** By step; `mark`: a name that `as`, `aggregate` or another step gives. */
export const TAKES: ReadonlyMap<string, Takes> = new Map([
  ...all('label', 'addV hasLabel'),
  ...all('edge', 'out in both outE inE bothE toE addE'),
  ...all('key', 'has hasNot hasKey values valueMap elementMap properties propertyMap property by'),
  ...all('mark', 'select where from to cap dedup path'),
]);

/** Steps whose texts are names for later. */
export const MARKS: ReadonlySet<string> = new Set('as aggregate store group groupCount subgraph tree withSideEffect project'.split(' '));
