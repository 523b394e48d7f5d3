//! Activity of persons: forums, posts, replies and likes, generated person by person.
//!
//! Walls and groups contain texts with replies; albums contain photos, which have only likes.

use super::distributions::{DAY, END, HOUR, Purpose, between, geometric, later, random, skewed};
use super::files::Files;
use super::people::{People, Person};
use super::statistics::SnbStatistics;
use super::world::World;
use crate::Random;
use std::io;

/// Maximum number of members of a group.
const GROUP_MEMBERS_MAX: u32 = 64;
/// Maximum length of a text, in words.
const WORDS_MAX: u32 = 40;

const WORDS: [&str; 24] = [
    "about", "and", "as", "before", "first", "from", "great", "history", "in", "known", "later", "life",
    "many", "music", "of", "one", "part", "people", "same", "season", "than", "the", "world", "year",
];
const SHORT: [&str; 8] = ["yes", "no", "ok", "thanks", "great", "good", "maybe", "I see"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Wall,
    Album,
    Group,
}

/// A message that can have replies and likes.
struct Message {
    id: u64,
    created: i64,
    author: u32,
    is_post: bool,
    tags: Vec<u32>,
}

/// Writes the forums of all persons and their content.
pub(super) fn write(
    people: &People,
    world: &World,
    files: &mut Files,
    statistics: &mut SnbStatistics,
) -> io::Result<()> {
    let mut writer = Forums { people, world, files, statistics, forums: 0, messages: 0, text: String::new() };
    for owner in 0..u32::try_from(people.all.len()).unwrap_or(u32::MAX) {
        let mut random = random(people.seed, Purpose::Forums, u64::from(owner));
        writer.forum(Kind::Wall, owner, &mut random)?;
        let albums = if random.below(100) < 47 { random.below(35) } else { 0 };
        for _ in 0..albums {
            writer.forum(Kind::Album, owner, &mut random)?;
        }
        if random.below(1000) < 86 {
            writer.forum(Kind::Group, owner, &mut random)?;
        }
    }
    Ok(())
}

struct Forums<'a, 'f> {
    people: &'a People,
    world: &'a World,
    files: &'f mut Files,
    statistics: &'f mut SnbStatistics,
    /// Number of forums so far, which is the next id.
    forums: u64,
    /// Number of posts and comments so far.
    messages: u64,
    text: String,
}

impl Forums<'_, '_> {
    fn forum(&mut self, kind: Kind, owner: u32, random: &mut Random) -> io::Result<()> {
        let person = self.people.all[owner as usize];
        let created = match kind {
            Kind::Wall => Some(person.created + 10_000),
            _ => between(random, person.created + 10_000, END - 10 * DAY),
        };
        let Some(created) = created else { return Ok(()) };
        let id = self.forums;
        self.forums += 1;
        self.statistics.forums += 1;
        let interests = self.people.interests(owner, self.world);
        let title = match kind {
            Kind::Wall => format!("Wall of {}", self.world.name(owner)),
            Kind::Album => format!("Album {id} of {}", self.world.name(owner)),
            Kind::Group => format!("Group for {}", self.world.tag_name(person.interest)),
        };
        self.files.row("forum", format_args!("{id}|{title}|{created}"))?;
        self.files.row("forum_hasModerator_person", format_args!("{id}|{owner}"))?;
        let tags = some_of(&interests, 1 + geometric(random, 4.5, 16), random);
        for tag in &tags {
            self.files.row("forum_hasTag_tag", format_args!("{id}|{tag}"))?;
        }
        let members = self.members(kind, owner, created, random);
        for (member, joined) in &members {
            self.files.row("forum_hasMember_person", format_args!("{id}|{member}|{joined}"))?;
        }
        self.statistics.members += members.len() as u64;
        let mean = members.len() as f64;
        let posts = match kind {
            Kind::Wall => geometric(random, mean * 0.72, 500),
            Kind::Album => random.between(0..=20),
            Kind::Group => geometric(random, mean * 0.6, 500),
        };
        let mut at = created;
        for _ in 0..posts {
            let is_owners = kind == Kind::Album || members.is_empty() || random.below(100) < 50;
            let (author, joined) = if is_owners { (owner, created) } else { *random.pick(&members) };
            let next = match kind {
                // Photos of an album are posted together.
                Kind::Album => Some(at + 1000).filter(|time| *time < END),
                _ => between(random, joined.max(created), END),
            };
            let Some(time) = next else { continue };
            at = time;
            self.post(kind, id, author, time, &tags, &members, random)?;
        }
        Ok(())
    }

