//! LUBM Q1 to Q7 as hand-written loops.

use super::{Arrays, Csr, NO_CLASS, TYPE};
use vervet_model::Result;

const UB: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";

const UNIVERSITY: u8 = 0;
const DEPARTMENT: u8 = 1;
const GRADUATE: u8 = 2;
const UNDERGRADUATE: u8 = 3;
const FULL_PROFESSOR: u8 = 4;
const COURSE: u8 = 5;
const RESEARCH_GROUP: u8 = 6;
/// A term with two classes gets the first one in this list.
const CLASSES: [&str; 7] = [
    "University",
    "Department",
    "GraduateStudent",
    "UndergraduateStudent",
    "FullProfessor",
    "Course",
    "ResearchGroup",
];

/// The arrays that the seven queries read.
pub struct LubmLoops<'a> {
    arrays: Arrays<'a>,
    class: Vec<u8>,
    members: [Vec<u32>; CLASSES.len()],
    advisor_in: Csr,
    degree_in: Csr,
    email_out: Csr,
    member_of_out: Csr,
    name_out: Csr,
    organization_in: Csr,
    organization_out: Csr,
    takes_out: Csr,
    teacher_out: Csr,
    telephone_out: Csr,
    works_in: Csr,
}

impl<'a> LubmLoops<'a> {
    /// Builds the arrays from the N-Triples in `text`.
    ///
    /// # Errors
    /// See [`Arrays::parse`].
    pub fn load(text: &'a str) -> Result<Self> {
        let mut arrays = Arrays::parse(text)?;
        let types = arrays.take(TYPE);
        let mut class = vec![NO_CLASS; arrays.terms()];
        let members = CLASSES.map(|name| match arrays.number(&format!("<{UB}{name}>")) {
            Some(number) => types.inward.of(number).to_vec(),
            None => Vec::new(),
        });
        // The first class is written last, so it wins.
        for number in (UNIVERSITY..=RESEARCH_GROUP).rev() {
            for &member in &members[usize::from(number)] {
                class[member as usize] = number;
            }
        }
        let mut take = |name: &str| arrays.take(&format!("<{UB}{name}>"));
        let organization = take("subOrganizationOf");
        Ok(Self {
            class,
            members,
            advisor_in: take("advisor").inward,
            degree_in: take("undergraduateDegreeFrom").inward,
            email_out: take("emailAddress").outward,
            member_of_out: take("memberOf").outward,
            name_out: take("name").outward,
            organization_in: organization.inward,
            organization_out: organization.outward,
            takes_out: take("takesCourse").outward,
            teacher_out: take("teacherOf").outward,
            telephone_out: take("telephone").outward,
            works_in: take("worksFor").inward,
            arrays,
        })
    }

