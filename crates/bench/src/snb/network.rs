//! The files of a social network: CSV with typed headers, one for each kind of vertex and of edge.
//!
//! # Shape
//! Archives in other layouts are converted: continuation files are appended, dates of the form
//! `20120601000000000` become milliseconds since 1970, and untyped headers get types. So the database and the
//! peer read the same files, and the queries of the conformance suite apply.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use vervet::{Database, Format, LoadOptions, Source};
use vervet_generate::Random;
use vervet_model::{Error, ErrorKind, Result};

/// See the header of this file.
#[derive(Clone, Debug)]
pub struct Network {
    name: String,
    files: Vec<(String, String)>,
}

/// Types of columns with untyped headers.
const TYPES: [(&str, &str); 10] = [
    ("id", "LONG"),
    ("birthday", "LONG"),
    ("creationDate", "LONG"),
    ("joinDate", "LONG"),
    ("length", "INT"),
    ("classYear", "INT"),
    ("workFrom", "INT"),
    ("language", "STRING[]"),
    ("email", "STRING[]"),
    ("", "STRING"),
];

impl Network {
    /// The files of an archive (`.tar.zst`); if it has several layouts, those below `vanilla/`.
    ///
    /// # Errors
    /// The archive cannot be read, or contains no files of a network.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| Error::io(format_args!("read {}", path.display()), &error);
        let packed = File::open(path).map_err(failed)?;
        let mut archive = tar::Archive::new(zstd::Decoder::new(packed).map_err(failed)?);
        let mut found = Vec::new();
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let inside = entry.path().map_err(failed)?.to_string_lossy().into_owned();
            if inside.ends_with(".csv") {
                let mut text = String::new();
                entry.read_to_string(&mut text).map_err(failed)?;
                found.push((inside, text));
            }
        }
        if found.iter().any(|(name, _)| name.contains("vanilla/")) {
            found.retain(|(name, _)| name.contains("vanilla/"));
        }
        // A file continues the previous one of the same name.
        found.sort();
        let mut files: Vec<(String, String)> = Vec::new();
        for (inside, text) in found {
            let (name, header) = named(&inside, &text)?;
            let rows = match &header {
                Some(_) => text.split_once('\n').map_or("", |(_, rows)| rows),
                None => text.as_str(),
            };
            if files.last().is_none_or(|(last, _)| *last != name) {
                let header = header
                    .ok_or_else(|| input(format!("{inside} has no header and continues no other file")))?;
                files.push((name, header + "\n"));
            }
            let Some((_, whole)) = files.last_mut() else { continue };
            append(whole, rows);
        }
        if files.is_empty() {
            return Err(input(format!("{} has no CSV files", path.display())));
        }
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self { name, files })
    }

    /// A generated network with `persons` persons, the same each time: for a self-check.
    #[must_use]
    pub fn made(persons: u32) -> Self {
        Self { name: format!("{persons} made persons"), files: made(persons.max(2)) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Vertices and edges.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|(_, text)| text.lines().skip(1).count() as u64).sum()
    }

    /// Loads all files.
    ///
    /// # Errors
    /// The load fails.
    pub fn load(&self, database: &Database) -> Result<u64> {
        let sources = self.files.iter().map(|(name, text)| Source::bytes(name, text.as_bytes())).collect();
        let options =
            LoadOptions { format: Some(Format::Csv), names_from_files: true, ..LoadOptions::default() };
        Ok(database.load(sources, &options)?.statements)
    }

    /// Writes the files into a folder.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn write_to(&self, folder: &Path) -> Result<()> {
        for (name, text) in &self.files {
            let file = folder.join(name);
            std::fs::write(&file, text)
                .map_err(|error| Error::io(format_args!("write {}", file.display()), &error))?;
        }
        Ok(())
    }
}

