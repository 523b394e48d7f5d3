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

                /// Its name as the language has it.
                #[must_use]
                pub const fn name(self) -> &'static str {
                    match self { $(Self::$member => $text),+ }
                }

                /// The member with this name.
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
    /// Parts of an element that are no properties.
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
    /// Ends of an edge.
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
        /// In no order.
        Shuffle = "shuffle",
        /// Ascending.
        Asc = "asc",
        /// Descending.
        Desc = "desc",
    }
    /// Over all traversers, or inside each.
    Scope {
        /// Over all traversers.
        Global = "global",
        /// Inside each traverser.
        Local = "local",
    }
    /// Which of the objects with one label `select` takes.
    Pop {
        /// The first.
        First = "first",
        /// The last.
        Last = "last",
        /// A list of all.
        All = "all",
        /// One as it is, several as a list.
        Mixed = "mixed",
    }
    /// Branches of `choose` and `branch` that no value names.
    Pick {
        /// Every value.
        Any = "any",
        /// Values that no other branch takes.
        None = "none",
        /// Traversers whose choice gives nothing.
        Unproductive = "unproductive",
    }
    /// Parts of a map.
    Column {
        /// Its keys.
        Keys = "keys",
        /// Its values.
        Values = "values",
    }
    /// What a further value of a property does.
    Cardinality {
        /// It replaces the values that are there.
        Single = "single",
        /// It comes beside them unless it is there.
        Set = "set",
        /// It comes beside them.
        List = "list",
    }
    /// Ways to put two values together: `fold`, sacks, side effects.
    Operator {
        /// Addition.
        Sum = "sum",
        /// Subtraction.
        Minus = "minus",
        /// Multiplication.
        Mult = "mult",
        /// Division.
        Div = "div",
        /// The lesser one.
        Min = "min",
        /// The greater one.
        Max = "max",
        /// The new one.
        Assign = "assign",
        /// Logical and.
        And = "and",
        /// Logical or.
        Or = "or",
        /// All of both collections.
        AddAll = "addAll",
        /// All of both, with counts.
        SumLong = "sumLong",
    }
    /// What a barrier does with sacks.
    Barrier {
        /// `normSack`: their sum is 1 afterwards.
        NormSack = "normSack",
    }
    /// Parts of `mergeV` and `mergeE`.
    Merge {
        /// What a new element gets.
        OnCreate = "onCreate",
        /// What an element that is there gets.
        OnMatch = "onMatch",
        /// The start of the edge.
        OutV = "outV",
        /// The end of the edge.
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
    /// Types that `typeOf` and `asNumber` name.
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
        /// Times with an offset.
        DateTime = "DATETIME",
        /// 64-bit floating point numbers.
        Double = "DOUBLE",
        /// Lengths of time.
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
        /// Properties.
        Property = "PROPERTY",
        /// Sets.
        Set = "SET",
        /// 16-bit integers.
        Short = "SHORT",
        /// Texts.
        String = "STRING",
        /// Trees.
        Tree = "TREE",
        /// Universally unique identifiers.
        Uuid = "UUID",
        /// Vertices.
        Vertex = "VERTEX",
        /// Properties of vertices.
        VertexProperty = "VPROPERTY",
    }
}
