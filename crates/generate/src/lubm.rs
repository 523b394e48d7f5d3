//! LUBM-like generator: universities with departments, people, courses and publications, as a stream of
//! N-Triples.
//!
//! # Shape
//! For each university its departments; for each department its faculty with their courses and publications,
//! its research groups, its undergraduate and its graduate students. The seed and its two numbers determine
//! the content of a department, so the first ten of forty universities are the same as ten generated alone,
//! except for the position where another university is first mentioned.
//!
//! | per department | number |
//! | --- | --- |
//! | full, associate, assistant professors, lecturers | 7-10, 10-14, 8-11, 5-7 |
//! | undergraduate, graduate students per member of the faculty | 8-14, 3-4 |
//! | courses and graduate courses per member of the faculty, none shared | 1-2 and 1-2 |
//! | courses per undergraduate, graduate courses per graduate student | 2-4, 1-3 |
//! | undergraduates with an advisor; graduate students with one | a fifth; all |
//! | teaching assistants, research assistants, of the graduate students | a quarter to a fifth, a third to a quarter |
//! | publications by rank | 15-20, 10-18, 5-10, 0-5 |
//! | publications that a graduate student is a co-author of | 0-5 |
//! | research groups | 10-20 |
//!
//! A university has 15-25 departments; degrees come from one of 1,000 universities; there are 30
//! research interests; one full professor heads the department.
//! # Invariants
//! 1. No statement is written twice.
//! 2. The type of a university is written at its first mention.
//! # Cost
//! Dominated by copying text: 40 universities, 5.46 M statements and 940 MB, took 0.11 s into a null device
//! and 0.53 s into a file (one thread, AMD EPYC, 2026-11-20). Memory is one department, a buffer, and one
//! byte for each of the 1,000 universities.
//! # Source
//! The published data profile of the Univ-Bench Artificial data generator: Guo, Pan, Heflin, "LUBM: A
//! Benchmark for OWL Knowledge Base Systems", J. Web Semantics 3(2-3), 2005, section 3. Implemented from the
//! profile. Different: no file per department, no ontology import statements, no repetition.

use crate::Random;
use crate::small::{Digits, DistinctNumbers};
use std::io::{self, Write};

/// Number of universities that confer degrees.
const DEGREE_UNIVERSITIES: u32 = 1000;
const RESEARCH_INTERESTS: u32 = 30;
/// Buffer size, in bytes, from which the buffer is written out.
const FLUSH_BYTES: usize = 256 << 10;

/// Statistics of [`generate_lubm`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LubmStatistics {
    /// Number of universities with departments.
    pub universities: u64,
    /// Number of departments.
    pub departments: u64,
    /// Number of professors and lecturers.
    pub faculty: u64,
    /// Number of undergraduate and graduate students.
    pub students: u64,
    /// Number of statements, all distinct.
    pub statements: u64,
    /// Number of bytes written.
    pub bytes: u64,
}

/// Writes the universities `0..universities` to `out` as N-Triples.
///
/// The same arguments give the same bytes. `out` need not be buffered. It is not flushed.
///
/// ```
/// let mut text = Vec::new();
/// let statistics = vervet_generate::generate_lubm(1, 0, &mut text)?;
/// assert_eq!(text.iter().filter(|byte| **byte == b'\n').count() as u64, statistics.statements);
/// # std::io::Result::Ok(())
/// ```
///
/// # Errors
/// Those of `out`.
pub fn generate_lubm(universities: u32, seed: u64, out: &mut dyn Write) -> io::Result<LubmStatistics> {
    let mut writer = StatementWriter {
        out,
        buffer: Vec::with_capacity(FLUSH_BYTES + (FLUSH_BYTES >> 2)),
        named: vec![false; DEGREE_UNIVERSITIES as usize],
        statistics: LubmStatistics::default(),
    };
    for university in 0..universities {
        let mut random = Random::for_part(seed, &[u64::from(university)]);
        writer.university(university);
        for department in 0..random.between(15..=25) {
            let random = Random::for_part(seed, &[u64::from(university), u64::from(department)]);
            Department::new(university, department, random).write(&mut writer)?;
        }
        writer.statistics.universities += 1;
    }
    writer.flush()?;
    Ok(writer.statistics)
}