    /// Members of a forum with their joining times, without the owner.
    fn members(&self, kind: Kind, owner: u32, created: i64, random: &mut Random) -> Vec<(u32, i64)> {
        let friends = &self.people.friends[owner as usize];
        let mut members: Vec<(u32, i64)> = Vec::new();
        let join = |member: u32, since: i64, random: &mut Random| {
            between(random, since.max(created), END).map(|joined| (member, joined))
        };
        match kind {
            Kind::Wall | Kind::Album => {
                let of_hundred = if kind == Kind::Wall { 77 } else { 34 };
                for &friend in friends.iter().filter(|_| random.below(100) < of_hundred).collect::<Vec<_>>() {
                    members.extend(join(friend, self.people.since(owner, friend), random));
                }
            }
            Kind::Group => {
                let count = u32::try_from(self.people.all.len()).unwrap_or(u32::MAX);
                for _ in 0..random.between(1..=GROUP_MEMBERS_MAX - 20) {
                    // A friend, a friend of a friend, or a random person.
                    let mut member = owner;
                    for _ in 0..random.between(1..=2) {
                        let known = &self.people.friends[member as usize];
                        member = if known.is_empty() { random.below(count) } else { *random.pick(known) };
                    }
                    if member != owner && !members.iter().any(|(other, _)| *other == member) {
                        members.extend(join(member, self.people.all[member as usize].created, random));
                    }
                }
            }
        }
        members
    }

    #[expect(clippy::too_many_arguments, reason = "a post depends on all of these")]
    fn post(
        &mut self,
        kind: Kind,
        forum: u64,
        author: u32,
        created: i64,
        forum_tags: &[u32],
        members: &[(u32, i64)],
        random: &mut Random,
    ) -> io::Result<()> {
        let person = self.people.all[author as usize];
        let id = self.next_message();
        let (address, browser) = (person.address(), person.browser());
        let mut tags = Vec::new();
        if kind == Kind::Album {
            self.files.row("post", format_args!("{id}|photo{id}.jpg|{created}|{address}|{browser}|||0"))?;
        } else {
            tags = some_of(forum_tags, 1 + geometric(random, 2.0, 8), random);
            self.add_tags(&mut tags, 2.0, &person, random);
            let length = self.write_text(&tags, random);
            let (language, text) = (person.language(), &self.text);
            self.files.row(
                "post",
                format_args!("{id}||{created}|{address}|{browser}|{language}|{text}|{length}"),
            )?;
        }
        self.statistics.posts += 1;
        self.files.row("post_hasCreator_person", format_args!("{id}|{author}"))?;
        self.files.row("forum_containerOf_post", format_args!("{forum}|{id}"))?;
        let place = place(&person, random);
        self.files.row("post_isLocatedIn_place", format_args!("{id}|{place}"))?;
        for tag in &tags {
            self.files.row("post_hasTag_tag", format_args!("{id}|{tag}"))?;
        }
        let post = Message { id, created, author, is_post: true, tags };
        // A few messages have likes, some of those very many.
        let of_hundred = if kind == Kind::Album { 6 } else { 25 };
        if random.below(100) < of_hundred {
            let mean = if random.below(100) < 70 { 4.0 } else { 40.0 };
            let likes = if random.below(100) < 55 { 1 } else { 1 + geometric(random, mean, 1_000) };
            self.likes(&post, likes, random)?;
        }
        if kind != Kind::Album && !members.is_empty() {
            self.replies(post, members, random)?;
        }
        Ok(())
    }

