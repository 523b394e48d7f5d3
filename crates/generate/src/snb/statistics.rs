//! Counts of what was generated.

/// Statistics of [`generate_snb`](crate::generate_snb).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SnbStatistics {
    /// Pairs of persons that know each other.
    pub knows: u64,
    /// Forums.
    pub forums: u64,
    /// Members of forums.
    pub members: u64,
    /// Posts.
    pub posts: u64,
    /// Comments.
    pub comments: u64,
    /// Likes of posts and of comments.
    pub likes: u64,
}