/// ` <http://…univ-bench.owl#…`, followed by `$rest` after the local name.
macro_rules! ub {
    ($name:literal, $rest:literal) => {
        concat!("> <http://swat.cse.lehigh.edu/onto/univ-bench.owl#", $name, "> ", $rest).as_bytes()
    };
}

macro_rules! class {
    ($name:literal) => {
        concat!(
            "> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ",
            "<http://swat.cse.lehigh.edu/onto/univ-bench.owl#",
            $name,
            "> .\n"
        )
        .as_bytes()
    };
}

const END_IRI: &[u8] = b"> .\n";
const END_TEXT: &[u8] = b"\" .\n";

#[derive(Clone, Copy)]
struct Rank {
    name: &'static [u8],
    class: &'static [u8],
    count: (u32, u32),
    publications: (u32, u32),
    professor: bool,
}

const RANKS: [Rank; 4] = [
    Rank {
        name: b"FullProfessor",
        class: class!("FullProfessor"),
        count: (7, 10),
        publications: (15, 20),
        professor: true,
    },
    Rank {
        name: b"AssociateProfessor",
        class: class!("AssociateProfessor"),
        count: (10, 14),
        publications: (10, 18),
        professor: true,
    },
    Rank {
        name: b"AssistantProfessor",
        class: class!("AssistantProfessor"),
        count: (8, 11),
        publications: (5, 10),
        professor: true,
    },
    Rank {
        name: b"Lecturer",
        class: class!("Lecturer"),
        count: (5, 7),
        publications: (0, 5),
        professor: false,
    },
];
const PROFESSOR_RANKS: usize = 3;

const DEGREES: [&[u8]; 3] = [
    ub!("undergraduateDegreeFrom", "<http://www.University"),
    ub!("mastersDegreeFrom", "<http://www.University"),
    ub!("doctoralDegreeFrom", "<http://www.University"),
];

/// Output buffer and statistics.
struct StatementWriter<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    named: Vec<bool>,
    statistics: LubmStatistics,
}