    /// A tree of comments below a post: about half of them reply to the post, the others to a comment.
    fn replies(&mut self, post: Message, members: &[(u32, i64)], random: &mut Random) -> io::Result<()> {
        let count =
            if random.below(100) < 6 { 0 } else { random.between(2..=6) + geometric(random, 6.5, 60) };
        let mut thread = vec![post];
        for _ in 0..count {
            let at = if random.below(100) < 42 || thread.len() == 1 {
                0
            } else {
                1 + random.index(thread.len() - 1)
            };
            let (author, joined) = *random.pick(members);
            let parent = &thread[at];
            let Some(created) = later(random, parent.created.max(joined), 3 * HOUR) else { continue };
            let (parent_id, parent_is_post, parent_author) = (parent.id, parent.is_post, parent.author);
            if parent_author == author && random.below(4) > 0 {
                continue;
            }
            let tags = match random.below(3) {
                0 => {
                    let mut tags = some_of(&parent.tags, 1 + geometric(random, 1.5, 5), random);
                    self.add_tags(&mut tags, 3.2, &self.people.all[author as usize], random);
                    tags
                }
                _ => Vec::new(),
            };
            let comment = self.comment(author, created, tags, random)?;
            let file = if parent_is_post { "comment_replyOf_post" } else { "comment_replyOf_comment" };
            self.files.row(file, format_args!("{}|{parent_id}", comment.id))?;
            if random.below(1000) < 48 {
                let mean = if random.once_in(2) { 8.0 } else { 60.0 };
                let likes = if random.below(100) < 50 { 1 } else { 1 + geometric(random, mean, 1_000) };
                self.likes(&comment, likes, random)?;
            }
            thread.push(comment);
        }
        Ok(())
    }

    fn comment(
        &mut self,
        author: u32,
        created: i64,
        tags: Vec<u32>,
        random: &mut Random,
    ) -> io::Result<Message> {
        let person = self.people.all[author as usize];
        let id = self.next_message();
        let length = self.write_text(&tags, random);
        let (address, browser, text) = (person.address(), person.browser(), &self.text);
        self.files.row("comment", format_args!("{id}|{created}|{address}|{browser}|{text}|{length}"))?;
        self.statistics.comments += 1;
        self.files.row("comment_hasCreator_person", format_args!("{id}|{author}"))?;
        let place = place(&person, random);
        self.files.row("comment_isLocatedIn_place", format_args!("{id}|{place}"))?;
        for tag in &tags {
            self.files.row("comment_hasTag_tag", format_args!("{id}|{tag}"))?;
        }
        Ok(Message { id, created, author, is_post: false, tags })
    }

    /// Likes of a message by distinct friends of the author, after its creation.
    fn likes(&mut self, message: &Message, count: u32, random: &mut Random) -> io::Result<()> {
        let friends = &self.people.friends[message.author as usize];
        let first = random.index(friends.len());
        for at in 0..(count as usize).min(friends.len()) {
            let friend = friends[(first + at) % friends.len()];
            let joined = self.people.all[friend as usize].created;
            let Some(time) = later(random, message.created.max(joined), DAY) else { continue };
            let file = if message.is_post { "person_likes_post" } else { "person_likes_comment" };
            self.files.row(file, format_args!("{friend}|{}|{time}", message.id))?;
            self.statistics.likes += 1;
        }
        Ok(())
    }

    /// Adds tags popular in the country of the person, `mean` on average.
    fn add_tags(&self, tags: &mut Vec<u32>, mean: f64, person: &Person, random: &mut Random) {
        for _ in 0..geometric(random, mean, 12) {
            let tag = self.world.tag(person.country, random);
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }

    fn next_message(&mut self) -> u64 {
        self.messages += 1;
        self.messages - 1
    }

    /// Generates a text, about the first tag if there is one; returns its length in characters.
    fn write_text(&mut self, tags: &[u32], random: &mut Random) -> usize {
        self.text.clear();
        match tags.first() {
            None => self.text.push_str(random.pick::<&str>(&SHORT)),
            Some(tag) => {
                self.text.push_str("About ");
                self.text.push_str(&self.world.tag_name(*tag));
                for _ in 0..random.between(3..=WORDS_MAX) {
                    self.text.push(' ');
                    self.text.push_str(random.pick::<&str>(&WORDS));
                }
            }
        }
        self.text.chars().count()
    }
}

/// Location of a message: mostly the home country.
fn place(person: &Person, random: &mut Random) -> u32 {
    if random.once_in(12) { World::any_country(random) } else { person.country }
}

/// `count` distinct tags of the list, earlier ones more likely.
fn some_of(tags: &[u32], count: u32, random: &mut Random) -> Vec<u32> {
    let mut some = Vec::new();
    for _ in 0..count {
        if let Some(&tag) = tags.get(skewed(random, tags.len(), 2))
            && !some.contains(&tag)
        {
            some.push(tag);
        }
    }
    some
}
