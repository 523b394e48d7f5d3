//! Tables and targets of `vervet-bench wire`.

use super::clients::{Format, Writes};
use super::options::{ADD, FLOOR, LIGHT, OURS, WireOptions};
use crate::measure::quantile;
use crate::sections::{Section, SectionReport};
use crate::snb::Network;
use crate::table::{count, figure};
use std::fmt;

/// The maximum overhead of a server over the embedded interface.
const ADDED_MS_MAX: f64 = 0.15;

/// A combination of client, server and format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ClientSetup {
    pub(super) server: &'static str,
    pub(super) client: &'static str,
    pub(super) format: &'static str,
}

impl ClientSetup {
    pub(super) fn new(server: &'static str, client: &'static str, format: Format) -> Self {
        Self { server, client, format: format.name() }
    }

    fn is_ours(&self) -> bool {
        self.server == OURS
    }

    /// The same combination with the floor server.
    fn to_replay_server(&self) -> Self {
        Self { server: FLOOR, ..self.clone() }
    }
}

impl fmt::Display for ClientSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.server, self.client, self.format)
    }
}

/// Sequential requests; times in µs.
#[derive(Clone, Debug)]
pub(super) struct SequentialFigures {
    pub(super) setup: ClientSetup,
    /// The index of the text.
    pub(super) at: usize,
    pub(super) median: f64,
    pub(super) p99: f64,
    /// Processor time of this process per request.
    pub(super) server_cpu: f64,
}

/// Pipelined requests.
#[derive(Clone, Debug)]
pub(super) struct PipelinedFigures {
    pub(super) setup: ClientSetup,
    pub(super) at: usize,
    pub(super) rate: f64,
    pub(super) server_cpu: f64,
}

/// Added vertices.
#[derive(Clone, Debug)]
pub(super) struct WriteFigures {
    pub(super) setup: ClientSetup,
    pub(super) writes: Writes,
    pub(super) rate: f64,
    pub(super) server_cpu: f64,
}

/// All measurements.
pub(super) struct Figures {
    title: String,
    texts: Vec<&'static str>,
    in_flight: u32,
    /// For each text the times in µs.
    pub(super) embedded: Vec<Vec<f64>>,
    pub(super) embedded_writes: f64,
    pub(super) light: Vec<SequentialFigures>,
    pub(super) many: Vec<PipelinedFigures>,
    pub(super) written: Vec<WriteFigures>,
}

impl Figures {
    pub(super) fn new(network: &Network, options: &WireOptions) -> Self {
        Self {
            title: format!("Gremlin through the server on {}", network.name()),
            texts: std::iter::once("g.inject(1)").chain(LIGHT).collect(),
            in_flight: options.in_flight,
            embedded: Vec::new(),
            embedded_writes: 0.0,
            light: Vec::new(),
            many: Vec::new(),
            written: Vec::new(),
        }
    }

    fn embedded(&self, at: usize, share: f64) -> f64 {
        self.embedded.get(at).map_or(f64::NAN, |times| quantile(times, share))
    }

    /// The median of the same request to the floor server.
    fn floor(&self, light: &SequentialFigures) -> Option<f64> {
        let setup = light.setup.to_replay_server();
        self.light.iter().find(|other| other.at == light.at && other.setup == setup).map(|floor| floor.median)
    }

    pub(super) fn report(&self) -> SectionReport {
        let mut report = SectionReport::new(self.title.clone());
        report.push(self.light());
        report.push(self.many());
        report.push(self.written());
        for light in self.light.iter().filter(|light| light.setup.is_ours() && light.at > 0) {
            let added = (light.median - self.embedded(light.at, 0.5)) / 1e3;
            let (text, setup) = (self.texts[light.at], &light.setup);
            report.target(
                format!("added to {text} by {}, {}, ms", setup.client, setup.format),
                added,
                ADDED_MS_MAX,
                true,
            );
            if let Some(floor) = self.floor(light) {
                let floor = (floor - self.embedded(light.at, 0.5)) / 1e3;
                report.target(
                    format!("the floor: added to {text} by {}, {}, ms", setup.client, setup.format),
                    floor,
                    ADDED_MS_MAX,
                    true,
                );
            }
        }
        let pipelined = |written: &&WriteFigures| {
            written.setup.is_ours() && written.writes.session && written.writes.in_flight > 1
        };
        for written in self.written.iter().filter(pipelined) {
            let (client, format) = (&written.setup.client, written.setup.format);
            report.target(
                format!("vertices/s in one session, pipelined, by {client}, {format}"),
                written.rate,
                5_000.0,
                false,
            );
        }
        report
    }

