// The words of Gremlin (TinkerPop 3.8), each with a short description.

/** A word and its description. */
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

/** Source steps: configuration before a traversal starts. */
export const SOURCE = words(`
  with               an option of the traversal
  withPath           remember paths
  withSack           give each traverser a value to carry
  withSideEffect     give a side effect its first value
  withStrategies     use strategies: ReadOnlyStrategy, PartitionStrategy …
  withoutStrategies  leave strategies out
`);

/** Start steps. */
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
  aggregate   collect all values in a side effect
  all         keep lists whose items all match
  and         keep values for which all traversals have results
  any         keep lists with a matching item
  as          label this position
  asBool      convert to a boolean
  asDate      convert to a date
  asNumber    convert to a number
  asString    convert to a string
  barrier     collect all traversers before continuing
  both        neighbours, along edges in both directions
  bothE       edges in both directions
  bothV       both ends of an edge
  branch      continue by the value of a traversal
  by          an argument of the step before: key, token, traversal, order
  call        call a service
  cap         the contents of a side effect
  choose      if-then-else, or a switch with option()
  coalesce    the first traversal with a result
  coin        keep with this probability
  combine     two lists, concatenated
  concat      concatenate strings
  conjoin     join a list into a string with a separator
  connectedComponent  the connected component of a vertex
  constant    replace by this value
  count       the number of results
  cyclicPath  keep paths that visit an object twice
  dateAdd     add to a date
  dateDiff    the time between two dates
  dedup       remove duplicates
  difference  items of a list that are not in another
  discard     drop all traversers
  disjunct    items that are in only one of two lists
  drop        remove elements and properties
  element     the owner of a property
  elementMap  id, label, ends and properties, as a map
  emit        inside repeat: also emit intermediate results
  fail        end with an error
  filter      keep what matches
  flatMap     all results of a traversal
  fold        collect all into one list
  format      a string with placeholders: %{name}
  from        the start of an edge or a path
  group       a map of lists by key
  groupCount  a map of counts by key
  has         keep elements with a property
  hasId       keep elements with these ids
  hasKey      keep properties with these keys
  hasLabel    keep elements with these labels
  hasNot      keep elements without this property
  hasValue    keep properties with these values
  id          the id
  identity    the value unchanged
  in          source vertices of incoming edges
  inE         incoming edges
  inV         the target vertex of an edge
  index       items with their indices
  inject      add these values
  intersect   items in both lists
  is          keep matching values
  key         the key of a property
  lTrim       remove leading white space
  label       the label
  length      the length of a string
  limit       the first n
  local       run a traversal for each value separately
  loops       inside repeat: the iteration count
  map         the first result of a traversal
  match       patterns that must all match
  math        an arithmetic expression
  max         the maximum
  mean        the average
  merge       the union of two collections
  mergeE      find an edge, or add it
  mergeV      find a vertex, or add it
  min         the minimum
  none        keep lists without a matching item
  not         keep values for which a traversal has no result
  option      a branch of branch, choose or merge
  optional    the results of a traversal, or the value unchanged
  or          keep values for which any traversal has results
  order       sort
  otherV      the other end of an edge
  out         target vertices of outgoing edges
  outE        outgoing edges
  outV        the source vertex of an edge
  pageRank    the PageRank of vertices
  path        the path of the traverser
  peerPressure  clusters of vertices
  product     all pairs of items of two lists
  profile     the time and the counts of each step
  project     a map with these keys, a traversal for each
  properties  properties, with their keys
  property    set a property
  propertyMap a map of properties by key
  rTrim       remove trailing white space
  range       results from one index to another
  repeat      loop over a traversal
  replace     replace parts of a string
  reverse     reverse
  sack        the traverser's sack
  sample      a random sample
  select      values of labelled positions
  shortestPath  shortest paths
  sideEffect  run a traversal for its side effects
  simplePath  keep paths without repeated objects
  skip        all but the first n
  split       split a string
  store       collect values lazily in a side effect
  subgraph    collect edges as a graph
  substring   a part of a string
  sum         the sum
  tail        the last n
  timeLimit   stop after this many milliseconds
  times       of repeat: the number of iterations
  to          the end of an edge or a path
  toE         edges in a direction
  toLower     convert to lower case
  toUpper     convert to upper case
  toV         an end of an edge
  tree        the paths as a tree
  trim        remove surrounding white space
  unfold      the items of a collection
  union       the results of several traversals
  until       of repeat: the end condition
  value       the value of a property
  valueMap    a map of lists of values by key
  values      the values of properties
  where       keep what matches a labelled value
  with        an option of the step before
`);

/** Terminal steps. */
export const TERMINALS = words(`
  explain    the steps as planned, without running them
  hasNext    whether there is a result
  iterate    run, without results
  next       the first result, or the first n
  toList     all results as one list
  toSet      all results as one set
  toBulkSet  all results with their counts
  tryNext    the first result, if there is one
  toString   the traversal as a string
`);

export const PREDICATES = words(`
  between            from the first (inclusive) to the second (exclusive)
  eq                 equal
  gt                 greater
  gte                greater or equal
  inside             between the two, exclusive
  lt                 less
  lte                less or equal
  neq                not equal
  not                negation
  outside            below the first, or above the second
  typeOf             of this type
  within             one of these
  without            none of these
  containing         a string that contains this
  endingWith         a string that ends with this
  notContaining      a string that does not contain this
  notEndingWith      a string that does not end with this
  notRegex           a string that does not match this
  notStartingWith    a string that does not begin with this
  regex              a string that matches this
  startingWith       a string that begins with this
`);

/** Enumerations, by name; most of their members may be used unqualified. */
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

/** What the string arguments of a step name. */
export type Takes = 'label' | 'edge' | 'key' | 'mark';

const all = (takes: Takes, steps: string): [string, Takes][] => steps.split(' ').map((step) => [step, takes]);

/** By step; `mark`: a name defined by `as`, `aggregate` or another step. */
export const TAKES: ReadonlyMap<string, Takes> = new Map([
  ...all('label', 'addV hasLabel'),
  ...all('edge', 'out in both outE inE bothE toE addE'),
  ...all('key', 'has hasNot hasKey values valueMap elementMap properties propertyMap property by'),
  ...all('mark', 'select where from to cap dedup path'),
]);

/** Steps whose string arguments define names. */
export const MARKS: ReadonlySet<string> = new Set('as aggregate store group groupCount subgraph tree withSideEffect project'.split(' '));