    /// The loaded arrays.
    #[must_use]
    pub fn arrays(&self) -> &Arrays<'a> {
        &self.arrays
    }

    /// Runs query `q1` to `q7`; `rows` then holds the bindings, one number per selected variable. Returns the
    /// number of rows; `None` if there is no loop for this query.
    #[must_use]
    pub fn run(&self, query: &str, rows: &mut Vec<u32>) -> Option<u64> {
        rows.clear();
        let columns = match query {
            "q1" => self.graduates_of_their_own_university(GRADUATE, rows),
            "q2" => self.courses_and_names(rows),
            "q3" => self.graduates_of_their_own_university(UNDERGRADUATE, rows),
            "q4" => self.full_professors_with_contacts(rows),
            "q5" => self.research_groups(rows),
            "q6" => self.full_professors_of_a_university(rows),
            "q7" => self.students_of_their_advisors(rows),
            _ => return None,
        };
        Some((rows.len() / columns) as u64)
    }

    #[inline]
    fn is(&self, term: u32, class: u8) -> bool {
        self.class[term as usize] == class
    }

    /// Department → its university → the graduates of that university; tests membership in the department.
    fn graduates_of_their_own_university(&self, student: u8, rows: &mut Vec<u32>) -> usize {
        for &department in &self.members[usize::from(DEPARTMENT)] {
            for &university in self.organization_out.of(department) {
                if !self.is(university, UNIVERSITY) {
                    continue;
                }
                for &graduate in self.degree_in.of(university) {
                    if self.is(graduate, student) && self.member_of_out.has(graduate, department) {
                        rows.extend([graduate, university, department]);
                    }
                }
            }
        }
        3
    }

    fn courses_and_names(&self, rows: &mut Vec<u32>) -> usize {
        for &course in &self.members[usize::from(COURSE)] {
            for &name in self.name_out.of(course) {
                rows.extend([course, name]);
            }
        }
        2
    }

    fn full_professors_with_contacts(&self, rows: &mut Vec<u32>) -> usize {
        let Some(department) = self.arrays.number("<http://www.Department0.University0.edu>") else {
            return 4;
        };
        for &professor in self.works_in.of(department) {
            if !self.is(professor, FULL_PROFESSOR) {
                continue;
            }
            for &name in self.name_out.of(professor) {
                for &email in self.email_out.of(professor) {
                    for &telephone in self.telephone_out.of(professor) {
                        rows.extend([professor, name, email, telephone]);
                    }
                }
            }
        }
        4
    }

    fn research_groups(&self, rows: &mut Vec<u32>) -> usize {
        if let Some(department) = self.arrays.number("<http://www.Department0.University0.edu>") {
            let groups = self.organization_in.of(department).iter().copied();
            rows.extend(groups.filter(|group| self.is(*group, RESEARCH_GROUP)));
        }
        1
    }

    fn full_professors_of_a_university(&self, rows: &mut Vec<u32>) -> usize {
        let Some(university) = self.arrays.number("<http://www.University0.edu>") else {
            return 2;
        };
        for &department in self.organization_in.of(university) {
            if !self.is(department, DEPARTMENT) {
                continue;
            }
            for &professor in self.works_in.of(department) {
                if self.is(professor, FULL_PROFESSOR) {
                    rows.extend([professor, department]);
                }
            }
        }
        2
    }

    /// Full professor → advisee, and → course taught; tests whether the advisee takes the course.
    fn students_of_their_advisors(&self, rows: &mut Vec<u32>) -> usize {
        for &professor in &self.members[usize::from(FULL_PROFESSOR)] {
            let courses = self.teacher_out.of(professor);
            for &student in self.advisor_in.of(professor) {
                if !self.is(student, UNDERGRADUATE) {
                    continue;
                }
                for &course in courses {
                    if self.is(course, COURSE) && self.takes_out.has(student, course) {
                        rows.extend([student, professor, course]);
                    }
                }
            }
        }
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A class is a single byte, and the order of the list decides; constants and list agree.
    #[test]
    fn classes_are_numbered_as_listed() {
        let text = format!(
            "<a> {TYPE} <{UB}TeachingAssistant> .\n<a> {TYPE} <{UB}GraduateStudent> .\n\
             <b> {TYPE} <{UB}ResearchGroup> .\n<b> <{UB}subOrganizationOf> \
             <http://www.Department0.University0.edu> .\n<c> <{UB}subOrganizationOf> \
             <http://www.Department0.University0.edu> .\n"
        );
        let loops = LubmLoops::load(&text).unwrap();
        assert_eq!(loops.class[loops.arrays.number("<a>").unwrap() as usize], GRADUATE);
        let mut rows = Vec::new();
        assert_eq!(loops.run("q5", &mut rows), Some(1));
        assert_eq!(loops.arrays.term(rows[0]), "<b>");
        assert_eq!(loops.run("q4", &mut rows), Some(0));
        assert_eq!(loops.run("q8", &mut rows), None);
        assert!(LubmLoops::load("<a> <b>\n").is_err());
    }
}