impl StatementWriter<'_> {
    /// Writes one statement: `<subject`, the predicate with the opening of the object, the object, its end.
    #[inline]
    fn statement(&mut self, subject: &[u8], predicate: &[u8], object: &[&[u8]], end: &[u8]) {
        self.buffer.extend_from_slice(subject);
        self.buffer.extend_from_slice(predicate);
        for part in object {
            self.buffer.extend_from_slice(part);
        }
        self.buffer.extend_from_slice(end);
        self.statistics.statements += 1;
    }

    #[inline]
    fn class(&mut self, subject: &[u8], class: &'static [u8]) {
        self.statement(subject, class, &[], b"");
    }

    /// Writes a university with its departments.
    fn university(&mut self, university: u32) {
        let number = Digits::new(university);
        self.name_university(university, &number);
        let subject = [b"<http://www.University", number.bytes(), b".edu"].concat();
        self.statement(&subject, ub!("name", "\"University"), &[number.bytes()], END_TEXT);
    }

    /// Writes the type of a university, unless already written.
    fn name_university(&mut self, university: u32, number: &Digits) {
        let named = self.named.get_mut(university as usize);
        if named.is_some_and(|named| std::mem::replace(named, true)) {
            return;
        }
        let subject = [b"<http://www.University", number.bytes(), b".edu"].concat();
        self.class(&subject, class!("University"));
    }

    /// Writes a degree of `subject` from a random university.
    fn degree(&mut self, subject: &[u8], degree: &[u8], random: &mut Random) {
        let university = random.below(DEGREE_UNIVERSITIES);
        let number = Digits::new(university);
        self.statement(subject, degree, &[number.bytes(), b".edu"], END_IRI);
        self.name_university(university, &number);
    }

    fn flush_if_long(&mut self) -> io::Result<()> {
        if self.buffer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.statistics.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// State of the department being written.
struct Department {
    random: Random,
    /// `<http://www.Department3.University0.edu`.
    iri: Vec<u8>,
    /// `Department3.University0.edu`.
    host: Vec<u8>,
    university: Digits,
    number: Digits,
    /// Number of faculty members of each rank.
    ranks: [u32; 4],
    courses: u32,
    graduate_courses: u32,
    /// Author (rank and number) and number of each publication.
    publications: Vec<(usize, u32, u32)>,
    /// The current subject; reused to avoid allocations.
    subject: Vec<u8>,
}

impl Department {
    fn new(university: u32, department: u32, mut random: Random) -> Self {
        let (university, number) = (Digits::new(university), Digits::new(department));
        let host = [b"Department", number.bytes(), b".University", university.bytes(), b".edu"].concat();
        let iri = [b"<http://www.", host.as_slice()].concat();
        let ranks = RANKS.map(|rank| random.between(rank.count.0..=rank.count.1));
        Self {
            random,
            iri,
            host,
            university,
            number,
            ranks,
            courses: 0,
            graduate_courses: 0,
            publications: Vec::new(),
            subject: Vec::new(),
        }
    }

    fn write(mut self, writer: &mut StatementWriter<'_>) -> io::Result<()> {
        writer.class(&self.iri, class!("Department"));
        writer.statement(&self.iri, ub!("name", "\"Department"), &[self.number.bytes()], END_TEXT);
        let university: [&[u8]; 2] = [self.university.bytes(), b".edu"];
        writer.statement(&self.iri, ub!("subOrganizationOf", "<http://www.University"), &university, END_IRI);
        let head = self.random.below(self.ranks[0]);
        for rank in 0..RANKS.len() {
            for member in 0..self.ranks[rank] {
                self.faculty_member(writer, rank, member);
                if rank == 0 && member == head {
                    writer.statement(&self.subject, ub!("headOf", ""), &[&self.iri], END_IRI);
                }
            }
            writer.flush_if_long()?;
        }
        for group in 0..self.random.between(10..=20) {
            self.address(b"ResearchGroup", &Digits::new(group));
            writer.class(&self.subject, class!("ResearchGroup"));
            writer.statement(&self.subject, ub!("subOrganizationOf", ""), &[&self.iri], END_IRI);
        }
        let faculty: u32 = self.ranks.iter().sum();
        let undergraduates = self.random.between(8 * faculty..=14 * faculty);
        for student in 0..undergraduates {
            self.undergraduate(writer, student);
            writer.flush_if_long()?;
        }
        let graduates = self.random.between(3 * faculty..=4 * faculty);
        self.graduates(writer, graduates)?;
        writer.statistics.departments += 1;
        writer.statistics.faculty += u64::from(faculty);
        writer.statistics.students += u64::from(undergraduates + graduates);
        Ok(())
    }

    /// Sets the current subject to `kind` and `number`.
    #[inline]
    fn address(&mut self, kind: &[u8], number: &Digits) {
        self.subject.clear();
        self.subject.extend_from_slice(&self.iri);
        self.subject.push(b'/');
        self.subject.extend_from_slice(kind);
        self.subject.extend_from_slice(number.bytes());
    }

    fn faculty_member(&mut self, writer: &mut StatementWriter<'_>, rank: usize, member: u32) {
        let (of_rank, number) = (RANKS[rank], Digits::new(member));
        self.address(of_rank.name, &number);
        writer.class(&self.subject, of_rank.class);
        self.person(writer, of_rank.name, &number);
        writer.statement(&self.subject, ub!("worksFor", ""), &[&self.iri], END_IRI);
        for degree in DEGREES {
            writer.degree(&self.subject, degree, &mut self.random);
        }
        if of_rank.professor {
            let interest = Digits::new(self.random.below(RESEARCH_INTERESTS));
            writer.statement(
                &self.subject,
                ub!("researchInterest", "\"Research"),
                &[interest.bytes()],
                END_TEXT,
            );
        }
        let author = self.subject.clone();
        for _ in 0..self.random.between(1..=2) {
            self.course(writer, &author, false);
        }
        for _ in 0..self.random.between(1..=2) {
            self.course(writer, &author, true);
        }
        for publication in 0..self.random.between(of_rank.publications.0..=of_rank.publications.1) {
            self.publication(writer, &author, publication);
            self.publications.push((rank, member, publication));
        }
        self.subject = author;
    }

    /// Writes name, address and telephone of the subject.
    #[inline]
    fn person(&self, writer: &mut StatementWriter<'_>, kind: &[u8], number: &Digits) {
        writer.statement(&self.subject, ub!("name", "\""), &[kind, number.bytes()], END_TEXT);
        let address: [&[u8]; 4] = [kind, number.bytes(), b"@", &self.host];
        writer.statement(&self.subject, ub!("emailAddress", "\""), &address, END_TEXT);
        writer.statement(&self.subject, ub!("telephone", "\"xxx-xxx-xxxx"), &[], END_TEXT);
    }

    fn course(&mut self, writer: &mut StatementWriter<'_>, teacher: &[u8], graduate: bool) {
        let (kind, class, next): (&[u8], _, _) = if graduate {
            (b"GraduateCourse", class!("GraduateCourse"), &mut self.graduate_courses)
        } else {
            (b"Course", class!("Course"), &mut self.courses)
        };
        let number = Digits::new(*next);
        *next += 1;
        self.address(kind, &number);
        writer.statement(teacher, ub!("teacherOf", ""), &[&self.subject], END_IRI);
        writer.class(&self.subject, class);
        writer.statement(&self.subject, ub!("name", "\""), &[kind, number.bytes()], END_TEXT);
    }

    fn publication(&mut self, writer: &mut StatementWriter<'_>, author: &[u8], publication: u32) {
        let number = Digits::new(publication);
        self.subject.clear();
        self.subject.extend_from_slice(author);
        self.subject.extend_from_slice(b"/Publication");
        self.subject.extend_from_slice(number.bytes());
        writer.class(&self.subject, class!("Publication"));
        writer.statement(&self.subject, ub!("name", "\"Publication"), &[number.bytes()], END_TEXT);
        writer.statement(&self.subject, ub!("publicationAuthor", ""), &[author], END_IRI);
    }

    fn undergraduate(&mut self, writer: &mut StatementWriter<'_>, student: u32) {
        let number = Digits::new(student);
        self.address(b"UndergraduateStudent", &number);
        writer.class(&self.subject, class!("UndergraduateStudent"));
        self.person(writer, b"UndergraduateStudent", &number);
        writer.statement(&self.subject, ub!("memberOf", ""), &[&self.iri], END_IRI);
        let courses = DistinctNumbers::choose(2..=4, self.courses, &mut self.random);
        for &course in courses.numbers() {
            let course = Digits::new(course);
            let object: [&[u8]; 3] = [&self.iri, b"/Course", course.bytes()];
            writer.statement(&self.subject, ub!("takesCourse", ""), &object, END_IRI);
        }
        if self.random.one_in(5) {
            self.advisor(writer);
        }
    }

    fn advisor(&mut self, writer: &mut StatementWriter<'_>) {
        let rank = self.random.index(PROFESSOR_RANKS);
        let member = Digits::new(self.random.below(self.ranks[rank]));
        let object: [&[u8]; 4] = [&self.iri, b"/", RANKS[rank].name, member.bytes()];
        writer.statement(&self.subject, ub!("advisor", ""), &object, END_IRI);
    }

    fn graduates(&mut self, writer: &mut StatementWriter<'_>, graduates: u32) -> io::Result<()> {
        let teaching = self.random.between(graduates / 5..=graduates / 4);
        let research = self.random.between(graduates / 4..=graduates / 3);
        // The position of a student in a random order determines the post, so no student has two.
        let mut order: Vec<u32> = (0..graduates).collect();
        self.random.shuffle(&mut order);
        // There are fewer teaching assistants than courses: each member of the faculty teaches at least one
        // course, and has at most four graduate students, a quarter of which are assistants.
        let mut courses: Vec<u32> = (0..self.courses).collect();
        self.random.shuffle(&mut courses);
        let publications = std::mem::take(&mut self.publications);
        for student in 0..graduates {
            let number = Digits::new(student);
            self.address(b"GraduateStudent", &number);
            writer.class(&self.subject, class!("GraduateStudent"));
            let place = order[student as usize];
            if place < teaching {
                writer.class(&self.subject, class!("TeachingAssistant"));
                let course = Digits::new(courses[place as usize]);
                let object: [&[u8]; 3] = [&self.iri, b"/Course", course.bytes()];
                writer.statement(&self.subject, ub!("teachingAssistantOf", ""), &object, END_IRI);
            } else if place < teaching + research {
                writer.class(&self.subject, class!("ResearchAssistant"));
            }
            self.person(writer, b"GraduateStudent", &number);
            writer.statement(&self.subject, ub!("memberOf", ""), &[&self.iri], END_IRI);
            writer.degree(&self.subject, DEGREES[0], &mut self.random);
            let taken = DistinctNumbers::choose(1..=3, self.graduate_courses, &mut self.random);
            for &course in taken.numbers() {
                let course = Digits::new(course);
                let object: [&[u8]; 3] = [&self.iri, b"/GraduateCourse", course.bytes()];
                writer.statement(&self.subject, ub!("takesCourse", ""), &object, END_IRI);
            }
            self.advisor(writer);
            self.co_author(writer, &publications);
            writer.flush_if_long()?;
        }
        Ok(())
    }

    /// Writes the publications of which the subject is a co-author.
    fn co_author(&mut self, writer: &mut StatementWriter<'_>, publications: &[(usize, u32, u32)]) {
        let count = u32::try_from(publications.len()).unwrap_or(u32::MAX);
        let chosen = DistinctNumbers::choose(0..=5, count, &mut self.random);
        let student = std::mem::take(&mut self.subject);
        for &choice in chosen.numbers() {
            let (rank, member, publication) = publications[choice as usize];
            self.address(RANKS[rank].name, &Digits::new(member));
            self.subject.extend_from_slice(b"/Publication");
            self.subject.extend_from_slice(Digits::new(publication).bytes());
            writer.statement(&self.subject, ub!("publicationAuthor", ""), &[&student], END_IRI);
        }
        self.subject = student;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The same arguments give the same bytes, another seed different ones; no statement is written twice;
    /// the statistics are correct.
    #[test]
    fn output_is_deterministic_and_distinct() {
        let make = |seed| {
            let mut text = Vec::new();
            let statistics = generate_lubm(2, seed, &mut text).unwrap();
            (String::from_utf8(text).unwrap(), statistics)
        };
        let (text, statistics) = make(0);
        assert!(text == make(0).0);
        assert!(text != make(1).0);
        let lines: HashSet<&str> = text.lines().collect();
        assert_eq!(lines.len() as u64, statistics.statements);
        assert_eq!(text.lines().count() as u64, statistics.statements);
        assert_eq!(text.len() as u64, statistics.bytes);
        assert!((30..=50).contains(&statistics.departments), "{statistics:?}");
    }
}
