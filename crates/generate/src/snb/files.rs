//! Output files of the network, with the names of LDBC's format "vanilla".

use std::io::{self, Write};

/// Names and header rows of the files.
const HEADERS: [(&str, &str); 31] = [
    ("comment", "id|creationDate|locationIP|browserUsed|content|length"),
    ("comment_hasCreator_person", "Comment.id|Person.id"),
    ("comment_hasTag_tag", "Comment.id|Tag.id"),
    ("comment_isLocatedIn_place", "Comment.id|Place.id"),
    ("comment_replyOf_comment", "Comment.id|Comment.id"),
    ("comment_replyOf_post", "Comment.id|Post.id"),
    ("forum", "id|title|creationDate"),
    ("forum_containerOf_post", "Forum.id|Post.id"),
    ("forum_hasMember_person", "Forum.id|Person.id|joinDate"),
    ("forum_hasModerator_person", "Forum.id|Person.id"),
    ("forum_hasTag_tag", "Forum.id|Tag.id"),
    ("organisation", "id|type|name|url"),
    ("organisation_isLocatedIn_place", "Organisation.id|Place.id"),
    ("person", "id|firstName|lastName|gender|birthday|creationDate|locationIP|browserUsed|language|email"),
    ("person_hasInterest_tag", "Person.id|Tag.id"),
    ("person_isLocatedIn_place", "Person.id|Place.id"),
    ("person_knows_person", "Person.id|Person.id|creationDate"),
    ("person_likes_comment", "Person.id|Comment.id|creationDate"),
    ("person_likes_post", "Person.id|Post.id|creationDate"),
    ("person_studyAt_organisation", "Person.id|Organisation.id|classYear"),
    ("person_workAt_organisation", "Person.id|Organisation.id|workFrom"),
    ("place", "id|name|url|type"),
    ("place_isPartOf_place", "Place.id|Place.id"),
    ("post", "id|imageFile|creationDate|locationIP|browserUsed|language|content|length"),
    ("post_hasCreator_person", "Post.id|Person.id"),
    ("post_hasTag_tag", "Post.id|Tag.id"),
    ("post_isLocatedIn_place", "Post.id|Place.id"),
    ("tag", "id|name|url"),
    ("tag_hasType_tagclass", "Tag.id|TagClass.id"),
    ("tagclass", "id|name|url"),
    ("tagclass_isSubclassOf_tagclass", "TagClass.id|TagClass.id"),
];

/// Creates the writer of a file; called once with the name of each file.
pub type FileMaker<'m> = dyn FnMut(&str) -> io::Result<Box<dyn Write>> + 'm;

/// All files, open.
pub(super) struct Files {
    files: Vec<Box<dyn Write>>,
}

impl Files {
    pub(super) fn new(make: &mut FileMaker<'_>) -> io::Result<Self> {
        let mut files = Vec::with_capacity(HEADERS.len());
        for (name, header) in HEADERS {
            let mut file = make(&format!("{name}_0_0.csv"))?;
            writeln!(file, "{header}")?;
            files.push(file);
        }
        Ok(Self { files })
    }

    /// Writes a row; the file must be one of the network's.
    pub(super) fn row(&mut self, file: &str, row: std::fmt::Arguments<'_>) -> io::Result<()> {
        let place = HEADERS.binary_search_by_key(&file, |(name, _)| name).map_err(|_| {
            io::Error::new(io::ErrorKind::NotFound, format!("the network has no file {file}"))
        })?;
        let file = &mut self.files[place];
        file.write_fmt(row)?;
        file.write_all(b"\n")
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.files.iter_mut().try_for_each(Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_searched() {
        assert!(HEADERS.is_sorted_by_key(|(name, _)| *name));
    }
}