/// The name of a file without its number, with the capitals of the labels, and its header with types; `None`:
/// no header.
fn named(inside: &str, text: &str) -> Result<(String, Option<String>)> {
    let file = inside.rsplit('/').next().unwrap_or_default();
    let stem = file.strip_suffix(".csv").unwrap_or(file);
    let words: Vec<&str> = stem.split('_').filter(|word| !word.bytes().all(|b| b.is_ascii_digit())).collect();
    let label = |word: &str| match word {
        "tagclass" => "TagClass".to_owned(),
        _ => word.get(..1).map(str::to_uppercase).unwrap_or_default() + word.get(1..).unwrap_or_default(),
    };
    let first = text.lines().next().unwrap_or_default();
    let is_header = !first.starts_with(|c: char| c.is_ascii_digit());
    let (name, header) = match words.as_slice() {
        [kind] => {
            let kind = label(kind);
            let header = first.replacen("id|", &format!("id:ID({kind})|"), 1);
            (kind, header)
        }
        [source, relation, target] => {
            let ends = [(label(source), "START_ID"), (label(target), "END_ID")];
            let mut header = first.to_owned();
            for (kind, end) in &ends {
                header = header.replacen(&format!("{kind}.id"), &format!(":{end}({kind})"), 1);
            }
            (format!("{}_{relation}_{}", ends[0].0, ends[1].0), header)
        }
        _ => return Err(input(format!("{inside} is named neither as vertices nor as edges"))),
    };
    let typed = |column: &str| {
        if column.contains(':') {
            return column.to_owned();
        }
        let found = TYPES.iter().find(|(name, _)| *name == column || name.is_empty());
        format!("{column}:{}", found.map_or("STRING", |(_, kind)| kind))
    };
    let header = header.split('|').map(typed).collect::<Vec<_>>().join("|");
    Ok((format!("{name}.csv"), is_header.then_some(header)))
}

/// Appends rows to a file, whose header marks dates.
fn append(whole: &mut String, rows: &str) {
    let header = whole.lines().next().unwrap_or_default();
    let dates: Vec<bool> = header
        .split('|')
        .map(|column| matches!(column, "birthday:LONG" | "creationDate:LONG" | "joinDate:LONG"))
        .collect();
    for row in rows.lines() {
        for (i, cell) in row.split('|').enumerate() {
            if i > 0 {
                whole.push('|');
            }
            match dates.get(i).copied().unwrap_or(false).then(|| milliseconds(cell)).flatten() {
                Some(time) => whole.push_str(&time.to_string()),
                None => whole.push_str(cell),
            }
        }
        whole.push('\n');
    }
}

/// An error in the files or options.
pub(super) fn input(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Input, message)
}

/// Milliseconds from 1970 to `20120601000000000` or `20120601`; `None`: another format.
pub(super) fn milliseconds(text: &str) -> Option<i64> {
    if !matches!(text.len(), 8 | 17) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| text.get(from..to).map_or(Some(0), |part| part.parse::<i64>().ok());
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second, rest) = (part(8, 10)?, part(10, 12)?, part(12, 14)?, part(14, 17)?);
    // Days since 1970-01-01, with years that begin in March (Hinnant 2013).
    let year = year - i64::from(month <= 2);
    let (era, in_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + day_of_year - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + rest)
}

/// Day 0 of a generated network, in milliseconds since 1970, and a day.
const BEGIN_MS: u64 = 1_262_304_000_000;
const DAY_MS: u64 = 86_400_000;