    fn light(&self) -> Section {
        let mut section = Section::new(
            "Light requests, one at a time on one connection",
            "Wall time from the call to the last result, in µs. `added`: the median minus the median of the same \
             text embedded. `beyond nothing`: the median minus that of `g.inject(1)` with the same client and \
             format, so without the cost of communication. `beyond floor`: the median minus that of the same \
             response from a server that only replays it. `processor`: processor time of the Vervet process for \
             each request, without that of the bare client. The bare client is a WebSocket with GraphBinary and \
             nothing else.",
            &[
                "request",
                "server",
                "client",
                "median",
                "p99",
                "added",
                "beyond nothing",
                "beyond floor",
                "processor",
            ],
        );
        for (at, text) in self.texts.iter().enumerate() {
            section.row(vec![
                (*text).to_owned(),
                "embedded".to_owned(),
                String::new(),
                figure(self.embedded(at, 0.5)),
                figure(self.embedded(at, 0.99)),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]);
            for light in self.light.iter().filter(|light| light.at == at) {
                let nothing = self.light.iter().find(|other| other.at == 0 && other.setup == light.setup);
                let if_ours = |value: f64| if light.setup.is_ours() { figure(value) } else { String::new() };
                section.row(vec![
                    (*text).to_owned(),
                    light.setup.server.to_owned(),
                    format!("{}, {}", light.setup.client, light.setup.format),
                    figure(light.median),
                    figure(light.p99),
                    if_ours(light.median - self.embedded(at, 0.5)),
                    figure(nothing.map_or(f64::NAN, |nothing| light.median - nothing.median)),
                    if_ours(light.median - self.floor(light).unwrap_or(f64::NAN)),
                    if_ours(light.server_cpu),
                ]);
            }
        }
        section
    }

    fn many(&self) -> Section {
        let mut section = Section::new(
            "Many requests at a time on one connection",
            format!(
                "{} requests in flight. `processor`: processor time in µs of the Vervet process for each request, \
                 without that of the bare client.",
                self.in_flight
            ),
            &["request", "server", "client", "requests/s", "processor"],
        );
        for many in &self.many {
            section.row(vec![
                self.texts[many.at].to_owned(),
                many.setup.server.to_owned(),
                format!("{}, {}", many.setup.client, many.setup.format),
                figure(many.rate),
                if many.setup.is_ours() { figure(many.server_cpu) } else { String::new() },
            ]);
        }
        section
    }

    fn written(&self) -> Section {
        let mut section = Section::new(
            "Vertex by vertex",
            format!(
                "`{}`, one request for each vertex. Vervet is durable at each commit (level `sync`). TinkerGraph \
                 is in memory and has no transactions that a session could commit. `in one session`: a commit \
                 after the number of vertices in the column; the time of the last commit counts. `each by itself`: \
                 a transaction for each vertex. Embedded, in transactions of the same size: {} vertices/s.",
                ADD,
                figure(self.embedded_writes)
            ),
            &[
                "how",
                "server",
                "client",
                "on their way",
                "vertices",
                "commit each",
                "vertices/s",
                "processor",
            ],
        );
        for written in &self.written {
            let writes = &written.writes;
            section.row(vec![
                if writes.session { "in one session" } else { "each by itself" }.to_owned(),
                written.setup.server.to_owned(),
                format!("{}, {}", written.setup.client, written.setup.format),
                writes.in_flight.to_string(),
                count(u64::from(writes.vertices)),
                if writes.session { count(u64::from(writes.commit_each)) } else { "1".to_owned() },
                figure(written.rate),
                if written.setup.is_ours() { figure(written.server_cpu) } else { String::new() },
            ]);
        }
        section
    }
}
