//! The enumerations of the language.

macro_rules! tokens {
    ($($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident = $text:literal),+ $(,)? })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            pub enum $name { $($(#[$member_doc])* $member),+ }

            impl $name {
                /// All members, in the order of the language.
                pub const ALL: &[Self] = &[$(Self::$member),+];

                /// The name in gremlin-lang.
                #[must_use]
                pub const fn name(self) -> &'static str {
                    match self { $(Self::$member => $text),+ }
                }

                /// Looks up a member by name.
                #[must_use]
                pub fn from_name(name: &str) -> Option<Self> {
                    match name { $($text => Some(Self::$member),)+ _ => None }
                }
            }
        )+

        /// A member of any enumeration.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Token {
            $(
                #[doc = concat!("A member of [`", stringify!($name), "`].")]
                $name($name)
            ),+
        }

        impl Token {
            /// The name of the enumeration: `T`, `Order`.
            #[must_use]
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name)),+ }
            }

            /// The name of the member: `id`, `desc`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name(member) => member.name()),+ }
            }

            /// The member `name` of the enumeration `kind`.
            #[must_use]
            pub fn from_names(kind: &str, name: &str) -> Option<Self> {
                match kind {
                    $(stringify!($name) => $name::from_name(name).map(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

tokens! {
    /// Tokens of an element: parts that are not properties.
    T {
        /// `T.id`
        Id = "id",
        /// `T.label`
        Label = "label",
        /// `T.key`
        Key = "key",
        /// `T.value`
        Value = "value",
    }
    /// Directions of an edge from a vertex.
    Direction {
        /// `Direction.OUT`, also `from`
        Out = "OUT",
        /// `Direction.IN`, also `to`
        In = "IN",
        /// `Direction.BOTH`
        Both = "BOTH",
    }
    /// `order().by(…, Order)`
    Order {
        /// Random order.
        Shuffle = "shuffle",
        /// Ascending.
        Asc = "asc",
        /// Descending.
        Desc = "desc",
    }
    /// Scope of a reduction: all traversers, or the collection of each.
    Scope {
        /// Across all traversers.
        Global = "global",
        /// Within the value of each traverser.
        Local = "local",
    }
    /// Selection among the objects with one label.
    Pop {
        /// The first.
        First = "first",
        /// The last.
        Last = "last",
        /// A list of all.
        All = "all",
        /// A single object as is, several as a list.
        Mixed = "mixed",
    }
    /// Special pick tokens of `choose` and `branch`.
    Pick {
        /// Every value.
        Any = "any",
        /// Values without another matching branch.
        None = "none",
        /// Traversers for which the choice is unproductive.
        Unproductive = "unproductive",
    }
    /// Columns of a map.
    Column {
        /// The keys.
        Keys = "keys",
        /// The values.
        Values = "values",
    }
    /// Cardinality of a property.
    Cardinality {
        /// A new value replaces the existing values.
        Single = "single",
        /// A new value is added unless an equal one exists.
        Set = "set",
        /// A new value is added.
        List = "list",
    }
    /// Binary operators for `fold`, sacks and side effects.
    Operator {
        /// Addition.
        Sum = "sum",
        /// Subtraction.
        Minus = "minus",
        /// Multiplication.
        Mult = "mult",
        /// Division.
        Div = "div",
        /// The minimum.
        Min = "min",
        /// The maximum.
        Max = "max",
        /// The second operand.
        Assign = "assign",
        /// Logical and.
        And = "and",
        /// Logical or.
        Or = "or",
        /// The union or concatenation of both collections.
        AddAll = "addAll",
        /// Addition of counts.
        SumLong = "sumLong",
    }
    /// Sack operations of a barrier.
    Barrier {
        /// `normSack`: normalizes the sum of the sacks to 1.
        NormSack = "normSack",
    }
    /// Options of `mergeV` and `mergeE`.
    Merge {
        /// Properties of a new element.
        OnCreate = "onCreate",
        /// Updates of an existing element.
        OnMatch = "onMatch",
        /// The source of the edge.
        OutV = "outV",
        /// The target of the edge.
        InV = "inV",
    }
    /// Units of `dateAdd`.
    TimeUnit {
        /// `DT.second`
        Second = "second",
        /// `DT.minute`
        Minute = "minute",
        /// `DT.hour`
        Hour = "hour",
        /// `DT.day`
        Day = "day",
    }
    /// Type names of `typeOf` and `asNumber`.
    GType {
        /// Arbitrary precision decimals.
        BigDecimal = "BIGDECIMAL",
        /// Arbitrary precision integers.
        BigInt = "BIGINT",
        /// Raw bytes.
        Binary = "BINARY",
        /// Truth values.
        Boolean = "BOOLEAN",
        /// 8-bit integers.
        Byte = "BYTE",
        /// Characters.
        Char = "CHAR",
        /// Date-times with an offset.
        DateTime = "DATETIME",
        /// 64-bit floating point numbers.
        Double = "DOUBLE",
        /// Durations.
        Duration = "DURATION",
        /// Edges.
        Edge = "EDGE",
        /// 32-bit floating point numbers.
        Float = "FLOAT",
        /// Graphs.
        Graph = "GRAPH",
        /// 32-bit integers.
        Int = "INT",
        /// Lists.
        List = "LIST",
        /// 64-bit integers.
        Long = "LONG",
        /// Maps.
        Map = "MAP",
        /// No value.
        Null = "NULL",
        /// Any number.
        Number = "NUMBER",
        /// Paths.
        Path = "PATH",
        /// Properties of edges and of vertex properties.
        Property = "PROPERTY",
        /// Sets.
        Set = "SET",
        /// 16-bit integers.
        Short = "SHORT",
        /// Strings.
        String = "STRING",
        /// Trees.
        Tree = "TREE",
        /// Universally unique identifiers.
        Uuid = "UUID",
        /// Vertices.
        Vertex = "VERTEX",
        /// Vertex properties.
        VertexProperty = "VPROPERTY",
    }
}