/// Files of a generated network: few tags and places, so that queries have results.
fn made(persons: u32) -> Vec<(String, String)> {
    let mut random = Random::new(11);
    let mut files: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, header: &str, row: String| {
        let name = format!("{name}.csv");
        match files.iter_mut().find(|(other, _)| *other == name) {
            Some((_, text)) => *text += &(row + "\n"),
            None => files.push((name, format!("{header}\n{row}\n"))),
        }
    };
    let named = "name:STRING|url:STRING";
    for (id, name) in ["India", "China", "Delhi", "Pune", "Wuhan", "Xian"].into_iter().enumerate() {
        put("Place", &format!("id:ID(Place)|{named}"), format!("{id}|{name}|u:{id}"));
        if id > 1 {
            let country = usize::from(id > 3);
            put("Place_isPartOf_Place", ":START_ID(Place)|:END_ID(Place)", format!("{id}|{country}"));
        }
    }
    for (id, name) in ["Thing", "Artist", "Painter"].into_iter().enumerate() {
        put("TagClass", &format!("id:ID(TagClass)|{named}"), format!("{id}|{name}|u:{id}"));
        if id > 0 {
            let row = format!("{id}|{}", id - 1);
            put("TagClass_isSubclassOf_TagClass", ":START_ID(TagClass)|:END_ID(TagClass)", row);
        }
    }
    for id in 0..12 {
        put("Tag", &format!("id:ID(Tag)|{named}"), format!("{id}|tag {id}|u:{id}"));
        put("Tag_hasType_TagClass", ":START_ID(Tag)|:END_ID(TagClass)", format!("{id}|{}", id % 3));
    }
    for id in 0..4 {
        put(
            "Organisation",
            &format!("id:ID(Organisation)|{named}"),
            format!("{id}|place of work {id}|u:{id}"),
        );
        let row = format!("{id}|{}", id % 2);
        put("Organisation_isLocatedIn_Place", ":START_ID(Organisation)|:END_ID(Place)", row);
    }
    let day = |random: &mut Random| {
        BEGIN_MS + u64::from(random.below(700)) * DAY_MS + u64::from(random.below(86_400)) * 1000
    };
    for id in 0..persons {
        let (first, gender) = (random.pick(&["Jun", "Ann", "Ida"]), random.pick(&["male", "female"]));
        let birthday = 315_532_800_000 + u64::from(random.below(3_650)) * DAY_MS;
        let header = "id:ID(Person)|firstName:STRING|lastName:STRING|gender:STRING|birthday:LONG|creationDate:LONG|locationIP:STRING|browserUsed:STRING";
        put(
            "Person",
            header,
            format!("{id}|{first}|L{}|{gender}|{birthday}|{BEGIN_MS}|1.2.3.{id}|Firefox", id % 9),
        );
        put(
            "Person_isLocatedIn_Place",
            ":START_ID(Person)|:END_ID(Place)",
            format!("{id}|{}", 2 + random.below(4)),
        );
        for _ in 0..3 {
            let row = format!("{id}|{}", random.below(12));
            put("Person_hasInterest_Tag", ":START_ID(Person)|:END_ID(Tag)", row);
        }
        let at = random.below(4);
        put(
            "Person_workAt_Organisation",
            ":START_ID(Person)|:END_ID(Organisation)|workFrom:INT",
            format!("{id}|{at}|{}", 2000 + random.below(10)),
        );
        put(
            "Person_studyAt_Organisation",
            ":START_ID(Person)|:END_ID(Organisation)|classYear:INT",
            format!("{id}|{at}|{}", 1995 + random.below(5)),
        );
        for step in [1, 2, 5] {
            if id + step < persons {
                let row = format!("{id}|{}|{}", id + step, day(&mut random));
                put("Person_knows_Person", ":START_ID(Person)|:END_ID(Person)|creationDate:LONG", row);
            }
        }
        put("Forum", "id:ID(Forum)|title:STRING|creationDate:LONG", format!("{id}|Wall of {id}|{BEGIN_MS}"));
        put("Forum_hasModerator_Person", ":START_ID(Forum)|:END_ID(Person)", format!("{id}|{id}"));
        put("Forum_hasTag_Tag", ":START_ID(Forum)|:END_ID(Tag)", format!("{id}|{}", random.below(12)));
        for member in 0..persons.min(6) {
            let row = format!("{id}|{}|{}", (id + member * member) % persons, day(&mut random));
            put("Forum_hasMember_Person", ":START_ID(Forum)|:END_ID(Person)|joinDate:LONG", row);
        }
    }
    // Even numbers are posts, odd ones comments on earlier messages.
    for id in 0..persons * 8 {
        let (author, time) = (random.below(persons), day(&mut random));
        let rest = format!("{time}|1.2.3.4|Opera");
        let kind = if id % 2 == 0 { "Post" } else { "Comment" };
        if kind == "Post" {
            let image = if id % 6 == 0 { format!("photo{id}.jpg") } else { String::new() };
            let content = if id % 6 == 0 { String::new() } else { format!("about {id}") };
            let header = "id:ID(Post)|imageFile:STRING|creationDate:LONG|locationIP:STRING|browserUsed:STRING|language:STRING|content:STRING|length:INT";
            put("Post", header, format!("{id}|{image}|{rest}|en|{content}|{}", content.len()));
            put(
                "Forum_containerOf_Post",
                ":START_ID(Forum)|:END_ID(Post)",
                format!("{}|{id}", (author + id % 3) % persons),
            );
        } else {
            let header = "id:ID(Comment)|creationDate:LONG|locationIP:STRING|browserUsed:STRING|content:STRING|length:INT";
            put("Comment", header, format!("{id}|{rest}|yes {id}|{}", 4 + id % 3));
            let of = random.below(id);
            let of_kind = if of.is_multiple_of(2) { "Post" } else { "Comment" };
            put(
                &format!("Comment_replyOf_{of_kind}"),
                &format!(":START_ID(Comment)|:END_ID({of_kind})"),
                format!("{id}|{of}"),
            );
        }
        put(
            &format!("{kind}_hasCreator_Person"),
            &format!(":START_ID({kind})|:END_ID(Person)"),
            format!("{id}|{author}"),
        );
        put(
            &format!("{kind}_isLocatedIn_Place"),
            &format!(":START_ID({kind})|:END_ID(Place)"),
            format!("{id}|{}", random.below(2)),
        );
        for tag in 0..2 {
            put(
                &format!("{kind}_hasTag_Tag"),
                &format!(":START_ID({kind})|:END_ID(Tag)"),
                format!("{id}|{}", (id + tag * 5) % 12),
            );
        }
        let liker = random.below(persons);
        put(
            &format!("Person_likes_{kind}"),
            &format!(":START_ID(Person)|:END_ID({kind})|creationDate:LONG"),
            format!("{liker}|{id}|{}", time + DAY_MS),
        );
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_milliseconds() {
        assert_eq!(milliseconds("19700102"), Some(86_400_000));
        assert_eq!(milliseconds("20120601000000000"), Some(1_338_508_800_000));
        assert_eq!(milliseconds("20000229235959999"), Some(951_868_799_999));
        assert_eq!(milliseconds("1338508800000"), None);
    }

    #[test]
    fn headers_of_all_forms_become_one() {
        let (name, header) =
            named("a/vanilla/dynamic/person_0_0.csv", "id|firstName|language\n1|A|en;de\n").unwrap();
        assert_eq!(name, "Person.csv");
        assert_eq!(header.unwrap(), "id:ID(Person)|firstName:STRING|language:STRING[]");
        let (name, header) =
            named("person_knows_person_0_0.csv", "Person.id|Person.id|creationDate\n").unwrap();
        assert_eq!(name, "Person_knows_Person.csv");
        assert_eq!(header.unwrap(), ":START_ID(Person)|:END_ID(Person)|creationDate:LONG");
        let (name, header) = named("Person_likes_Post_1.csv", "1|2|3\n").unwrap();
        assert_eq!((name.as_str(), header), ("Person_likes_Post.csv", None));
        assert!(named("schema.csv_x_y_z_w.csv", "").is_err());
    }
}
