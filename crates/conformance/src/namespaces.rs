//! Servers in network namespaces of their own, whose links are cut, also in one direction, and slowed down.
//!
//! # Shape
//! The program starts itself again in a namespace of its own ([`enter`]), which has a bridge. Each server is
//! a process in a further namespace, with a link to the bridge (`connect`). All of it ends with the
//! processes; the network of the machine is not touched.
//!
//! Frames get lost in one direction because their sender has a wrong hardware address for the receiver
//! (`lose`): the receiver never sees them, as with a broken cable.

use std::process::{Command, ExitCode};

/// Set in the namespace of the program.
const INSIDE: &str = "VERVET_IN_NAMESPACE";

/// A hardware address that no link has.
const UNUSED: &str = "02:00:00:00:ff:ff";

/// Whether this program runs in its namespace.
#[must_use]
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this program again, with the same arguments, in a namespace of its own.
///
/// # Errors
/// There is no `unshare`, or the system does not allow it.
pub fn enter() -> Result<ExitCode, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    if run("unshare --net true").is_err() {
        // Without root, `unshare` needs a namespace of users in which this user is root.
        command.arg("--map-root-user");
    }
    command.args(["--net", "--"]).arg(program).args(std::env::args_os().skip(1));
    let status = command.env(INSIDE, "1").status().map_err(|error| format!("unshare: {error}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// A command that runs a program in a namespace of its own.
pub(crate) fn command(program: &std::path::Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--"]).arg(program);
    command
}

/// Address and port of a server; 0 is this process.
pub(crate) fn address(server: usize) -> String {
    format!("{}:7077", host(server))
}

fn host(server: usize) -> String {
    format!("10.77.0.{}", server + 1)
}

fn hardware(server: usize) -> String {
    format!("02:00:00:00:00:{:02x}", server + 1)
}

/// Makes the bridge, with the address of server 0.
///
/// # Errors
/// What `ip` says.
pub(crate) fn prepare() -> Result<(), String> {
    run("ip link set lo up")?;
    run("ip link add bridge0 type bridge")?;
    run(&format!("ip link set bridge0 address {}", hardware(0)))?;
    run(&format!("ip addr add {}/24 dev bridge0", host(0)))?;
    run("ip link set bridge0 up")
}

/// Links the namespace of the process with this id, which runs a server, with the bridge. The link of an
/// earlier process of the server ended with it.
///
/// # Errors
/// What `ip` says.
pub(crate) fn connect(server: usize, process: u32) -> Result<(), String> {
    let _ = run(&format!("ip link del s{server}"));
    run(&format!("ip link add s{server} type veth peer name eth0 netns {process}"))?;
    run(&format!("ip link set s{server} master bridge0 up"))?;
    inside(process, "ip link set lo up")?;
    inside(process, &format!("ip link set eth0 address {}", hardware(server)))?;
    inside(process, &format!("ip addr add {}/24 dev eth0", host(server)))?;
    inside(process, "ip link set eth0 up")
}

/// Where frames are sent from: server and process; `None`: this process.
pub(crate) type From = Option<(usize, u32)>;

/// What `from` sends to server `to` gets lost.
///
/// # Errors
/// What `ip` says.
pub(crate) fn lose(from: From, to: usize) -> Result<(), String> {
    neighbour(from, to, "replace", &format!("lladdr {UNUSED} nud permanent"))
}

/// What `from` sends to server `to` arrives again.
///
/// # Errors
/// What `ip` says.
pub(crate) fn find(from: From, to: usize) -> Result<(), String> {
    neighbour(from, to, "replace", &format!("lladdr {} nud reachable", hardware(to)))
}

fn neighbour(from: From, to: usize, what: &str, state: &str) -> Result<(), String> {
    let to = host(to);
    match from {
        None => run(&format!("ip neigh {what} {to} {state} dev bridge0")),
        Some((_, process)) => inside(process, &format!("ip neigh {what} {to} {state} dev eth0")),
    }
}

/// Takes the link of a server away, in both directions, or gives it back.
///
/// # Errors
/// What `ip` says.
pub(crate) fn set_link(server: usize, is_up: bool) -> Result<(), String> {
    run(&format!("ip link set s{server} {}", if is_up { "up" } else { "down" }))
}

/// Frames to and from a server take 200 ms longer each, or, where the system cannot delay them, pass at 1
/// Mbit/s.
///
/// # Errors
/// What `tc` says.
pub(crate) fn slow(server: usize, process: u32) -> Result<(), String> {
    for add in [
        |run: &dyn Fn(&str) -> Result<(), String>, link: &str| {
            run(&format!("tc qdisc replace dev {link} root netem delay 200ms"))
        },
        |run: &dyn Fn(&str) -> Result<(), String>, link: &str| {
            run(&format!("tc qdisc replace dev {link} root tbf rate 1mbit burst 4kb latency 500ms"))
        },
    ] {
        let here = add(&run, &format!("s{server}"));
        if here.is_ok() {
            return add(&|command| inside(process, command), "eth0");
        }
    }
    Err("tc knows neither netem nor tbf".to_owned())
}

/// Ends [`slow`].
///
/// # Errors
/// What `tc` says.
pub(crate) fn quicken(server: usize, process: u32) -> Result<(), String> {
    run(&format!("tc qdisc del dev s{server} root"))?;
    inside(process, "tc qdisc del dev eth0 root")
}

fn inside(process: u32, command: &str) -> Result<(), String> {
    run(&format!("nsenter --net=/proc/{process}/ns/net {command}"))
}

fn run(command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let mut program = Command::new(words.next().unwrap_or_default());
    let output = program.args(words).output().map_err(|error| format!("{command}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command}: {}", said.trim())) }
}
